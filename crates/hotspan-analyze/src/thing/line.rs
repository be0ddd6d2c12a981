//! A row of the table of lines, beside the other lines of its function.

use super::{Thing, only};
use crate::model::Model;
use crate::report::door::Door;
use crate::report::schema::ReportOptions;
use crate::reports::lines::line_table;

/// What is shown of the other lines.
const COLUMNS: [&str; 6] = ["line", "hits", "memory", "increment", "time", "share"];
const MOST: usize = 200;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let table = || line_table(model, &ReportOptions::default()).ok();
    let row = only(table()?, |known| known == door)?;
    let is_beside = |known: &Door| {
        let same = |name| known.get(name) == door.get(name);
        same("file") && same("function") && same("first_line")
    };
    let place = format!("{}:{}", door.get("file")?, door.get("line")?);
    let mut beside = only(table()?, is_beside)?.with_columns(&COLUMNS);
    let title = format!("Lines of {}", super::places::cut(door.get("function")?));
    let (all, shown) = (beside.rows.len(), beside.rows.len().min(MOST));
    beside.rows.truncate(shown);
    let more = if shown < all { format!(" (the first {shown} of {all})") } else { String::new() };
    let beside = beside.titled(&format!("{title}{more}"));
    let name = place.rsplit('/').next().unwrap_or(&place);
    Some(Thing { source: Some(place.clone()), tables: vec![beside], ..Thing::new("Line", name, row) })
}
