//! Spans as an Arrow file, for tools that know nothing of hotspan; the columns are those of `hotspan_store::write_spans`.

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_store::{Trace, write_spans};

use super::Exporter;

/// The exporter of Arrow files.
pub struct Arrow;

impl Exporter for Arrow {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn help(&self) -> &'static str {
        "spans as one Arrow IPC table, with their args: for pyarrow, polars, pandas and DuckDB"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let trace: &Trace = model;
        write_spans(trace, output).map_err(io::Error::other)
    }
}
