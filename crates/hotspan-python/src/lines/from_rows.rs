//! Lines that Python has measured, as a trace.

use hotspan_store::{Bytes, Duration, FrameKind, FrameRow, LineRow, TraceBuilder};
use pyo3::prelude::*;

use super::reports::FunctionRow;
use crate::trace::PyTrace;

/// A trace of rows as `line_rows` returns them.
#[pyfunction]
pub(crate) fn lines_trace(rows: Vec<FunctionRow>) -> PyTrace {
    let mut builder = TraceBuilder::new();
    builder.source.format = "hotspan lines".to_owned();
    for (file, first_line, name, lines) in rows {
        let (name, file) = (builder.intern(&name), builder.intern(&file));
        let function = builder.frame(FrameRow { name, file, line: 0, first_line, kind: FrameKind::Python });
        for (line, hits, time, memory, increment) in lines {
            let (time, memory, increment) = (Duration(time), Bytes(memory), Bytes(increment));
            builder.push_line(LineRow { function, line, hits, time, memory, increment });
        }
    }
    PyTrace::new(builder.finish())
}
