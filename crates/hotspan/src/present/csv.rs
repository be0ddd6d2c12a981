//! Tables as CSV (RFC 4180): bare numbers in the column's unit.

use hotspan_analyze::{Cell, Table};

pub(super) fn render(table: &Table, prefix: &[(&str, String)], header: bool) -> String {
    let mut out = String::new();
    if header {
        let names = prefix.iter().map(|(name, _)| *name).chain(table.columns.iter().map(|column| column.key));
        line(&mut out, names.map(str::to_owned));
    }
    for row in &table.rows {
        line(&mut out, prefix.iter().map(|(_, value)| value.clone()).chain(row.iter().map(bare)));
    }
    out
}

fn line(out: &mut String, values: impl Iterator<Item = String>) {
    let quoted: Vec<String> = values.map(|value| quote(&value)).collect();
    out.push_str(&quoted.join(","));
    out.push('\n');
}

fn bare(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => count.to_string(),
        Cell::Duration(duration) => duration.0.to_string(),
        Cell::Percent(number) | Cell::Number(number) => number.to_string(),
        Cell::Bytes(bytes) => bytes.0.to_string(),
        Cell::Missing => String::new(),
    }
}

fn quote(value: &str) -> String {
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::Schema;

    use super::*;

    #[test]
    fn what_needs_quotes_is_quoted() {
        let table = Schema::<(&str, u64)>::new("calls", "")
            .text("name", "Name", |row| row.0)
            .count("count", "Count", |row| row.1)
            .table(&[("a, \"b\"", 2)]);
        assert_eq!(render(&table, &[("rank", "0".into())], true), "rank,name,count\n0,\"a, \"\"b\"\"\",2\n");
    }
}
