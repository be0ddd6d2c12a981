//! What a notebook shows of a trace: its report as HTML, and the dashboard as a page of its own.

use pyo3::prelude::*;

use crate::trace::PyTrace;

/// The report of a trace, as a piece of HTML.
#[pyfunction]
pub(crate) fn report_html(py: Python<'_>, trace: &PyTrace) -> String {
    let model = trace.shared();
    py.detach(|| hotspan::report_html(&model))
}

/// The dashboard of a trace with its data in one page; `None` when hotspan was built without it.
#[pyfunction]
pub(crate) fn shared_page(py: Python<'_>, trace: &PyTrace, name: &str) -> Option<String> {
    let model = trace.shared();
    py.detach(|| hotspan::shared_page(&model, name))
}
