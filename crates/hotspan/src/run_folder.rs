//! The folder that the processes of a run write to, a file each: reading them as one trace. `commands/run/spool.rs` makes it.

use std::fs;
use std::path::{Path, PathBuf};

use hotspan_analyze::RUN_KEY;
use hotspan_store::{Trace, merge_with_names};
use serde_json::Value;

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
    let mut traces = Vec::new();
    for path in &files {
        match hotspan_formats::open(path) {
            Ok(trace) => traces.push(trace),
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
    merge_with_names(&traces, &mut name)
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
