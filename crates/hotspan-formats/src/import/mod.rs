//! Importers: one file per format, found by content.

pub mod chrome;
pub mod collapsed;
pub mod hotspan;
pub mod lprof;
pub mod prof;
pub mod speedscope;
mod stacks;

use std::io::Read;
use std::path::Path;

use hotspan_store::{Source, Trace, TraceBuilder};

use crate::error::{ImportError, OpenError};
use crate::input::{Input, Progress};

/// What an importer says about the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniff {
    /// Not mine.
    No,
    /// Could be mine; ask me if nobody is sure.
    Maybe,
    /// Mine.
    Yes,
}

/// Reads one format.
pub trait Importer: Sync {
    /// The format's name, as `hotspan info` shows it.
    fn name(&self) -> &'static str;

    /// Whether these first bytes (up to 64 KB, uncompressed) are of this format.
    fn sniff(&self, head: &[u8]) -> Sniff;

    /// Reads the content into the builder. Bad parts of a good file are counted as losses, not errors.
    ///
    /// # Errors
    /// When the content is not of this format after all, or cannot be read at all.
    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError>;
}

/// All importers; the order is the order of asking.
pub static IMPORTERS: &[&dyn Importer] = &[
    &hotspan::Hotspan,
    &prof::Prof,
    &lprof::Lprof,
    &speedscope::Speedscope,
    &chrome::Chrome,
    &collapsed::Collapsed,
];

/// Opens a trace of any known format.
///
/// # Errors
/// When the file cannot be read or is not a trace.
pub fn open(path: &Path) -> Result<Trace, OpenError> {
    open_with(path, &mut ())
}

/// Opens a trace, telling how far it has come.
///
/// # Errors
/// When the file cannot be read, is not a trace, or `progress` asked to stop.
pub fn open_with(path: &Path, progress: &mut dyn Progress) -> Result<Trace, OpenError> {
    let in_path = |error| OpenError { path: path.to_owned(), error };
    Input::open(path, progress).and_then(read).map_err(in_path)
}

/// Opens a trace and adds events to it that its file does not have.
///
/// # Errors
/// As [`open_with`].
pub fn open_adding(
    path: &Path,
    progress: &mut dyn Progress,
    add: impl FnOnce(&mut TraceBuilder),
) -> Result<Trace, OpenError> {
    let in_path = |error| OpenError { path: path.to_owned(), error };
    Input::open(path, progress).and_then(|input| read_adding(input, add)).map_err(in_path)
}

/// Reads a trace from any stream.
///
/// # Errors
/// When the content cannot be read, is not a trace, or the input's progress asked to stop.
pub fn read(input: Input<'_>) -> Result<Trace, ImportError> {
    read_adding(input, |_| ())
}

fn read_adding(mut input: Input<'_>, add: impl FnOnce(&mut TraceBuilder)) -> Result<Trace, ImportError> {
    if input.head().is_empty() {
        return Err(ImportError::Empty);
    }
    let importer = detect(input.head())?;
    let mut builder = TraceBuilder::new();
    let read = importer.read(&mut input, &mut builder);
    // What an importer says of content that was ended here is not the reason.
    if let Some(error) = input.too_much_memory() {
        return Err(error);
    }
    read?;
    if input.cancelled() {
        return Err(ImportError::Cancelled);
    }
    let Source { bytes, format, .. } = builder.source.clone();
    builder.source = Source {
        format: if format.is_empty() { importer.name().to_owned() } else { format },
        compression: input.compression().map(str::to_owned),
        path: input.name().map(str::to_owned),
        bytes,
    };
    add(&mut builder);
    Ok(builder.finish())
}

fn detect(head: &[u8]) -> Result<&'static dyn Importer, ImportError> {
    let said = |wanted: Sniff| IMPORTERS.iter().find(|importer| importer.sniff(head) == wanted);
    match said(Sniff::Yes).or_else(|| said(Sniff::Maybe)) {
        Some(importer) => Ok(*importer),
        None => Err(ImportError::UnknownFormat { looks_like: describe(head) }),
    }
}

/// What unknown content looks like, for the error message.
fn describe(head: &[u8]) -> String {
    let known: [(&[u8], &str); 8] = [
        (b"PK\x03\x04", "a zip archive"),
        (b"\x80\x04", "a Python pickle"),
        (b"\x80\x05", "a Python pickle"),
        (b"\x7fELF", "a program"),
        (b"ARROW1", "an Arrow file"),
        (b"PAR1", "a Parquet file"),
        (b"SQLite format 3", "a SQLite database, such as an nsys report"),
        (b"<", "XML or HTML"),
    ];
    if let Some((_, name)) = known.iter().find(|(magic, _)| head.starts_with(magic)) {
        return format!("it looks like {name}");
    }
    let start = &head[..head.len().min(24)];
    match std::str::from_utf8(start) {
        Ok(text) => format!("it begins with {text:?}"),
        Err(_) => format!("it begins with the bytes {start:02x?}"),
    }
}

/// Bytes a reader handed out, counted.
pub(crate) struct CountingReader<'a, R> {
    pub(crate) reader: &'a mut R,
    pub(crate) count: u64,
}

impl<R: Read> Read for CountingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.count += length as u64;
        Ok(length)
    }
}
