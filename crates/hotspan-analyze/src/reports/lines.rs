//! Lines of Python that were recorded one by one, for programs to read.

use hotspan_store::{Duration, LineRow};

use super::Report;
use crate::lines::{LineFunction, line_functions};
use crate::model::Model;
use crate::model::source::is_users;
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::{ReportOptions, Schema, SortError, share};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "lines",
    by: Some(("line", "A line of Python, as line_profiler and memory_profiler show them")),
    record: "python -m hotspan.lines -p train.py -o lines.hotspan train.py",
    // Functions belong together, so all of their lines are shown.
    tables: |model, options| Ok(vec![line_table(model, &ReportOptions { limit: None, ..options.clone() })?]),
}];

/// The kind of doors to lines.
pub(crate) const LINE: &str = "line";

/// A line, and the function it is in with its time.
struct Row<'a> {
    function: &'a LineFunction,
    function_time: Duration,
    line: LineRow,
}

/// All lines as one table.
///
/// # Errors
/// When there is no such column to sort by.
pub fn line_table(model: &Model, options: &ReportOptions) -> Result<Table, SortError> {
    let mut functions = line_functions(model);
    functions.retain(|function| !options.my_code || is_users(&function.file));
    let has_memory = functions.iter().any(LineFunction::has_memory);
    let rows_of = |function| {
        let function_time = LineFunction::time(function);
        function.lines.iter().map(move |&line| Row { function, function_time, line })
    };
    let rows: Vec<Row<'_>> = functions.iter().flat_map(rows_of).collect();
    Schema::<Row<'_>>::new("lines", "Lines")
        .text("file", "File", |row| &row.function.file)
        .help("The source file.")
        .text("function", "Function", |row| &row.function.name)
        .help("The function that the line is in.")
        .ordinal("first_line", "First Line", |row| u64::from(row.function.first_line))
        .help("The line that the function begins at.")
        .ordinal("line", "Line #", |row| u64::from(row.line.line))
        .help("The number of the line.")
        .count("hits", if has_memory { "Occurrences" } else { "Hits" }, |row| row.line.hits.unsigned_abs())
        .help("How often the line was executed.")
        .bytes("memory", "Mem usage", |row| row.line.memory)
        .help("Memory of the process after the line.")
        .when(has_memory)
        .bytes("increment", "Increment", |row| row.line.increment)
        .help("By how much the process grew on the line.")
        .when(has_memory)
        .duration("time", "Time", |row| row.line.time)
        .help("Time of the line with all it called.")
        .when(!has_memory)
        .duration("per_hit", "Per Hit", |row| Duration(row.line.time.0 / row.line.hits.max(1)))
        .help("Time of the line each time it was executed.")
        .when(!has_memory)
        .percent("share", "% Time", |row| share(row.line.time, row.function_time))
        .help("Time of the line as a share of its function's.")
        .when(!has_memory)
        .door(|row| {
            let door = Door::new(LINE).with("file", &row.function.file).with("function", &row.function.name);
            let door = door.with("first_line", row.function.first_line.to_string());
            Some(door.with("line", row.line.line.to_string()))
        })
        .show(&rows, options)
}
