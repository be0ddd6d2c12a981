//! The analyses of device time as Python sees them: tables as names of columns and rows, which `hotspan.rows` puts together.

use hotspan_analyze::copies::{copies, copy_table};
use hotspan_analyze::gpu::gpu;
use hotspan_analyze::idle::gaps;
use hotspan_analyze::report::{Cell, Column, Table, Unit};
use hotspan_analyze::steps::steps;
use hotspan_analyze::streams::{stream_table, streams};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::trace::PyTrace;

/// A table: the names of its columns, and its rows.
type PyTable<'py> = (Vec<String>, Vec<Bound<'py, PyTuple>>);

/// Tables by name.
type Tables<'py> = Vec<(&'static str, PyTable<'py>)>;

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
pub(crate) fn idle_gaps<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<PyTable<'py>> {
    let model = trace.shared();
    rows(py, &py.detach(|| gaps(&model, 0)))
}

/// Copies and fills by kind.
#[pyfunction]
pub(crate) fn copy_rows<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<PyTable<'py>> {
    let model = trace.shared();
    rows(py, &py.detach(|| copy_table(&copies(&model))))
}

/// What each stream did.
#[pyfunction]
pub(crate) fn stream_rows<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<PyTable<'py>> {
    let model = trace.shared();
    let table = || stream_table(&streams(&model), *model.recording());
    rows(py, &py.detach(table))
}

fn convert<'py>(py: Python<'py>, tables: Vec<(&'static str, Table)>) -> PyResult<Tables<'py>> {
    tables.into_iter().map(|(name, table)| Ok((name, rows(py, &table)?))).collect()
}

fn rows<'py>(py: Python<'py>, table: &Table) -> PyResult<PyTable<'py>> {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => text.into_bound_py_any(py),
        Cell::Count(count) => count.into_bound_py_any(py),
        Cell::Duration(duration) => duration.0.into_bound_py_any(py),
        Cell::Bytes(bytes) => bytes.0.into_bound_py_any(py),
        Cell::Percent(number) | Cell::Number(number) => number.into_bound_py_any(py),
        Cell::Missing => Ok(py.None().into_bound(py)),
    };
    let row = |cells: &Vec<Cell>| PyTuple::new(py, cells.iter().map(cell).collect::<PyResult<Vec<_>>>()?);
    Ok((table.columns.iter().map(name).collect(), table.rows.iter().map(row).collect::<PyResult<_>>()?))
}

/// What Python calls a column: its name says the unit.
fn name(column: &Column) -> String {
    let key = &column.key;
    match column.unit {
        Unit::Nanoseconds => format!("{key}_ns"),
        Unit::Bytes if !key.ends_with("bytes") => format!("{key}_bytes"),
        _ => key.clone(),
    }
}
