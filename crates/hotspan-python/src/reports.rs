//! Reports as Python sees them: tables as lists of rows, a row as a dict; times in nanoseconds.

use hotspan_analyze::idle::{gaps, idle};
use hotspan_analyze::{Cell, Report, ReportOptions, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::from_sort;
use crate::trace::PyTrace;

/// Tables: the id, and the rows.
type Tables<'py> = Vec<(String, Bound<'py, PyList>)>;

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
    let trace = trace.shared();
    let tables = py.detach(|| (report.tables)(&trace, &options)).map_err(|error| from_sort(&error))?;
    tables.into_iter().map(|table| Ok((table.id.clone(), rows(py, &table)?))).collect()
}

/// Every gap of every device with its cause, longest first.
#[pyfunction]
pub(crate) fn idle_gaps<'py>(py: Python<'py>, trace: &PyTrace) -> PyResult<Bound<'py, PyList>> {
    let trace = trace.shared();
    rows(py, &py.detach(|| gaps(&trace, &idle(&trace), 0)))
}

fn rows<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for cells in &table.rows {
        let row = PyDict::new(py);
        for (column, cell) in table.columns.iter().zip(cells) {
            let key = column.key;
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
