//! Tables as text: a title, aligned columns, long words cut.

use hotspan_analyze::{Align, Cell, Table};

use hotspan_store::visible;

use super::shown;

const WIDEST: usize = 80;

pub(super) fn render(table: &Table) -> String {
    lay_out(table, &cells(table, WIDEST))
}

/// The same with long words whole.
pub(super) fn render_whole(table: &Table) -> String {
    lay_out(table, &cells(table, usize::MAX))
}

/// The same in lines of at most `limit` characters, as far as cutting words can do that.
pub(super) fn render_within(table: &Table, limit: usize) -> String {
    let mut cells = cells(table, WIDEST);
    let titles: usize = 8;
    loop {
        let widths = widths(table, &cells);
        let whole: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
        // The widest column of words gives way.
        let words = widths.iter().enumerate().filter(|&(index, _)| table.columns[index].align == Align::Left);
        let Some((index, &widest)) = words.max_by_key(|&(_, width)| *width) else { break };
        let second = widths
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != index && table.columns[other].align == Align::Left)
            .map(|(_, &width)| width)
            .max()
            .unwrap_or(0);
        if whole <= limit || widest <= titles {
            break;
        }
        let goal = widest.saturating_sub(whole - limit).max(second.min(widest - 1)).max(titles);
        for row in &mut cells {
            row[index] = cut(&row[index], goal);
        }
        if widths[index] <= table.columns[index].title.chars().count() {
            break;
        }
    }
    lay_out(table, &cells)
}

fn cells(table: &Table, widest: usize) -> Vec<Vec<String>> {
    let text = |cell: &Cell| cut(&shown(cell), widest);
    table.rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

fn widths(table: &Table, cells: &[Vec<String>]) -> Vec<usize> {
    let width = |index: usize| {
        let widest = cells.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        widest.max(table.columns[index].title.chars().count())
    };
    (0..table.columns.len()).map(width).collect()
}

fn lay_out(table: &Table, cells: &[Vec<String>]) -> String {
    let widths = widths(table, cells);
    let mut out = String::new();
    if !table.title.is_empty() {
        out.push_str(&format!("{}\n", visible(&table.title)));
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
    for row in cells {
        line(&mut row.iter().map(String::as_str));
    }
    out
}

/// A text of at most `widest` characters. The end of a path says more than its beginning.
pub(super) fn cut(text: &str, widest: usize) -> String {
    let length = text.chars().count();
    if length <= widest {
        return text.to_owned();
    }
    let kept = widest.saturating_sub(3);
    if text.starts_with('/') || text.starts_with("...") || (text.contains(".py:") && !text.contains(' ')) {
        format!("...{}", text.chars().skip(length - kept).collect::<String>())
    } else {
        format!("{}...", text.chars().take(kept).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::Schema;
    use hotspan_store::Duration;

    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [("gemm\u{1b}[31m".to_owned(), Some(Duration(1_500))), ("x".repeat(100), None)];
        let table = Schema::<(String, Option<Duration>)>::new("kernels", "Kernels")
            .text("name", "Name", |row| &row.0)
            .duration("total", "Total", |row| row.1)
            .table(&rows);
        let expected = format!(
            "Kernels\n{:<80}    Total\n{}  -------\n{:<80}  1.50 µs\n{}...        -\n",
            "Name",
            "-".repeat(80),
            "gemm\\x1b[31m",
            "x".repeat(77)
        );
        assert_eq!(render(&table), expected);
    }
    #[test]
    fn wide_tables_are_cut_to_fit() {
        let rows = [("f".repeat(70), format!("/{}/file.py:12", "folder/".repeat(9)), 123_u64)];
        let table = Schema::<(String, String, u64)>::new("lines", "Lines")
            .text("name", "Name", |row| &row.0)
            .text("place", "Place", |row| &row.1)
            .count("n", "N", |row| row.2)
            .table(&rows);
        let text = render_within(&table, 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.contains("file.py:12  123"), "{text}");
        assert!(text.contains("fff..."), "{text}");
    }
}
