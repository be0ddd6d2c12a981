//! The part of `hotspan stats` that shows lines of Python: the reports of line_profiler and memory_profiler.

use hotspan_analyze::Model;
use hotspan_analyze::lines::line_functions;

use crate::present::line_text::{LineReportOptions, line_report, memory_report};
use crate::source_text;

/// Whether a trace has lines and no events.
pub(super) fn is_all_there_is(model: &Model) -> bool {
    let profile = model.profile();
    !profile.lines.is_empty()
        && model.spans().is_empty()
        && profile.calls.is_empty()
        && profile.samples.is_empty()
}

/// Times in line_profiler's layout, then memory in memory_profiler's; each where there is some.
pub(super) fn text(model: &Model) -> String {
    let functions = line_functions(model);
    let read = |file: &str| source_text::read_source(file);
    let mut text = String::new();
    if functions.is_empty() || functions.iter().any(|function| !function.has_memory()) {
        let options = LineReportOptions { unit: 1e-6, ..LineReportOptions::default() };
        text.push_str(&line_report(model, &options, &read));
    }
    text.push_str(&memory_report(model, 3, &read));
    text
}
