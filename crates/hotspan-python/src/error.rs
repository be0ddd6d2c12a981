//! Errors: Rust's as Python exceptions.

use std::io;

use hotspan_analyze::SortError;
use hotspan_formats::{ExportError, ImportError, OpenError};
use hotspan_store::visible;
use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(_core, HotspanError, PyException, "Anything that goes wrong in hotspan.");
pyo3::create_exception!(
    _core,
    TraceFormatError,
    HotspanError,
    "A file is not a trace, or is damaged from the start."
);

pyo3::create_exception!(_core, CollectError, HotspanError, "A program cannot be recorded.");

pub(crate) fn from_collect(error: &hotspan_collect::torch::CollectError) -> PyErr {
    CollectError::new_err(error.to_string())
}

pub(crate) fn from_sample(error: &hotspan_collect::native::SampleError) -> PyErr {
    CollectError::new_err(error.to_string())
}

pub(crate) fn from_open(error: &OpenError) -> PyErr {
    // A message quotes what it found in the file.
    let message = visible(&error.to_string()).into_owned();
    let message = match error.hint() {
        Some(hint) => format!("{message}\nhint: {hint}"),
        None => message,
    };
    match &error.error {
        ImportError::Io(source) => os_error(source, &error.path.display().to_string()),
        ImportError::TooMuchMemory { .. } => PyMemoryError::new_err(message),
        _ => TraceFormatError::new_err(message),
    }
}

pub(crate) fn from_export(error: &ExportError) -> PyErr {
    os_error(&error.error, &error.path.display().to_string())
}

pub(crate) fn from_sort(error: &SortError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The subclass of `OSError` that Python's own functions raise for the same reason.
fn os_error(error: &io::Error, path: &str) -> PyErr {
    match error.raw_os_error() {
        // With an error number and a file name, OSError chooses its subclass itself.
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.to_owned()))
        }
        None if error.kind() == io::ErrorKind::IsADirectory => {
            pyo3::exceptions::PyIsADirectoryError::new_err(format!("{path}: {error}"))
        }
        None => PyOSError::new_err(format!("{path}: {error}")),
    }
}
