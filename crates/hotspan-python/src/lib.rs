//! `hotspan._core`: the Python module. Thin: it converts arguments and results, and computes nothing itself.

mod averages;
mod collect;
mod enter;
mod error;
mod events;
mod spans;
mod trace;

use std::ffi::OsString;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::averages::{PyAverage, PyKeyAverages};
    #[pymodule_export]
    use crate::collect::{PyRecorder, clock_now, cupti_library, load_torch_hooks, warm_up_device};
    #[pymodule_export]
    use crate::error::{CollectError, HotspanError, TraceFormatError};
    #[pymodule_export]
    use crate::events::{PyEvent, PyEvents};
    #[pymodule_export]
    use crate::spans::PySpans;
    #[pymodule_export]
    use crate::trace::{PyTrace, open};

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
