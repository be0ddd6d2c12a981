//! Tables as JSON: one object per row, bare numbers in the column's unit (nanoseconds, bytes, percent).

use hotspan_analyze::{Cell, Table};
use serde_json::{Map, Value};

/// The rows of a table as objects.
pub(crate) fn rows(table: &Table) -> Value {
    let row = |cells: &Vec<Cell>| {
        let pairs = table.columns.iter().zip(cells);
        Value::Object(pairs.map(|(column, cell)| (column.key.to_owned(), cell.into())).collect::<Map<_, _>>())
    };
    table.rows.iter().map(row).collect()
}
