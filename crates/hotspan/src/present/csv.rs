//! Tables as CSV (RFC 4180): bare numbers in the column's unit, a row in a line.
//!
//! Spreadsheets run a cell that begins with `=`, `+`, `-` or `@` as a formula, and a trace may come from anyone. A text that
//! begins so gets an apostrophe before it, as spreadsheets mark texts themselves, unless formulas are asked for. Numbers do not.

use hotspan_analyze::{Cell, Table};
use hotspan_store::visible;

pub(super) fn render(table: &Table, prefix: &[(&str, String)], header: bool, formulas: bool) -> String {
    let text = |text: &str| if formulas { visible(text).into_owned() } else { no_formula(text) };
    let bare = |cell: &Cell| match cell {
        Cell::Text(words) => text(words),
        Cell::Count(count) => count.to_string(),
        Cell::Duration(duration) => duration.0.to_string(),
        Cell::Percent(number) | Cell::Number(number) => number.to_string(),
        Cell::Bytes(bytes) => bytes.0.to_string(),
        Cell::Missing => String::new(),
    };
    let mut out = String::new();
    if header {
        let names = prefix.iter().map(|(name, _)| *name).chain(table.columns.iter().map(|column| column.key));
        line(&mut out, names.map(str::to_owned));
    }
    for row in &table.rows {
        line(&mut out, prefix.iter().map(|(_, value)| text(value)).chain(row.iter().map(&bare)));
    }
    out
}

fn line(out: &mut String, values: impl Iterator<Item = String>) {
    let quoted: Vec<String> = values.map(|value| quote(&value)).collect();
    out.push_str(&quoted.join(","));
    out.push('\n');
}

/// A text that no spreadsheet runs. Tabs and carriage returns, which begin formulas too, are spelled out anyway.
fn no_formula(text: &str) -> String {
    let shown = visible(text);
    let begins_formula = shown.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']);
    let is_number = shown.parse::<f64>().is_ok();
    if begins_formula && !is_number { format!("'{shown}") } else { shown.into_owned() }
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
    fn texts_are_no_formulas() {
        let names = ["=cmd|'/C calc'!A0", "+1+1", "-5", "-5+1", "@SUM(A1)", "\t=1", " =1", "a=b\nc"];
        let rows: Vec<(&str, i64)> = names.iter().map(|&name| (name, -7)).collect();
        let table = Schema::<(&str, i64)>::new("calls", "")
            .text("name", "Name", |row| row.0)
            .bytes("bytes", "Bytes", |row| hotspan_store::Bytes(row.1))
            .table(&rows);
        let file = [("file", "@file".to_owned())];
        let safe =
            "'=cmd|'/C calc'!A0,-7\n'+1+1,-7\n-5,-7\n'-5+1,-7\n'@SUM(A1),-7\n\\t=1,-7\n' =1,-7\na=b\\nc,-7\n";
        assert_eq!(render(&table, &[], false, false), safe);
        assert!(render(&table, &file, false, false).starts_with("'@file,'=cmd"));
        assert!(render(&table, &file, false, true).starts_with("@file,=cmd"));
    }

    #[test]
    fn what_needs_quotes_is_quoted() {
        let table = Schema::<(&str, u64)>::new("calls", "")
            .text("name", "Name", |row| row.0)
            .count("count", "Count", |row| row.1)
            .table(&[("a, \"b\"", 2)]);
        assert_eq!(
            render(&table, &[("rank", "0".into())], true, false),
            "rank,name,count\n0,\"a, \"\"b\"\"\",2\n"
        );
    }
}
