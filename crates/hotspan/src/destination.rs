//! Where a command writes what `-o` names: `-` is standard output, as for most programs, and everything else a file.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use hotspan_analyze::Model;
use hotspan_formats::export::hotspan::Hotspan;
use hotspan_formats::{Exporter, write_file};

use crate::error::CommandError;
use crate::present::Outlet;

/// Whether a path stands for standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What to call a place when something was written there.
#[cfg(feature = "collect")]
pub(crate) fn name(path: &Path) -> String {
    if is_stdout(path) { "standard output".to_owned() } else { path.display().to_string() }
}

/// Refuses standard output for what must be a file.
///
/// # Errors
/// When the path stands for standard output.
#[cfg(feature = "collect")]
pub(crate) fn refuse_stdout(path: Option<&Path>, what: &'static str) -> Result<(), CommandError> {
    if path.is_some_and(is_stdout) { Err(CommandError::NotToStdout(what)) } else { Ok(()) }
}

/// Writes a trace in a format.
///
/// # Errors
/// When the place cannot be written, or a recording should go to standard output.
pub(crate) fn save(model: &Model, exporter: &dyn Exporter, path: &Path) -> Result<(), CommandError> {
    if !is_stdout(path) {
        return Ok(hotspan_formats::save(model, exporter, path)?);
    }
    if exporter.name() == Hotspan.name() {
        return Err(CommandError::NotToStdout("a recording"));
    }
    to_stdout(|output| exporter.write(model, output))
}

/// Writes a file that is in memory.
///
/// # Errors
/// When the place cannot be written.
pub(crate) fn write(path: &Path, contents: &[u8]) -> Result<(), CommandError> {
    if is_stdout(path) {
        to_stdout(|output| output.write_all(contents))
    } else {
        Ok(write_file(path, contents)?)
    }
}

/// A pipe or file gets every byte; on a terminal nothing may control it.
fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CommandError> {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        let mut output = Outlet::stdout();
        write(&mut output)?;
        return Ok(output.flush()?);
    }
    let mut output = BufWriter::new(stdout.lock());
    write(&mut output)?;
    Ok(output.flush()?)
}
