//! Tables as they are sent, and pages of the reports that [`hotspan_analyze::reports`] lists.

use hotspan_analyze::{Align, Cell, Door, Model, Report, ReportOptions, Table, Unit};

use crate::api::{ColumnData, Page, Section, TableData};

/// Rows that are sent at most; more are neither read nor drawn well.
const MOST_ROWS: usize = 20_000;

/// The page of a report; of functions and lines those of the user alone, where `my_code` says so.
pub(crate) fn report_page(report: &Report, model: &Model, my_code: bool) -> Page {
    let options = ReportOptions { my_code, ..ReportOptions::default() };
    // Sorting by what nobody named cannot fail.
    let tables = (report.tables)(model, &options).unwrap_or_default();
    page(tables, report.record)
}

/// Leaves at most this many rows in each table, and says so in the title.
pub(crate) fn shortened(mut page: Page, most: usize) -> Page {
    for section in &mut page.sections {
        let table = &mut section.table;
        table.title = shortened_title(&table.title, table.rows.len(), most);
        table.rows.truncate(most);
        table.units.truncate(most);
        // Nobody is there to ask what a row stands for.
        table.doors.clear();
    }
    page
}

/// The page of some tables; those without rows are left out.
pub(crate) fn page(tables: Vec<Table>, record: &str) -> Page {
    let filled = tables.into_iter().filter_map(Table::filled);
    let section = |table: Table| Section { table: table_data(&table), key: table.id };
    Page { sections: filled.map(section).collect(), record: record.to_owned(), words: Vec::new() }
}

/// A table as it is sent.
pub(crate) fn table_data(table: &Table) -> TableData {
    let columns = table.columns.iter().map(|column| ColumnData {
        key: column.key.to_owned(),
        title: column.title.clone(),
        unit: column.unit.name().to_owned(),
        help: column.help.to_owned(),
        numeric: column.align == Align::Right,
    });
    let rows = table.rows.iter().take(MOST_ROWS).map(|row| row.iter().map(Into::into).collect());
    TableData {
        title: shortened_title(&table.title, table.rows.len(), MOST_ROWS),
        columns: columns.collect(),
        rows: rows.collect(),
        units: row_units(table),
        doors: doors(table),
    }
}

/// What each row leads to, as the page asks for it.
fn doors(table: &Table) -> Vec<String> {
    let query = |door: &Option<Door>| door.as_ref().and_then(Door::query).unwrap_or_default();
    table.doors.iter().take(table.rows.len().min(MOST_ROWS)).map(query).collect()
}

/// The unit of each row, where columns do not say it: facts of several kinds below each other.
fn row_units(table: &Table) -> Vec<String> {
    let bare = |index: usize| table.columns.get(index).is_some_and(|column| column.unit == Unit::None);
    let of_row = |row: &Vec<Cell>| {
        let own = row.iter().enumerate().filter(|&(index, _)| bare(index)).map(|(_, cell)| cell.unit());
        own.into_iter().find(|&own| own != Unit::None).unwrap_or(Unit::None)
    };
    let units: Vec<Unit> = table.rows.iter().take(MOST_ROWS).map(of_row).collect();
    if units.iter().all(|&unit| unit == Unit::None) {
        return Vec::new();
    }
    units.into_iter().map(|unit| unit.name().to_owned()).collect()
}

fn shortened_title(title: &str, rows: usize, most: usize) -> String {
    if rows > most { format!("{title} (the first {most} of {rows} rows)") } else { title.to_owned() }
}
