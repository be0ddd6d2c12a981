//! The folder that the processes of a program write to while it runs, a file each; and how they become one trace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotspan_analyze::RUN_KEY;
use hotspan_collect::clock::UnixNanos;
use hotspan_collect::native::FunctionNames;
use hotspan_store::{Trace, merge_with_names};
use serde_json::Value;

use crate::error::CommandError;
use crate::progress::say;

/// A new folder beside the output.
pub(super) fn make(output: &Path) -> Result<PathBuf, CommandError> {
    for number in 1..1_000 {
        let mut name = output.as_os_str().to_owned();
        name.push(if number == 1 { ".spool".to_owned() } else { format!(".spool-{number}") });
        let spool = PathBuf::from(name);
        match fs::create_dir(&spool) {
            // The program may change its directory.
            Ok(()) => return Ok(spool.canonicalize().unwrap_or(spool)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let folder = spool.display();
                return Err(CommandError::Usage(format!("cannot write to {folder}: {error}")));
            }
        }
    }
    Err(CommandError::Usage(format!("too many folders like {}.spool: remove some", output.display())))
}

/// The files of processes in the spool; what else is there says how it goes.
pub(super) fn recordings(spool: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(spool).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hotspan"))
}

/// What is known of the program before it ends, for whoever finds the folder of a run that was killed.
const ABOUT: &str = "run.json";

pub(super) fn describe(spool: &Path, facts: &Value) {
    // Nobody misses it but a reader of such a folder.
    let _ = fs::write(spool.join(ABOUT), facts.to_string());
}

/// How long processes that outlive the program may take to write their last.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Waits for children that end a moment after the program does, as those of `multiprocessing` do.
pub(super) fn wait_for_children(spool: &Path) {
    let end = Instant::now() + LAST_WORDS;
    while recordings(spool).filter_map(|path| process_of(&path)).any(runs) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file begins with the number of its process.
fn process_of(recording: &Path) -> Option<u32> {
    recording.file_name()?.to_str()?.split_once('-')?.0.parse().ok()
}

/// Whether a process runs; one that has ended may still wait for its parent to notice.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// The processes of a program, read.
pub(super) struct Collected {
    pub(super) trace: Trace,
    /// When the program itself was written last: what it did later is its exit.
    pub(super) written: Option<UnixNanos>,
}

/// All processes as one trace, the program itself first.
pub(super) fn collect(spool: &Path, process: u32) -> Collected {
    let mut files: Vec<PathBuf> = recordings(spool).collect();
    let prefix = format!("{process}-");
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files.sort_by_key(|path| (!name(path).starts_with(&prefix), name(path)));
    let mut traces = Vec::new();
    for path in &files {
        match hotspan_formats::open(path) {
            Ok(trace) => traces.push(trace),
            Err(error) => say(&format!("note: {error}")),
        }
    }
    let main = files.iter().rfind(|path| name(path).starts_with(&prefix));
    let written = main.and_then(|path| {
        let about = fs::metadata(path).ok()?;
        Some(UnixNanos(about.mtime().checked_mul(1_000_000_000)?.checked_add(about.mtime_nsec())?))
    });
    let mut names = FunctionNames::default();
    let trace = merge_with_names(&traces, &mut |library, frame| names.find(library, frame));
    Collected { trace, written }
}

/// Opens the folder of a run that did not come to its end; `None` when it is another folder.
pub(crate) fn open(spool: &Path) -> Option<Trace> {
    let about = fs::read(spool.join(ABOUT)).ok()?;
    let facts: Value = serde_json::from_slice(&about).ok()?;
    let process = facts.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok())?;
    let mut trace = collect(spool, process).trace;
    trace.set_metadata(RUN_KEY, &facts.to_string());
    Some(trace)
}
