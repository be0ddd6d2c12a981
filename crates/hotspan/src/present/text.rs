//! Tables as text: a title, aligned columns, long words cut.

use hotspan_analyze::{Align, Table};

use super::shown;

const WIDEST: usize = 80;

pub(super) fn render(table: &Table) -> String {
    let cells: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| shorten(&printable(&shown(cell)).replace('\n', " "))).collect())
        .collect();
    let width = |index: usize| {
        let widest = cells.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        widest.max(table.columns[index].title.chars().count())
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut out = String::new();
    if !table.title.is_empty() {
        out.push_str(&format!("{}\n", table.title));
    }
    let mut line = |values: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for ((value, column), width) in values.zip(&table.columns).zip(&widths) {
            match column.align {
                Align::Left => text.push_str(&format!("{value:<width$}  ")),
                Align::Right => text.push_str(&format!("{value:>width$}  ")),
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&mut table.columns.iter().map(|column| column.title.as_str()));
    let dashes: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    line(&mut dashes.iter().map(String::as_str));
    for row in &cells {
        line(&mut row.iter().map(String::as_str));
    }
    out
}

/// Control characters of a name must not reach the terminal; the ends of lines may.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() && character != '\n' { ' ' } else { character })
        .collect()
}

fn shorten(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    let start: String = text.chars().take(WIDEST - 3).collect();
    format!("{start}...")
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::{Cell, Column};
    use hotspan_store::Duration;

    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new("Kernels");
        table.columns = vec![Column::text("name", "Name"), Column::duration("total", "Total")];
        table.add_row(vec![Cell::text("gemm\u{1b}[31m"), Cell::Duration(Duration(1_500))]);
        table.add_row(vec![Cell::text(&"x".repeat(100)), Cell::Missing]);
        let expected = format!(
            "Kernels\n{:<80}     Total\n{}  --------\n{:<80}  1.500 us\n{}...         -\n",
            "Name",
            "-".repeat(80),
            "gemm [31m",
            "x".repeat(77)
        );
        assert_eq!(render(&table), expected);
    }
}
