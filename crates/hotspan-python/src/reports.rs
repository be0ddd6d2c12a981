//! Reports as Python sees them: tables as names of columns and rows, which `hotspan.rows` puts together.

use hotspan_analyze::idle::gaps;
use hotspan_analyze::{Cell, Column, Report, ReportOptions, Table, Unit};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::from_sort;
use crate::trace::PyTrace;

/// A table: the names of its columns, and its rows.
type PyTable<'py> = (Vec<String>, Vec<Bound<'py, PyTuple>>);

/// Tables by id.
type Tables<'py> = Vec<(String, PyTable<'py>)>;

/// The tables of the report of this name, with their ids. `limit` rows, 0 for all; `None` leaves it to the report.
#[pyfunction]
pub(crate) fn report_tables<'py>(
    py: Python<'py>,
    trace: &PyTrace,
    name: &str,
    sort: Option<String>,
    limit: Option<usize>,
    wide: bool,
) -> PyResult<Tables<'py>> {
    let report = Report::named(name).ok_or_else(|| {
        let names: Vec<&str> = hotspan_analyze::reports().map(|report| report.id).collect();
        PyValueError::new_err(format!("no report is called {name:?}; valid ones: {}", names.join(", ")))
    })?;
    let limit = limit.map(|limit| if limit == 0 { usize::MAX } else { limit });
    let options = ReportOptions { sort, limit, wide, ..ReportOptions::default() };
    let model = trace.shared();
    let tables = py.detach(|| (report.tables)(&model, &options)).map_err(|error| from_sort(&error))?;
    tables.into_iter().map(|table| Ok((table.id.clone(), rows(py, &table)?))).collect()
}

/// Every gap of every device with its cause, longest first.
#[pyfunction]
pub(crate) fn idle_gaps<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<PyTable<'py>> {
    let model = trace.shared();
    rows(py, &py.detach(|| gaps(&model, 0)))
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
        _ => (*key).to_owned(),
    }
}
