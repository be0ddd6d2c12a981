//! Exporters: one file per format.

pub mod arrow;
pub mod chrome;
mod chrome_samples;
pub mod collapsed;
pub mod flamegraph;
pub(crate) mod frame_text;
pub mod hotspan;
mod json_text;
pub mod lprof;
pub mod memory;
pub mod memory_plot;
pub mod mprof;
pub mod prof;
pub mod speedscope;
mod xml_text;

use std::io::{self, Write};
use std::path::Path;

use hotspan_analyze::Model;

use crate::error::ExportError;
use crate::output::Output;

/// Writes one format.
pub trait Exporter: Sync {
    /// The name on the command line (`--to chrome`).
    fn name(&self) -> &'static str;

    /// What it is good for, in a line.
    fn help(&self) -> &'static str;

    /// Writes the trace.
    ///
    /// # Errors
    /// When the output refuses.
    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()>;
}

/// All exporters.
pub static EXPORTERS: &[&dyn Exporter] = &[
    &chrome::Chrome,
    &hotspan::Hotspan,
    &arrow::Arrow,
    &memory::MemoryHtml(None),
    &memory::MemoryJson(None),
    &memory::MemoryRaw(None),
    &prof::Prof,
    &lprof::Lprof,
    &mprof::Mprof,
    &memory_plot::MemorySvg,
    &flamegraph::FLAMEGRAPH,
    &collapsed::COLLAPSED,
    &speedscope::SPEEDSCOPE,
];

/// Writes a trace to a file, compressed when the name ends in `.gz` or `.zst`. The file appears whole or not at all.
///
/// # Errors
/// When the path cannot be written; a file that was there before is then untouched.
pub fn save(model: &Model, exporter: &dyn Exporter, path: &Path) -> Result<(), ExportError> {
    save_by(path, |output| exporter.write(model, output))
}

/// Writes a file in the same way, with what `write` gives.
///
/// # Errors
/// As [`save`].
pub fn save_by(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), ExportError> {
    let save = || {
        let mut output = Output::create(path)?;
        write(&mut output)?;
        output.commit()
    };
    save().map_err(|error| ExportError { path: path.to_owned(), error })
}

/// A trace in a format, compressed by gzip, in memory.
///
/// # Errors
/// When the exporter refuses.
pub fn gzipped(model: &Model, exporter: &dyn Exporter) -> io::Result<Vec<u8>> {
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(5));
    let mut output = io::BufWriter::new(encoder);
    exporter.write(model, &mut output)?;
    output.into_inner().map_err(io::Error::from)?.finish()
}
