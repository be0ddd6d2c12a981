//! What can go wrong in a command, with its exit code.

use std::io::{self, Write};

use hotspan_analyze::table::TableError;
use hotspan_formats::{ExportError, OpenError};

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
    /// A table could not be made as asked for.
    #[error(transparent)]
    Table(#[from] TableError),
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
    /// A process cannot be sampled.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Sampler(#[from] hotspan_collect::sampler::SamplerError),
    /// A program could not be started.
    #[error("failed to start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// All went well here; the program that was recorded ended with this code, and so do we.
    #[error("the program ended with code {0}")]
    Exit(u8),
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
            #[cfg(target_os = "linux")]
            Self::Sampler(error) => error.hint(),
            Self::Start { .. } => Some("check the command after `--`, and that it is on the PATH"),
            Self::NoTraces(_) => Some("traces end in .json, .json.gz, .json.zst or .hotspan"),
            _ => None,
        }
    }

    /// The program's exit code: 2 for wrong usage, that of a recorded program, 1 for everything else.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Table(TableError::UnknownSortKey { .. }) | Self::Usage(_) => 2,
            Self::Exit(code) => *code,
            _ => 1,
        }
    }
}

/// Says on stderr what went wrong and what to do about it.
pub(crate) fn report(error: &CommandError) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "error: {error}");
    if let Some(hint) = error.hint() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}
