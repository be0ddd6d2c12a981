//! What ran within a stretch of time: spans by name, their times cut to the stretch.
//!
//! Calls that enclose others count their whole time, so rows of nested calls overlap.

use hashbrown::HashMap;
use hotspan_store::{CategoryId, Duration, StringId};

use crate::intervals::Interval;
use crate::model::Model;
use crate::report::Table;
use crate::report::schema::Schema;

/// The spans of one name and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithinRow {
    /// Their name.
    pub name: StringId,
    /// Their kind.
    pub category: CategoryId,
    /// How many touch the stretch.
    pub count: u64,
    /// Their time in it.
    pub time: Duration,
    /// The longest of them in it.
    pub longest: Duration,
}

/// The spans that touch `window`, by name and kind, most time first.
#[must_use]
pub fn within(model: &Model, window: Interval) -> Vec<WithinRow> {
    let spans = model.spans();
    let mut rows: Vec<WithinRow> = Vec::new();
    let mut indices: HashMap<(StringId, CategoryId), usize> = HashMap::new();
    for span in spans.ids() {
        let (begin, end) = (spans.time(span), spans.end(span));
        if end < window.begin || begin > window.end {
            continue;
        }
        let (name, category) = (spans.name(span), spans.category(span));
        let index = *indices.entry((name, category)).or_insert_with(|| {
            rows.push(WithinRow { name, category, count: 0, time: Duration(0), longest: Duration(0) });
            rows.len() - 1
        });
        let time = Duration(end.0.min(window.end.0).saturating_sub(begin.0.max(window.begin.0)).max(0));
        let row = &mut rows[index];
        row.count += 1;
        row.time += time;
        row.longest = row.longest.max(time);
    }
    rows.sort_by_key(|row| (std::cmp::Reverse(row.time), row.name, row.category));
    rows
}

/// How the rows look.
#[must_use]
pub fn within_table(model: &Model, rows: &[WithinRow]) -> Table {
    Schema::<WithinRow>::new("within", "In the selected time")
        .text("name", "Name", |row| model.str(row.name))
        .help("The name of the spans.")
        .text("category", "Kind", |row| model.category_name(row.category))
        .help("The kind of the spans.")
        .count("count", "# of Calls", |row| row.count)
        .help("How many of them touch the selected time.")
        .duration("time", "Time", |row| row.time)
        .help("Their time in it, with that of spans inside them.")
        .duration("longest", "Longest", |row| row.longest)
        .help("The longest of them in it.")
        .table(rows)
}
