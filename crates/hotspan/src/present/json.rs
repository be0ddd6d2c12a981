//! Tables as JSON: one object per row, bare numbers in the column's unit (nanoseconds, bytes, percent).

use std::io::{self, Write};

use hotspan_analyze::{Cell, Table};
use hotspan_store::is_unsafe_to_show;
use serde_json::{Map, Value};

/// Writes a value in several lines, as data or for a person who looks at it: what a terminal would obey is escaped, which
/// means the same in JSON.
pub(crate) fn write(value: &Value, output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "{}", text(value))
}

/// A value in several lines.
pub(crate) fn text(value: &Value) -> String {
    let text = format!("{value:#}");
    if !text.contains(is_unsafe_to_show) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe_to_show(character) {
            let units = &mut [0; 2];
            character.encode_utf16(units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(character);
        }
    }
    out
}

/// The rows of a table as objects.
pub(crate) fn rows(table: &Table) -> Value {
    let row = |cells: &Vec<Cell>| {
        let pairs = table.columns.iter().zip(cells);
        Value::Object(pairs.map(|(column, cell)| (column.key.to_owned(), cell.into())).collect::<Map<_, _>>())
    };
    table.rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn escapes_mean_the_same() {
        let value = json!({"name\u{9b}": "a\u{7f}\u{202e}\u{e0041}\u{1b}\n"});
        let text = text(&value);
        assert_eq!(
            text,
            r#"{
  "name\u009b": "a\u007f\u202e\udb40\udc41\u001b\n"
}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("valid"), value);
    }
}
