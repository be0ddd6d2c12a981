//! The folder that the processes of a run write to, a file each: reading them as one trace. `commands/run/spool.rs` makes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotspan_analyze::{PROCESSES_KEY, RUN_KEY};
use hotspan_store::{Loss, Trace, merge_with_names};
use serde_json::{Value, json};

use crate::progress::say;

/// The file with what is known of the program before it ends, for whoever finds the folder of a run that was killed.
pub(crate) const ABOUT: &str = "run.json";

/// The files of processes in the folder; what else is there says how it goes.
pub(crate) fn recordings(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hotspan"))
}

/// The process that wrote a recording: the file's name begins with its number.
pub(crate) fn process_of(recording: &Path) -> Option<u32> {
    recording.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// All processes as one trace, the program itself first.
pub(crate) fn merged(folder: &Path, process: u32) -> Trace {
    let mut files: Vec<PathBuf> = recordings(folder).collect();
    files.sort_by_cached_key(|path| (process_of(path) != Some(process), path.clone()));
    let (mut traces, mut processes) = (Vec::new(), Vec::new());
    for path in &files {
        match hotspan_formats::open(path) {
            Ok(trace) => {
                processes.push(about(path, &trace));
                traces.push(trace);
            }
            Err(error) => say(&format!("note: {error}")),
        }
    }
    #[cfg(feature = "collect")]
    let mut names = hotspan_collect::native::FunctionNames::default();
    #[cfg(feature = "collect")]
    let mut name = |library: &str, frame: &str| names.find(library, frame);
    // The libraries of the program are on the machine that recorded it.
    #[cfg(not(feature = "collect"))]
    let mut name = |_: &str, _: &str| None;
    let mut merged = merge_with_names(&traces, &mut name);
    if let Some(life) = life(&traces, process) {
        merged.set_metadata(LIFE, &life.to_string());
    }
    if !processes.is_empty() {
        merged.set_metadata(PROCESSES_KEY, &Value::from(processes).to_string());
    }
    merged
}

/// The metadata of a recording about the life of its process.
const LIFE: &str = "hotspan.process";

/// What is told about a process: what it was, how far its recording goes, and whether its operators are there.
fn about(path: &Path, trace: &Trace) -> Value {
    let metadata = |key: &str| trace.metadata().value(key).unwrap_or(Value::Null);
    let words = metadata("hotspan.environment");
    let words = words["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let process = process_of(path);
    json!({
        "process": process,
        "command": words.collect::<Vec<_>>().join(" "),
        "is_cut_off": trace.losses().count(Loss::TruncatedFile) > 0,
        "is_running": process.is_some_and(is_running),
        "signal": metadata("hotspan.signal"),
        "written_unix_ns": written(path),
        "operators": metadata("hotspan.operators"),
        "metadata": own_words(trace),
    })
}

/// What a process says about itself: of several traces that are merged, only the first would be heard.
fn own_words(trace: &Trace) -> Value {
    let keys = trace.metadata().iter().filter(|(key, _)| key.starts_with("hotspan."));
    let values = keys.filter_map(|(key, _)| Some((key.to_owned(), trace.metadata().value(key)?)));
    values.collect::<serde_json::Map<_, _>>().into()
}

/// When a file was last written.
pub(crate) fn written(path: &Path) -> Option<i64> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    i64::try_from(modified.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

#[cfg(feature = "collect")]
fn is_running(process: u32) -> bool {
    hotspan_collect::process_tree::ProcessNumber(process).is_alive()
}

/// Who cannot record reads what others recorded, elsewhere.
#[cfg(not(feature = "collect"))]
fn is_running(_: u32) -> bool {
    false
}

/// The life of the program's own process, which may have become another program by `exec`, more than once: it begins with the
/// first recording and ends with the last.
fn life(traces: &[Trace], process: u32) -> Option<Value> {
    let lives = traces.iter().filter_map(|trace| trace.metadata().value(LIFE));
    let lives: Vec<Value> = lives.filter(|life| life["process"] == process).collect();
    let (mut life, last) = (lives.first()?.clone(), lives.last()?);
    life["finished_unix_ns"] = last["finished_unix_ns"].clone();
    life["is_whole"] = lives.iter().all(|life| life["is_whole"] == true).into();
    Some(life)
}

/// Opens the folder of a run that did not come to its end; `None` when it is another folder.
pub(crate) fn open(folder: &Path) -> Option<Trace> {
    let about = fs::read(folder.join(ABOUT)).ok()?;
    let facts: Value = serde_json::from_slice(&about).ok()?;
    let process = facts.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok())?;
    let mut trace = merged(folder, process);
    trace.set_metadata(RUN_KEY, &facts.to_string());
    Some(trace)
}
