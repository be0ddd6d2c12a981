//! The analyses of device time as Python sees them: tables as lists of rows, a row as a dict; times in nanoseconds.

use hotspan_analyze::copies::{copies, copy_table};
use hotspan_analyze::gpu::gpu;
use hotspan_analyze::idle::gaps;
use hotspan_analyze::report::{Cell, Table};
use hotspan_analyze::steps::steps;
use hotspan_analyze::streams::{stream_table, streams};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::trace::PyTrace;

/// Named tables: the name, and the rows.
type Tables<'py> = Vec<(&'static str, Bound<'py, PyList>)>;

/// Where the time of each step goes, on devices and on the host.
#[pyfunction]
pub(crate) fn step_tables<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Tables<'py>> {
    let model = trace.shared();
    convert(py, py.detach(|| steps(&model).report()))
}

/// Everything about the time of devices; empty when no device did anything. `limit` rows of each table, 0 for all.
#[pyfunction]
pub(crate) fn gpu_tables<'py>(py: Python<'py>, trace: &PyTrace, limit: usize) -> PyResult<Tables<'py>> {
    let model = trace.shared();
    let tables = py.detach(|| gpu(&model).map(|gpu| gpu.report(&model, limit)));
    convert(py, tables.unwrap_or_default())
}

/// Every gap of every device with its cause, longest first.
#[pyfunction]
pub(crate) fn idle_gaps<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Bound<'py, PyList>> {
    let model = trace.shared();
    rows(py, &py.detach(|| gaps(&model, 0)))
}

/// Copies and fills by kind.
#[pyfunction]
pub(crate) fn copy_rows<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Bound<'py, PyList>> {
    let model = trace.shared();
    rows(py, &py.detach(|| copy_table(&copies(&model))))
}

/// What each stream did.
#[pyfunction]
pub(crate) fn stream_rows<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Bound<'py, PyList>> {
    let model = trace.shared();
    let table = || stream_table(&streams(&model), *model.recording());
    rows(py, &py.detach(table))
}

fn convert<'py>(py: Python<'py>, tables: Vec<(&'static str, Table)>) -> PyResult<Tables<'py>> {
    tables.into_iter().map(|(name, table)| Ok((name, rows(py, &table)?))).collect()
}

fn rows<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for cells in &table.rows {
        let row = PyDict::new(py);
        for (column, cell) in table.columns.iter().zip(cells) {
            let key = column.key.as_str();
            match cell {
                Cell::Text(text) => row.set_item(key, text)?,
                Cell::Count(count) => row.set_item(key, count)?,
                Cell::Duration(duration) => row.set_item(key, duration.0)?,
                Cell::Bytes(bytes) => row.set_item(key, bytes.0)?,
                Cell::Percent(number) | Cell::Number(number) => row.set_item(key, number)?,
                Cell::Missing => row.set_item(key, py.None())?,
            }
        }
        list.append(row)?;
    }
    Ok(list)
}
