//! A comparison of two traces as Python sees it: rows as tuples, which `hotspan.diff` gives their names.

use hotspan_analyze::Model;
use hotspan_analyze::diff::{By, DiffRow, Side, diff_sides};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Name; nanoseconds and calls before and after; verdict.
type Row = (String, Option<(i64, f64)>, Option<(i64, f64)>, i64, Option<f64>, &'static str);

/// The total, the rows, the steps behind each side, what the times are, what all rows have in common.
pub(crate) type DiffRows = (Row, Vec<Row>, Option<(u64, u64)>, &'static str, f64);

pub(crate) fn compare(py: Python<'_>, before: &[&Model], after: &[&Model], by: &str) -> PyResult<DiffRows> {
    let by = match by {
        "op" => By::Operator,
        "function" => By::Function,
        "line" => By::Line,
        "kernel" => By::Kernel,
        "shape" => By::Shape,
        "module" => By::Module,
        other => {
            return Err(PyValueError::new_err(format!(
                "cannot compare by {other:?}; valid ones: 'op', 'function', 'line', 'kernel', 'shape', 'module'"
            )));
        }
    };
    let result = py.detach(|| diff_sides(before, after, by));
    let side = |side: Option<Side>| side.map(|side| (side.time.0, side.calls));
    let row = |row: DiffRow| {
        let (change, percent, verdict) = (row.change().0, row.percent(), row.verdict.name());
        (row.key, side(row.before), side(row.after), change, percent, verdict)
    };
    let rows = result.rows.into_iter().map(row).collect();
    Ok((row(result.total), rows, result.steps, result.measure, result.machine_percent))
}
