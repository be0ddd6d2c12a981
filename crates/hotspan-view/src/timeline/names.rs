//! What processes, threads and streams are called: words that people know, in which numbers stand where they tell something.

use hotspan_analyze::Model;
use hotspan_store::{Ident, ProcessId, TrackId};

/// The label of a process that is no device.
const HOST: &str = "CPU";
/// Where profilers put what they cost themselves: a process of a number below 0.
const PROFILER: &str = "Profiler";

/// Process and name of a thread or stream.
pub(crate) fn track_names(model: &Model, id: TrackId) -> (String, String) {
    let track = model.track(id);
    let process = process_name(model, track.process);
    let named = track.name.map(|name| model.str(name).trim()).filter(|name| !name.is_empty());
    let name = match (named, track.ident) {
        (Some(name), _) => name.to_owned(),
        (None, Ident::Text(text)) => model.str(text).to_owned(),
        (None, Ident::Int(..0)) => "all streams".to_owned(),
        (None, Ident::Int(number)) if is_device(model, track.process) => {
            format!("stream {number}")
        }
        (None, Ident::Int(number)) => format!("thread {number}"),
    };
    (process, name)
}

/// A process, or the device that stands as one in the trace.
pub(crate) fn process_name(model: &Model, id: ProcessId) -> String {
    let process = model.process(id);
    let text = |text| Some(model.str(text).trim()).filter(|text| !text.is_empty());
    let (name, label) = (process.name.and_then(text), process.labels.and_then(text));
    let device = label.filter(|&label| label != HOST);
    if let Some(device) = device {
        // Ranks each have a device of this number.
        let owner = process.ident.display(model.strings());
        let owner = owner.find(" of process ").map_or("", |from| &owner[from..]);
        return format!("{device}{owner}");
    }
    match (name, process.ident) {
        (Some(name), Ident::Int(0..)) => {
            format!("{name} (process {})", process.ident.display(model.strings()))
        }
        (Some(name), Ident::Text(word)) if model.str(word) != name => format!("{name}, {}", model.str(word)),
        (Some(name), _) => name.to_owned(),
        (None, Ident::Text(word)) => model.str(word).to_owned(),
        (None, Ident::Int(..0)) => PROFILER.to_owned(),
        (None, Ident::Int(number)) => {
            device_index(model, id).map_or(format!("process {number}"), |index| format!("GPU {index}"))
        }
    }
}

/// Whether a process of the trace stands for a device.
pub(super) fn is_device(model: &Model, id: ProcessId) -> bool {
    device_index(model, id).is_some()
}

/// The index of the device that a process of the trace stands for.
fn device_index(model: &Model, id: ProcessId) -> Option<i64> {
    model.device_work().iter().find(|device| device.process == id).map(|device| device.id.index)
}
