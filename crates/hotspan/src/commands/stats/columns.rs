//! `hotspan stats --columns`: what the columns of a table mean, what they count, and when they are shown.

use std::io::Write;

use hotspan_analyze::report::schema::unless_empty;
use hotspan_analyze::{Column, Report, Schema, Shown};
use hotspan_store::TraceBuilder;

use super::Arguments;
use crate::error::CommandError;
use crate::present;

pub(super) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let Some(report) = Report::by(arguments.by()) else { return Ok(()) };
    for table in (report.tables)(&TraceBuilder::new().finish().into(), &arguments.options())? {
        let columns = Schema::<Column>::new("columns", format!("Columns of {}", table.title))
            .text("column", "Column", |column| column.key)
            .help("What JSON and CSV call it.")
            .text("title", "Title", |column| &column.title)
            .help("What stands above it.")
            .text("unit", "Unit", |column| column.unit.name())
            .help("What its numbers count in JSON and CSV.")
            .text("shown", "Shown", |column| match column.shown {
                Shown::Always => "always",
                Shown::WithValues => "with values",
                Shown::Wide => "with --wide",
                Shown::Never => "only in --sort",
            })
            .help("When it is part of the table.")
            .text("sort", "--sort", |column| unless_empty(column.sort_key))
            .help("The key that sorts by it.")
            .text("meaning", "Meaning", |column| column.help)
            .help("What it is.")
            .table(&table.declared);
        let format = arguments.format;
        let text = if format.json {
            present::json_text(&present::json_rows(&columns)) + "\n"
        } else if format.is_text() {
            present::whole_text(&columns)
        } else {
            present::in_format(&columns, format, &[], true)
        };
        output.write_all(text.as_bytes())?;
    }
    Ok(())
}
