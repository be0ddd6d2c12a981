//! Tables as JSON: one object per row, bare numbers in the column's unit (nanoseconds, bytes, percent).

use hotspan_analyze::{Cell, Table};
use serde_json::{Map, Value};

/// A cell as a JSON value.
fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) => text.as_str().into(),
        Cell::Count(count) => (*count).into(),
        Cell::Duration(duration) => duration.0.into(),
        Cell::Percent(number) | Cell::Number(number) => (*number).into(),
        Cell::Bytes(bytes) => bytes.0.into(),
        Cell::Missing => Value::Null,
    }
}

/// The rows of a table as objects.
pub(crate) fn rows(table: &Table) -> Value {
    let row = |cells: &Vec<Cell>| {
        let pairs = table.columns.iter().zip(cells);
        Value::Object(pairs.map(|(column, cell)| (column.key.clone(), value(cell))).collect::<Map<_, _>>())
    };
    table.rows.iter().map(row).collect()
}
