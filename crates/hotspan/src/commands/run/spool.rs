//! The folder that the processes of a program write to while it runs, a file each: making it, and waiting for the last of them.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotspan_collect::clock::UnixNanos;
use hotspan_collect::process_tree::ProcessNumber;
use serde_json::Value;

use crate::error::CommandError;
use crate::files::check_place;
use crate::run_folder::{ABOUT, process_of, recordings, written};

/// A new folder beside the output.
pub(super) fn make(output: &Path) -> Result<PathBuf, CommandError> {
    check_place(output)?;
    for number in 1..1_000 {
        let mut name = output.as_os_str().to_owned();
        name.push(if number == 1 { ".spool".to_owned() } else { format!(".spool-{number}") });
        let spool = PathBuf::from(name);
        match make_folder(&spool) {
            // The program may change its directory.
            Ok(()) => return Ok(spool.canonicalize().unwrap_or(spool)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => {
                let folder = spool.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.unwrap_or(Path::new(".")).to_owned();
                return Err(CommandError::Unwritable { place: folder, source });
            }
        }
    }
    Err(CommandError::Usage(format!("too many folders like {}.spool: remove some", output.display())))
}

/// A folder that only its owner writes to, whatever the umask: what lies there is believed.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(path)
}

/// Writes what is known of the program before it ends.
pub(super) fn describe(spool: &Path, facts: &Value) {
    // Nobody misses it but a reader of such a folder.
    let _ = fs::write(spool.join(ABOUT), facts.to_string());
}

/// How long processes that outlive the program may take to write their last.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Waits for children that end a moment after the program does, as those of `multiprocessing` do.
pub(super) fn wait_for_children(spool: &Path) {
    let end = Instant::now() + LAST_WORDS;
    let is_alive = |path: PathBuf| process_of(&path).is_some_and(|process| ProcessNumber(process).is_alive());
    while recordings(spool).any(is_alive) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// When a process was written last: what it did later is its exit.
pub(super) fn last_written(spool: &Path, process: u32) -> Option<UnixNanos> {
    let files = recordings(spool).filter(|path| process_of(path) == Some(process));
    files.filter_map(|path| written(&path)).max().map(UnixNanos)
}
