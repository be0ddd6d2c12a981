//! The tables of views, by name. A line in [`REPORTS`] adds one.

use hotspan_analyze::Model;
use hotspan_analyze::copies::{copies, copy_table};
use hotspan_analyze::module_tree::{module_table, module_tree};
use hotspan_analyze::overview::cost;
use hotspan_analyze::source_lines::{source_files_table, source_line_table};
use hotspan_analyze::steps::steps;
use hotspan_analyze::streams::{stream_table, streams};
use hotspan_analyze::table::sort;
use hotspan_analyze::{Align, Cell, Functions, GroupBy, KeyAverages, Table, Unit, kernels, overview};

use crate::api::{ColumnData, Page, Section, TableData};

/// Rows that are sent at most; more are neither read nor drawn well.
const MOST_ROWS: usize = 20_000;

const TORCH: &str = "hotspan run train.py";
const DEVICE: &str = "hotspan run train.py    # on a machine with a GPU";
const SHAPES: &str =
    "with hotspan.profiler.profile(record_shapes=True, with_stack=True, with_modules=True) as prof: …";
const STEPS: &str =
    "call prof.step() after each step of the loop, with a schedule passed to hotspan.profiler.profile";
const FUNCTIONS: &str = "python -m hotspan.cprofile -o run.prof train.py    # or: hotspan record -o run.hotspan -- python train.py";
const LINES: &str = "python -m hotspan.lines -p train.py -o lines.hotspan train.py";
const SOURCE: &str =
    "hotspan run train.py    # or, for lines of chosen functions alone: python -m hotspan.lines train.py";

/// A view made of tables.
pub(crate) struct Report {
    /// What requests call it.
    pub(crate) name: &'static str,
    make: fn(&Model) -> Vec<(String, Table)>,
    /// How to record what fills it.
    record: &'static str,
}

/// All of them.
pub(crate) const REPORTS: &[Report] = &[
    Report { name: "overview", make: |model| titled(overview(model).report()), record: TORCH },
    Report { name: "operators", make: |model| operators(model, &GroupBy::default()), record: TORCH },
    Report {
        name: "shapes",
        make: |model| operators(model, &GroupBy { input_shapes: true, ..GroupBy::default() }),
        record: SHAPES,
    },
    Report {
        name: "stacks",
        make: |model| operators(model, &GroupBy { stack_depth: 5, ..GroupBy::default() }),
        record: SHAPES,
    },
    Report {
        name: "modules",
        make: |model| operators(model, &GroupBy { module: true, ..GroupBy::default() }),
        record: SHAPES,
    },
    Report {
        name: "threads",
        make: |model| operators(model, &GroupBy { thread: true, ..GroupBy::default() }),
        record: TORCH,
    },
    Report {
        name: "module_tree",
        make: |model| one("modules", module_table(&module_tree(model))),
        record: SHAPES,
    },
    Report { name: "kernels", make: |model| one("kernels", kernels(model).report()), record: DEVICE },
    Report { name: "copies", make: |model| one("copies", copy_table(&copies(model))), record: DEVICE },
    Report {
        name: "streams",
        make: |model| one("streams", stream_table(&streams(model), *model.recording())),
        record: DEVICE,
    },
    Report { name: "steps", make: |model| named(steps(model).report()), record: STEPS },
    Report {
        name: "gpu",
        make: |model| {
            hotspan_analyze::gpu::gpu(model).map_or_else(Vec::new, |gpu| named(gpu.report(model, 100)))
        },
        record: DEVICE,
    },
    Report { name: "functions", make: functions, record: FUNCTIONS },
    Report {
        name: "lines",
        make: |model| one("lines", hotspan_analyze::lines::line_table(model)),
        record: LINES,
    },
    Report {
        name: "source",
        make: |model| {
            let lines = model.source_lines();
            let files = ("files".to_owned(), source_files_table(lines));
            vec![files, ("lines".to_owned(), source_line_table(lines))]
        },
        record: SOURCE,
    },
    Report { name: "quality", make: quality, record: TORCH },
];

