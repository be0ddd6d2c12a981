//! What can go wrong at the door, in words that say where and what to do.

use std::io;
use std::path::PathBuf;

use hotspan_store::file::FileError;

/// Why a file could not be read as a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file has no content.
    #[error("the file is empty")]
    Empty,
    /// No importer knows the content.
    #[error("the content is not a trace that hotspan knows ({looks_like})")]
    UnknownFormat {
        /// What it looks like instead.
        looks_like: String,
    },
    /// JSON, but not a trace.
    #[error("the JSON is not a trace: {reason} (at byte {offset})")]
    NotATrace {
        /// What is missing or wrong.
        reason: String,
        /// Where, in uncompressed bytes.
        offset: u64,
    },
    /// The content ended or broke before anything could be read.
    #[error("the file is damaged from the start: {reason} (at byte {offset})")]
    Damaged {
        /// What is wrong.
        reason: String,
        /// Where, in uncompressed bytes.
        offset: u64,
    },
    /// A damaged or unsupported `.hotspan` file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Reading took more memory than it may.
    #[error("reading it takes more than {}, which is as much memory as hotspan may use", bytes(*limit))]
    TooMuchMemory {
        /// How many bytes reading may take.
        limit: u64,
    },
    /// The caller asked to stop.
    #[error("stopped on request")]
    Cancelled,
}

/// What to do when memory is not enough.
pub const TOO_MUCH_MEMORY: &str = "allow more, with --max-memory 16GB or HOTSPAN_MAX_MEMORY=16GB in the environment, or record a shorter stretch";

fn bytes(bytes: u64) -> hotspan_store::Bytes {
    hotspan_store::Bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Why a path could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("failed to open {}: {error}", path.display())]
pub struct OpenError {
    /// The path.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub error: ImportError,
}

impl OpenError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match &self.error {
            ImportError::Empty => {
                Some("the profiler may not have finished writing; wait for it to exit and try again")
            }
            ImportError::UnknownFormat { .. } => Some(
                "hotspan opens Kineto and Chrome traces (.json, .json.gz, .json.zst), .hotspan, .prof and .lprof files, speedscope \
                 and collapsed stacks",
            ),
            ImportError::NotATrace { .. } => Some(
                "a trace is written by torch.profiler's export_chrome_trace or tensorboard_trace_handler and has a \"traceEvents\" list",
            ),
            ImportError::Damaged { .. } => Some("copy the file again, or record again"),
            ImportError::Io(error) if error.kind() == io::ErrorKind::NotFound => Some("check the path"),
            ImportError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("check that you may read the file")
            }
            ImportError::TooMuchMemory { .. } => Some(TOO_MUCH_MEMORY),
            ImportError::File(_) | ImportError::Io(_) | ImportError::Cancelled => None,
        }
    }
}

/// Why a trace could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write {}: {error}", path.display())]
pub struct ExportError {
    /// The path.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub error: io::Error,
}
