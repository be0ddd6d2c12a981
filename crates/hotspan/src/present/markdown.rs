//! Tables as Markdown, for issues and pull requests.

use hotspan_analyze::{Align, Table};

use hotspan_store::visible;

use super::shown;

pub(super) fn render(table: &Table) -> String {
    let mut out = String::new();
    if !table.title.is_empty() {
        out.push_str(&format!("### {}\n\n", visible(&table.title)));
    }
    let line = |values: Vec<String>| format!("| {} |\n", values.join(" | "));
    out.push_str(&line(table.columns.iter().map(|column| escape(&column.title)).collect()));
    let rule = |align: Align| if align == Align::Left { "---" } else { "---:" };
    out.push_str(&line(table.columns.iter().map(|column| rule(column.align).to_owned()).collect()));
    for row in &table.rows {
        out.push_str(&line(row.iter().map(|cell| escape(&shown(cell))).collect()));
    }
    out
}

/// Names may hold anything: templates are full of `<` and `*`.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '*' | '_' | '`' | '<' | '>' | '\\' | '[' | ']' | '#' => out.extend(['\\', character]),
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::Schema;

    use super::*;

    #[test]
    fn names_cannot_break_the_table() {
        let table = Schema::<(&str, u64)>::new("calls", "")
            .text("name", "Name", |row| row.0)
            .count("count", "# of Calls", |row| row.1)
            .table(&[("f<int>|g", 2)]);
        assert_eq!(render(&table), "| Name | \\# of Calls |\n| --- | ---: |\n| f\\<int\\>\\|g | 2 |\n");
    }
}
