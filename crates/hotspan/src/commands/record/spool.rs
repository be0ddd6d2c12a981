//! The file that a recording grows into while it runs, beside what will be written.
//!
//! It bounds the memory of a long recording and is what a killed `hotspan record` leaves: every command opens it.

use std::fs;
use std::path::{Path, PathBuf};

use hotspan_collect::sampler::Recording;
use hotspan_formats::{ExportError, uncompressed};
use hotspan_store::file::FileError;

use super::Arguments;
use super::output::{Format, tell, write};
use crate::destination;
use crate::error::CommandError;
use crate::progress::say;

/// More recordings than this do not go to the same file at once.
const MOST: u32 = 1000;

/// A file that grows.
pub(super) struct Spool {
    path: PathBuf,
}

impl Spool {
    /// Has a recording written to a new file beside the output, or in the folder for temporary files without one.
    pub(super) fn beside(output: Option<&Path>, recording: &mut Recording) -> Result<Self, CommandError> {
        let is_file = |path: &&Path| fs::metadata(path).map_or(true, |metadata| metadata.is_file());
        let base = match output.filter(|path| !destination::is_stdout(path)).filter(is_file) {
            Some(output) => output.as_os_str().to_owned(),
            None => std::env::temp_dir().join(format!("hotspan-{}", std::process::id())).into_os_string(),
        };
        for number in 1..=MOST {
            let mut name = base.clone();
            name.push(if number == 1 {
                ".spool.hotspan".to_owned()
            } else {
                format!(".spool-{number}.hotspan")
            });
            let path = PathBuf::from(name);
            match recording.spool_to(&path) {
                Ok(()) => return Ok(Self { path }),
                // Another recording grows there, or was killed and left it to be looked at.
                Err(FileError::Write { error }) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(path, error)),
            }
        }
        let base = base.display();
        Err(CommandError::Usage(format!("too many files like {base}.spool.hotspan: remove some")))
    }

    /// Completes the file and makes the output of it.
    pub(super) fn write(
        self,
        recording: Recording,
        arguments: &Arguments,
        format: Format,
        output: Option<&Path>,
    ) -> Result<(), CommandError> {
        let samples = recording.totals().samples;
        let losses = match recording.finish_spool() {
            Ok(losses) => losses.unwrap_or_default(),
            Err(error) => {
                say(&format!("note: the recording is cut off: {error}"));
                hotspan_store::Losses::default()
            }
        };
        if let Some(output) = output.filter(|path| format == Format::Hotspan && is_plain(path)) {
            tell(&losses, samples);
            fs::rename(&self.path, output).map_err(|error| failed(output.to_owned(), error.into()))?;
            say(&format!("wrote {} ({samples} samples)", output.display()));
            return Ok(());
        }
        let written = hotspan_formats::open(&self.path)
            .map_err(CommandError::from)
            .and_then(|trace| write(arguments, format, output, &trace.into()));
        match written {
            Ok(()) => {
                let _ = fs::remove_file(&self.path);
                Ok(())
            }
            Err(error) => {
                say(&format!("note: the recording is still in {}", self.path.display()));
                Err(error)
            }
        }
    }
}

/// Whether a file of that name is not to be compressed.
fn is_plain(path: &Path) -> bool {
    let name = path.to_string_lossy();
    uncompressed(&name) == name
}

fn failed(path: PathBuf, error: FileError) -> CommandError {
    let error = match error {
        FileError::Write { error } => error,
        other => std::io::Error::other(other),
    };
    ExportError { path, error }.into()
}
