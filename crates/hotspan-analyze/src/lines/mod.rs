//! Lines of Python: hits, time and memory of each, as line_profiler and memory_profiler lay them out.
//!
//! Source text comes from the caller, since nothing here reads files.

mod block;
mod layout;
mod number;

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameId, LineRow, Trace};

use crate::report::{Cell, Column, Table};

pub use layout::{LineReportOptions, line_report, memory_report};

/// One function and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFunction {
    /// Its source file.
    pub file: String,
    /// The line it begins at.
    pub first_line: u32,
    /// Its name, with its class.
    pub name: String,
    /// The lines that were executed, in order; none when it never ran.
    pub lines: Vec<LineRow>,
}

impl LineFunction {
    /// Time of all lines.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.lines.iter().map(|row| row.time).sum()
    }

    /// Whether its memory was measured, rather than its time.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.lines.iter().any(|row| row.memory.0 != 0)
    }
}

/// The functions whose lines a trace knows, in the order of the trace.
#[must_use]
pub fn line_functions(trace: &Trace) -> Vec<LineFunction> {
    let profile = trace.profile();
    let mut places: HashMap<FrameId, usize> = HashMap::new();
    let mut functions: Vec<LineFunction> = Vec::new();
    for row in profile.lines.rows() {
        let place = *places.entry(row.function).or_insert_with(|| {
            let frame = profile.frames.row(row.function);
            functions.push(LineFunction {
                file: trace.str(frame.file).to_owned(),
                first_line: frame.first_line,
                name: trace.str(frame.name).to_owned(),
                lines: Vec::new(),
            });
            functions.len() - 1
        });
        // A row without hits says that there is such a function, no more.
        if row.hits > 0 {
            functions[place].lines.push(row);
        }
    }
    for function in &mut functions {
        function.lines.sort_by_key(|row| row.line);
    }
    functions
}

/// All lines as one table, for programs to read.
#[must_use]
pub fn line_table(trace: &Trace) -> Table {
    let functions = line_functions(trace);
    let has_memory = functions.iter().any(LineFunction::has_memory);
    let mut table = Table::new("Lines");
    table.columns = vec![
        Column::text("file", "File"),
        Column::text("function", "Function"),
        Column::count("first_line", "First Line"),
        Column::count("line", "Line #"),
        Column::count("hits", if has_memory { "Occurrences" } else { "Hits" }),
    ];
    table.columns.extend(if has_memory {
        [Column::bytes("memory", "Mem usage"), Column::bytes("increment", "Increment")].to_vec()
    } else {
        let per_hit = Column::duration("per_hit", "Per Hit");
        [Column::duration("time", "Time"), per_hit, Column::percent("share", "% Time")].to_vec()
    });
    for function in &functions {
        let total = function.time();
        for row in &function.lines {
            let mut cells = vec![
                Cell::text(&function.file),
                Cell::text(&function.name),
                Cell::Count(u64::from(function.first_line)),
                Cell::Count(u64::from(row.line)),
                Cell::Count(row.hits.unsigned_abs()),
            ];
            cells.extend(if has_memory {
                vec![Cell::Bytes(row.memory), Cell::Bytes(row.increment)]
            } else {
                let per_hit = Duration(row.time.0 / row.hits.max(1));
                vec![Cell::Duration(row.time), Cell::Duration(per_hit), Cell::share(row.time, total)]
            });
            table.add_row(cells);
        }
    }
    table
}
