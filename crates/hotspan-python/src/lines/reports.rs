//! Lines that were recorded, as rows and as the texts of line_profiler and memory_profiler.

use std::collections::HashMap;

use hotspan::line_text::{LineReportOptions, LineReportWidths, line_function_report, memory_report};
use hotspan_analyze::lines::{LineFunction, line_functions};
use hotspan_collect::lines::resident_bytes;
use hotspan_store::{Bytes, Duration, FrameId, LineRow};
use pyo3::prelude::*;

use crate::trace::PyTrace;

/// Bytes of memory this process has in use; 0 where the system does not say.
#[pyfunction]
pub(crate) fn resident_memory() -> i64 {
    resident_bytes().unwrap_or(0)
}

/// A function's file, first line and name, and its lines: number, hits, nanoseconds, memory, increment in bytes.
pub(crate) type FunctionRow = (String, u32, String, Vec<(u32, i64, i64, i64, i64)>);

/// The lines of a trace, by function.
#[pyfunction]
pub(crate) fn line_rows(py: Python<'_>, trace: &PyTrace) -> Vec<FunctionRow> {
    let functions = py.detach(|| line_functions(trace.model()));
    let row = |function: LineFunction| {
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

/// No column is wider, whatever a configuration asks for.
const MOST_WIDE: usize = 1000;

/// A function's file, first line and name, and its lines: number, hits and time in a unit of the caller's.
type TimedFunction = (String, u32, String, Vec<(u32, f64, f64)>);

/// Such functions as the report knows them; numbers that are too large for it are the largest it has.
fn timed_function((file, first_line, name, lines): TimedFunction, unit: f64) -> LineFunction {
    let row = |(line, hits, time): (u32, f64, f64)| LineRow {
        function: FrameId::at(0),
        line,
        hits: hits as i64,
        time: Duration((time * unit * 1e9).round() as i64),
        memory: Bytes(0),
        increment: Bytes(0),
    };
    let mut lines: Vec<LineRow> = lines.into_iter().map(row).collect();
    lines.sort_by_key(|row| row.line);
    LineFunction { file, first_line, name, lines }
}

/// line_profiler's report of functions whose times are in `unit` seconds, shown in `output_unit` seconds.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "line_profiler's options")]
pub(crate) fn line_text(
    py: Python<'_>,
    functions: Vec<TimedFunction>,
    unit: f64,
    output_unit: f64,
    skip_zero: bool,
    sort: bool,
    details: bool,
    summarize: bool,
    heading: bool,
    widths: [usize; 5],
    sources: HashMap<String, String>,
) -> String {
    let [line, hits, time, per_hit, percent] = widths.map(|width: usize| width.min(MOST_WIDE));
    let widths = LineReportWidths { line, hits, time, per_hit, percent };
    let options =
        LineReportOptions { unit: output_unit, skip_zero, sort, details, summarize, heading, widths };
    py.detach(|| {
        let functions = functions.into_iter().map(|function| timed_function(function, unit)).collect();
        line_function_report(functions, &options, &|file| source(&sources, file))
    })
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
