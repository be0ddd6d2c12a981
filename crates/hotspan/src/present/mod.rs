//! Presenters: a report table as text, JSON, CSV, Markdown or HTML. They know cells and units, not analyses.

mod advice;
mod csv;
mod html;
mod json;
pub mod line_text;
mod markdown;
mod outlet;
pub(crate) mod pstats_text;
mod report;
mod sections;
mod text;
pub mod torch_table;
mod tree;

use hotspan_analyze::{Cell, Table};
use hotspan_store::{digits, visible};

pub use advice::advice_text;
pub(crate) use advice::{advice_json, advice_markdown};
pub use html::report_html;
pub(crate) use json::{rows as json_rows, text as json_text, write as write_json};
pub(crate) use outlet::Outlet;
pub(crate) use report::{Style, comparison_text, report_text};
pub(crate) use sections::{print as sections, print_tables as tables};
pub(crate) use tree::{json as tree_json, render as tree};

/// How data is written to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Format {
    /// Print JSON: one object per file, times in nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    pub(crate) json: bool,
    /// Print CSV: a header line, times in nanoseconds
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) csv: bool,
    /// With --csv: leave names that a spreadsheet takes for formulas (= + - @ first) without an apostrophe before them
    #[arg(long, requires = "csv")]
    pub(crate) csv_formulas: bool,
    /// Print a Markdown table
    #[arg(long)]
    pub(crate) markdown: bool,
}

impl Format {
    /// Whether it is for people at a terminal.
    pub(crate) fn is_text(self) -> bool {
        !(self.json || self.csv || self.markdown)
    }
}

/// A table as plain text.
pub(crate) fn text(table: &Table) -> String {
    text::render(table)
}

/// A table as plain text, with long words whole.
pub(crate) fn whole_text(table: &Table) -> String {
    text::render_whole(table)
}

/// A table in one of the formats that are not JSON. CSV has columns of the file in front where there are several files.
pub(crate) fn in_format(table: &Table, format: Format, prefix: &[(&str, String)], header: bool) -> String {
    if format.csv {
        csv::render(table, prefix, header, format.csv_formulas)
    } else if format.markdown {
        markdown(table)
    } else {
        text(table)
    }
}

/// A table as Markdown.
pub(crate) fn markdown(table: &Table) -> String {
    markdown::render(table)
}

/// A number that counts nothing in particular.
fn plain(number: f64) -> String {
    const LARGE: [(f64, &str); 4] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    match LARGE.iter().find(|(factor, _)| number.abs() >= *factor) {
        Some((factor, name)) => format!("{} {name}", digits(number / factor, 2)),
        None if number.fract() == 0.0 => number.to_string(),
        None => digits(number, 6),
    }
}

/// A cell as a person reads it, in one line, its unit beside the number.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => visible(text).into_owned(),
        Cell::Count(count) => count.to_string(),
        Cell::Duration(duration) => duration.to_string(),
        Cell::Percent(percent) => format!("{} %", digits(*percent, 2)),
        Cell::Bytes(bytes) => bytes.to_string(),
        Cell::Number(number) => plain(*number),
        Cell::Missing => "-".to_owned(),
    }
}
