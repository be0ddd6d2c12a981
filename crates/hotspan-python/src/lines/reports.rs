//! Lines that were recorded, as rows and as the texts of line_profiler and memory_profiler.

use std::collections::HashMap;

use hotspan::line_text::{LineReportOptions, line_report, memory_report};
use hotspan_analyze::lines::line_functions;
use hotspan_collect::lines::resident_bytes;
use pyo3::prelude::*;

use crate::trace::PyTrace;

/// Bytes of memory this process has in use; 0 where the system does not say.
#[pyfunction]
pub(crate) fn resident_memory() -> i64 {
    resident_bytes().unwrap_or(0)
}

/// A function's file, first line and name, and its lines: number, hits, nanoseconds, memory, increment in bytes.
type FunctionRow = (String, u32, String, Vec<(u32, i64, i64, i64, i64)>);

/// The lines of a trace, by function.
#[pyfunction]
pub(crate) fn line_rows(py: Python<'_>, trace: &PyTrace) -> Vec<FunctionRow> {
    let functions = py.detach(|| line_functions(trace.model()));
    let row = |function: hotspan_analyze::lines::LineFunction| {
        let lines = function.lines.iter();
        let lines =
            lines.map(|row| (row.line, row.hits, row.time.0, row.memory.0, row.increment.0)).collect();
        (function.file, function.first_line, function.name, lines)
    };
    functions.into_iter().map(row).collect()
}

/// The text of source files: those given, or as they lie on the disk.
fn source(given: &HashMap<String, String>, file: &str) -> Option<String> {
    given.get(file).cloned().or_else(|| hotspan::read_source(file))
}

/// line_profiler's report of a trace.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "line_profiler's options")]
pub(crate) fn line_text(
    py: Python<'_>,
    trace: &PyTrace,
    unit: f64,
    skip_zero: bool,
    sort: bool,
    details: bool,
    summarize: bool,
    sources: HashMap<String, String>,
) -> String {
    let options = LineReportOptions { unit, skip_zero, sort, details, summarize };
    py.detach(|| line_report(trace.model(), &options, &|file| source(&sources, file)))
}

/// memory_profiler's report of a trace.
#[pyfunction]
pub(crate) fn memory_text(
    py: Python<'_>,
    trace: &PyTrace,
    precision: usize,
    sources: HashMap<String, String>,
) -> String {
    py.detach(|| memory_report(trace.model(), precision, &|file| source(&sources, file)))
}
