//! A row of the table of functions: its callers, what it called, and its calls where each was recorded.

use std::cmp::Reverse;

use super::places::cut;
use super::{Thing, places};
use crate::functions::{Calls, FunctionName, Functions};
use crate::model::Model;
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::Schema;
use crate::reports::functions::function_door;

const MOST: usize = 20;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let function = FunctionName {
        file: door.get("file")?.to_owned(),
        line: door.get("line")?.parse().ok()?,
        name: door.get("name")?.to_owned(),
    };
    let functions = Functions::of(model);
    let row = functions.rows().iter().find(|row| row.function == function)?;
    let spans = Functions::spans_of(model, &function);
    let mut thing =
        Thing::new("Function", &function.name, Functions::schema().table([row])).with_calls(model, &spans);
    thing.source = (function.file != "~").then(|| format!("{}:{}", function.file, function.line.max(1)));
    let others = [
        beside("callers", "Called by", row.callers.clone()),
        beside("callees", "Calls", functions.callees(&function)),
        places::operators(model, &spans).filter(|_| !spans.is_empty()),
    ];
    thing.tables = others.into_iter().flatten().collect();
    Some(thing)
}

/// Functions that call another, or are called by it, with the time of these calls.
fn beside(id: &str, title: &str, mut functions: Vec<(FunctionName, Calls)>) -> Option<Table> {
    let all = functions.len();
    functions.sort_by_key(|(_, calls)| Reverse(calls.total));
    functions.truncate(MOST);
    let title = if all > MOST { format!("{title} (the first {MOST} of {all})") } else { title.to_owned() };
    let table = Schema::<(FunctionName, Calls)>::new(id, title)
        .text("name", "Function", |row| cut(&row.0.text()))
        .help("The other function.")
        .count("calls", "ncalls", |row| row.1.calls.max(0).unsigned_abs())
        .help("How many calls of one by the other there were.")
        .duration("own", "tottime", |row| row.1.own)
        .help("The time of these calls in the called function itself.")
        .duration("total", "cumtime", |row| row.1.total)
        .help("The time of these calls with all that was called.")
        .door(|row| Some(function_door(&row.0)))
        .table(&functions);
    table.filled()
}
