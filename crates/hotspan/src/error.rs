//! What can go wrong in a command, with its exit code.

use std::io;
use std::path::PathBuf;

use hotspan_analyze::report::schema::SortError;
use hotspan_formats::{ExportError, OpenError, TRACE_ENDINGS};

use crate::progress::say;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// A file could not be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file could not be written.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The output could not be written.
    #[error("failed to write the output: {0}")]
    Output(#[from] io::Error),
    /// A table cannot be sorted as asked for.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// A folder holds no trace.
    #[error("no traces in {0}")]
    NoTraces(String),
    /// Some of several files could not be read; each was reported already.
    #[error("{failed} of {of} files could not be read")]
    SomeFailed {
        /// How many could not.
        failed: usize,
        /// How many there are.
        of: usize,
    },
    /// What recording needs is not all there.
    #[error("{0}")]
    Doctor(String),
    /// Rules that must not find anything did.
    #[error("found what --fail-on names: {0}")]
    Found(String),
    /// A process cannot be sampled.
    #[cfg(feature = "collect")]
    #[error(transparent)]
    Sampler(#[from] hotspan_collect::sampler::SamplerError),
    /// A command could not be started.
    #[error("failed to run {program}: {source}")]
    Start {
        /// The command.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A recording cannot be written where it should go.
    #[error("cannot write to {}: {source}", .place.display())]
    Unwritable {
        /// The file or folder.
        place: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What must be a file was to go to standard output.
    #[error("{0} cannot be written to standard output")]
    NotToStdout(&'static str),
    /// A command that was run ended with this code, and has said itself what there is to say.
    #[error("the command ended with exit code {0}")]
    Ended(u8),
    /// The dashboard could not start.
    #[error(transparent)]
    View(#[from] hotspan_view::ViewError),
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
}

impl CommandError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open(error) => error.hint(),
            Self::View(error) => error.hint(),
            #[cfg(feature = "collect")]
            Self::Sampler(error) => error.hint(),
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the name, and that it is on PATH")
            }
            Self::Unwritable { source, .. } => Some(match source.kind() {
                io::ErrorKind::IsADirectory => "name a file in it: -o FOLDER/train.hotspan",
                io::ErrorKind::StorageFull => "make room, or say where the recording may go with -o FILE",
                _ => "say where the recording may go with -o FILE",
            }),
            Self::NotToStdout(_) => Some(
                "name a file: -o train.hotspan; `hotspan export train.hotspan --to chrome -o -` writes to standard output",
            ),
            Self::NoTraces(_) => Some(TRACE_ENDINGS),
            _ => None,
        }
    }

    /// The exit code: 2 for wrong usage, 3 for findings, that of a command that was run, 1 for everything else.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended(code) => *code,
            // As shells have it.
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            Self::Sort(_) | Self::Usage(_) | Self::NotToStdout(_) | Self::Unwritable { .. } => 2,
            Self::Found(_) => 3,
            _ => 1,
        }
    }
}

/// Says on stderr what went wrong and what to do about it.
pub(crate) fn report(error: &CommandError) {
    if matches!(error, CommandError::Ended(_)) {
        return;
    }
    say(&format!("error: {error}"));
    if let Some(hint) = error.hint() {
        say(&format!("hint: {hint}"));
    }
}
