//! Functions; titles, keys and times are those of pstats.

use hotspan_store::Duration;

use super::Report;
use crate::functions::{FunctionName, FunctionRow, Functions};
use crate::model::source::is_users;
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::Schema;

pub(super) const REPORTS: &[Report] = &[Report {
    id: "functions",
    by: Some(("function", "A Python function, as pstats shows it")),
    record: "python -m hotspan.cprofile -o run.prof train.py    # or: hotspan record -o run.hotspan -- python train.py",
    tables: |model, options| {
        let mut functions = Functions::of(model);
        functions.sort(options.sort.as_deref().unwrap_or("tottime"))?;
        let is_wanted = |row: &&FunctionRow| !options.my_code || is_users(&row.function.file);
        let mut table = Functions::schema().table(functions.rows().iter().filter(is_wanted));
        table.rows.truncate(options.limit.unwrap_or(usize::MAX));
        Ok(vec![table])
    },
}];

/// The kind of doors to functions.
pub(crate) const FUNCTION: &str = "function";

/// The door to a function.
pub(crate) fn function_door(function: &FunctionName) -> Door {
    let door = Door::new(FUNCTION).with("file", &function.file).with("name", &function.name);
    door.with("line", function.line.to_string())
}

impl Functions {
    /// The rows in their order, as a table.
    #[must_use]
    pub fn report(&self) -> Table {
        Self::schema().table(self.rows())
    }

    pub(crate) fn schema<'a>() -> Schema<'a, FunctionRow> {
        Schema::<FunctionRow>::new("functions", "Functions")
            .count("ncalls", "ncalls", |row| row.sums.calls.max(0).unsigned_abs())
            .help("Calls, recursive ones too.")
            .count("pcalls", "pcalls", |row| row.sums.primitive.max(0).unsigned_abs())
            .help("Calls that are not recursive.")
            .duration("tottime", "tottime", |row| row.sums.own)
            .help("Time in the function itself.")
            .duration("tottime_percall", "percall", |row| per_call(row.sums.own, row.sums.calls))
            .help("Time in the function itself, per call.")
            .sorted_as("")
            .duration("cumtime", "cumtime", |row| row.sums.total)
            .help("Time in the function and all it called.")
            .duration("cumtime_percall", "percall", |row| per_call(row.sums.total, row.sums.primitive))
            .help("Time in the function and all it called, per call that is not recursive.")
            .sorted_as("")
            .text("file", "file", |row| &row.function.file)
            .help("Its file; ~ for functions of C.")
            .sorted_as("filename")
            .ordinal("line", "line", |row| u64::from(row.function.line))
            .help("The line it begins at.")
            .text("function", "function", |row| &row.function.name)
            .help("The name of the function.")
            .sorted_as("name")
            .door(|row| Some(function_door(&row.function)))
    }
}

fn per_call(time: Duration, count: i64) -> Option<Duration> {
    (count > 0).then(|| Duration(time.0 / count))
}
