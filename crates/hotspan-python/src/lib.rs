//! `hotspan._core`: the Python module. Thin: it converts arguments and results, and computes nothing itself.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments of these types over by value")]

mod advice;
mod agent;
mod averages;
#[expect(unsafe_code, reason = "passes Python objects to the collector of calls as bare pointers")]
mod calls;
mod collect;
mod diff;
mod enter;
mod error;
mod events;
#[expect(unsafe_code, reason = "stands in for functions of the interpreter, which calls it")]
mod forks;
mod function_event;
mod function_events;
mod getters;
mod hooks;
mod json;
#[expect(unsafe_code, reason = "stands in for functions of the interpreter, which calls it")]
mod kills;
#[expect(unsafe_code, reason = "passes Python objects to the collector of lines as bare pointers")]
mod lines;
mod native;
mod notebook;
mod reports;
#[expect(unsafe_code, reason = "stands in for functions of the interpreter, which calls it")]
mod signals;
mod spans;
#[expect(unsafe_code, reason = "makes functions that the interpreter calls")]
mod stand_in;
mod tensors;
#[expect(unsafe_code, reason = "has Python call it on the main thread")]
mod torch_watch;
mod trace;

use std::ffi::OsString;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::agent::PyAgent;
    #[pymodule_export]
    use crate::averages::{PyAverage, PyKeyAverages};
    #[pymodule_export]
    use crate::calls::{PyCallProfiler, function_stats, function_text};
    #[pymodule_export]
    use crate::collect::{PyInputTensors, PyRecorder, clock_now, cupti_library, warm_up_device};
    #[pymodule_export]
    use crate::error::{CollectError, HotspanError, TraceFormatError};
    #[pymodule_export]
    use crate::events::{PyEvent, PyEvents};
    #[pymodule_export]
    use crate::function_event::concrete::concrete_value;
    #[pymodule_export]
    use crate::function_event::{PyEventKernel, PyFunctionEvent, PyInterval};
    #[pymodule_export]
    use crate::function_events::PyFunctionEvents;
    #[pymodule_export]
    use crate::hooks::{carry_torch_hooks, find_torch_hooks, load_torch_hooks};
    #[pymodule_export]
    use crate::json::read_json;
    #[pymodule_export]
    use crate::kills::watch_kills;
    #[pymodule_export]
    use crate::lines::PyLineRecorder;
    #[pymodule_export]
    use crate::lines::from_rows::lines_trace;
    #[pymodule_export]
    use crate::lines::reports::{line_rows, line_text, memory_text, resident_memory};
    #[pymodule_export]
    use crate::native::{PyNativeSampler, sample_stacks};
    #[pymodule_export]
    use crate::notebook::{report_html, shared_page};
    #[pymodule_export]
    use crate::reports::{idle_gaps, report_tables};
    #[pymodule_export]
    use crate::spans::PySpans;
    #[pymodule_export]
    use crate::tensors::{gradient_blocks, tensor_blocks};
    #[pymodule_export]
    use crate::trace::{PyTrace, open, open_recording};

    #[pymodule_export]
    use super::run_cli;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Runs the command line and returns its exit code.
#[pyfunction]
fn run_cli(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| hotspan::run(arguments))
}
