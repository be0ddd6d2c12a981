//! hotspan's own file; the format itself lives in `hotspan_store::file`.

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_store::{Trace, file};

use super::Exporter;

/// The exporter of `.hotspan` files.
pub struct Hotspan;

impl Exporter for Hotspan {
    fn name(&self) -> &'static str {
        "hotspan"
    }

    fn help(&self) -> &'static str {
        "hotspan's own file: a tenth of the size, opens at once"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let trace: &Trace = model;
        file::write_trace(trace, output).map_err(|error| match error {
            file::FileError::Write { error } => error,
            other => io::Error::other(other),
        })
    }
}