impl Report {
    /// The report of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        REPORTS.iter().find(|report| report.name == name)
    }

    /// Makes it of a trace.
    pub(crate) fn page(&self, model: &Model) -> Page {
        page((self.make)(model), self.record)
    }
}

/// Leaves at most this many rows in each table, and says so in the title.
pub(crate) fn shortened(mut page: Page, most: usize) -> Page {
    for section in &mut page.sections {
        let table = &mut section.table;
        table.title = shortened_title(&table.title, table.rows.len(), most);
        table.rows.truncate(most);
        table.units.truncate(most);
    }
    page
}

/// The page of some tables; those without rows are left out.
pub(crate) fn page(tables: Vec<(String, Table)>, record: &str) -> Page {
    let filled = tables.into_iter().filter(|(_, table)| !table.rows.is_empty());
    let section = |(key, table): (String, Table)| Section { key, table: table_data(&table) };
    Page { sections: filled.map(section).collect(), record: record.to_owned() }
}

fn titled(tables: Vec<Table>) -> Vec<(String, Table)> {
    tables.into_iter().map(|table| (table.title.clone(), table)).collect()
}

fn named(tables: Vec<(&'static str, Table)>) -> Vec<(String, Table)> {
    tables.into_iter().map(|(name, table)| (name.to_owned(), table)).collect()
}

fn one(name: &str, table: Table) -> Vec<(String, Table)> {
    vec![(name.to_owned(), table)]
}

fn operators(model: &Model, group_by: &GroupBy) -> Vec<(String, Table)> {
    let mut averages = KeyAverages::compute(model, group_by);
    let has_device_time = averages.rows.iter().any(|row| row.self_device_time_total.0 > 0);
    let key = if has_device_time { "self_device_time_total" } else { "self_cpu_time_total" };
    // Both keys are torch's own; were one unknown, rows would stay in the order of the trace.
    let _ = sort(&mut averages, key);
    one("operators", averages.report())
}

fn functions(model: &Model) -> Vec<(String, Table)> {
    let mut functions = Functions::of(model);
    let _ = functions.sort("tottime");
    one("functions", functions.report())
}

/// What is in a trace, what is missing, and what recording cost.
fn quality(model: &Model) -> Vec<(String, Table)> {
    let cost = cost(model).map(|cost| cost.report(model.wall()));
    titled(model.summary().report().into_iter().chain(cost).collect())
}

/// A table as it is sent.
pub(crate) fn table_data(table: &Table) -> TableData {
    let columns = table.columns.iter().map(|column| ColumnData {
        key: column.key.clone(),
        title: column.title.clone(),
        unit: unit(column.unit).to_owned(),
        numeric: column.align == Align::Right,
    });
    let rows = table.rows.iter().take(MOST_ROWS).map(|row| row.iter().map(Into::into).collect());
    TableData {
        title: shortened_title(&table.title, table.rows.len(), MOST_ROWS),
        columns: columns.collect(),
        rows: rows.collect(),
        units: row_units(table),
    }
}

/// The unit of each row, where columns do not say it: facts of several kinds below each other.
fn row_units(table: &Table) -> Vec<String> {
    let bare = |place: usize| table.columns.get(place).is_some_and(|column| column.unit == Unit::None);
    let of_row = |row: &Vec<Cell>| {
        let own = row.iter().enumerate().filter(|&(place, _)| bare(place)).map(|(_, cell)| cell.unit());
        own.into_iter().find(|&own| own != Unit::None).unwrap_or(Unit::None)
    };
    let units: Vec<Unit> = table.rows.iter().take(MOST_ROWS).map(of_row).collect();
    if units.iter().all(|&known| known == Unit::None) {
        return Vec::new();
    }
    units.into_iter().map(|known| unit(known).to_owned()).collect()
}

fn shortened_title(title: &str, rows: usize, most: usize) -> String {
    if rows > most { format!("{title} (the first {most} of {rows} rows)") } else { title.to_owned() }
}

/// What a unit is called in answers.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Count => "count",
        Unit::Nanoseconds => "ns",
        Unit::Percent => "percent",
        Unit::Bytes => "bytes",
    }
}
