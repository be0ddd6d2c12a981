//! What can go wrong with a `.hotspan` file as a whole. Damage to parts of it is counted as a loss instead.

use std::io;

use arrow_schema::ArrowError;

/// Why a `.hotspan` file could not be read or written at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Reading failed.
    #[error("cannot read at byte {offset}: {error}")]
    Read {
        /// How far reading came.
        offset: u64,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Writing failed.
    #[error("cannot write the .hotspan file: {error}")]
    Write {
        /// What the system said.
        #[from]
        error: io::Error,
    },
    /// An earlier write failed, so that the end of the file is unknown.
    #[error("the .hotspan file was given up after an earlier write error; all chunks before it can be read")]
    GivenUp,
    /// It is some other file.
    #[error("not a .hotspan file: {problem} at byte {offset}")]
    NotHotspan {
        /// What was found.
        problem: &'static str,
        /// Where.
        offset: u64,
    },
    /// It was written by a version that changed the meaning of the columns.
    #[error(
        "this file has .hotspan format {found}, this hotspan reads formats 1.x to {supported}.x \
         (hint: install the hotspan version that wrote it, or export the trace there and import it here)"
    )]
    Version {
        /// The file's version.
        found: String,
        /// The latest major version read here.
        supported: u32,
    },
    /// A column has a type that this version cannot take.
    #[error("column '{column}' of the .hotspan file has type {found} instead of {expected}")]
    ColumnType {
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A single string or piece of metadata is larger than a chunk may be.
    #[error(
        "a chunk of {bytes} bytes is too large for a .hotspan file (hint: a single string or metadata value is huge)"
    )]
    TooLarge {
        /// How large it would be.
        bytes: u64,
    },
    /// Row numbers of args have run out.
    #[error("more than 4,294,967,294 events with the same keys (hint: begin a new file)")]
    Full,
    /// The rows do not continue those already in the file.
    #[error("the trace being recorded does not continue this .hotspan file (hint: one writer per builder)")]
    OtherBuilder,
    /// The caller asked to stop.
    #[error("stopped at byte {offset}")]
    Stopped {
        /// How far reading came.
        offset: u64,
    },
    /// A chunk could not be expressed in Arrow, which means a bug in hotspan.
    #[error("cannot encode a chunk: {0}")]
    Encode(ArrowError),
}

impl From<ArrowError> for FileError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Write { error },
            error => Self::Encode(error),
        }
    }
}
