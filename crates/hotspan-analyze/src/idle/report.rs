//! How idle time looks: by cause, by culprit, and the longest gaps.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringId};

use crate::idle::{Cause, DeviceIdle, Gap, Piece, call_site, is_user_code};
use crate::model::Model;
use crate::model::columns::Texts;
use crate::model::device_work::DeviceId;
use crate::report::{Cell, Column, Table};

/// The idle time of all devices by cause; causes that do not occur are left out.
#[must_use]
pub fn causes(idle: &[DeviceIdle]) -> Table {
    let mut table = Table::new("Idle time by cause");
    table.columns = vec![
        Column::text("device", "Device"),
        Column::text("cause", "Cause"),
        Column::duration("total", "Total"),
        Column::percent("share", "Idle %"),
        Column::percent("recording_share", "Recording %"),
        Column::count("pieces", "Pieces"),
        Column::duration("longest", "Longest"),
    ];
    for device in idle {
        for cause in Cause::ALL {
            let lengths = device.pieces.iter().filter(|piece| piece.cause == cause);
            let lengths: Vec<Duration> = lengths.map(|piece| piece.interval.length()).collect();
            let Some(&longest) = lengths.iter().max() else { continue };
            let total = device.total(cause);
            table.add_row(vec![
                Cell::Text(device.device.to_string()),
                Cell::text(cause.key()),
                Cell::Duration(total),
                Cell::share(total, device.idle),
                Cell::share(total, device.window.length()),
                Cell::Count(lengths.len() as u64),
                Cell::Duration(longest),
            ]);
        }
    }
    table
}

/// Who is behind idle time: causes with the operator or call, most time first.
#[must_use]
pub fn culprits(model: &Model) -> Table {
    struct Row<'a> {
        total: Duration,
        pieces: u64,
        longest: Duration,
        longest_in: Option<&'a Gap>,
    }
    let (idle, lines) = (model.idle(), PythonLines::of(model));
    let mut rows: HashMap<(DeviceId, Cause, Option<StringId>), Row<'_>> = HashMap::new();
    for device in idle {
        for gap in &device.gaps {
            for piece in &device.pieces[gap.pieces.clone()] {
                let name = named(piece).map(|span| model.spans().name(span));
                let length = piece.interval.length();
                let row = rows.entry((device.device, piece.cause, name)).or_insert(Row {
                    total: Duration::ZERO,
                    pieces: 0,
                    longest: Duration::ZERO,
                    longest_in: None,
                });
                row.total += length;
                row.pieces += 1;
                if length > row.longest {
                    row.longest = length;
                    row.longest_in = Some(gap);
                }
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|((device, cause, name), row)| {
        (std::cmp::Reverse(row.total), *device, *cause, name.map(|name| model.str(name)))
    });
    let mut table = Table::new("Who kept the device waiting");
    table.columns = vec![
        Column::text("device", "Device"),
        Column::text("cause", "Cause"),
        Column::text("culprit", "Operator or call"),
        Column::duration("total", "Total"),
        Column::count("pieces", "Pieces"),
        Column::duration("longest", "Longest"),
        Column::text("python", "Python, at the longest"),
    ];
    for ((device, cause, name), row) in rows {
        table.add_row(vec![
            Cell::Text(device.to_string()),
            Cell::text(cause.key()),
            name.map_or(Cell::Missing, |name| Cell::text(model.str(name))),
            Cell::Duration(row.total),
            Cell::Count(row.pieces),
            Cell::Duration(row.longest),
            row.longest_in.and_then(|gap| lines.of_gap(gap)).map_or(Cell::Missing, |line| Cell::text(&line)),
        ]);
    }
    drop_empty(&mut table, "python");
    table
}

/// Names of work tell nothing about why it was not begun.
fn named(piece: &Piece) -> Option<SpanId> {
    piece.culprit.filter(|_| piece.cause != Cause::Dispatch)
}

/// The gaps of all devices, longest first; `limit` 0 gives all.
#[must_use]
pub fn gaps(model: &Model, limit: usize) -> Table {
    let (idle, lines) = (model.idle(), PythonLines::of(model));
    let mut table = Table::new("Longest gaps");
    table.columns = vec![
        Column::text("device", "Device"),
        Column::duration("begin", "Begin"),
        Column::duration("length", "Length"),
        Column::text("cause", "Main cause"),
        Column::duration("cause_time", "Of that cause"),
        Column::text("culprit", "Operator or call"),
        Column::text("next", "Next work"),
        Column::text("python", "Python"),
    ];
    let all = idle.iter().flat_map(|device| device.gaps.iter().map(move |gap| (device, gap)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, gap)| (std::cmp::Reverse(gap.interval.length()), gap.interval.begin));
    let limit = if limit == 0 { all.len() } else { limit };
    let name = |span: Option<SpanId>| span.map_or(Cell::Missing, |span| Cell::text(model.span_name(span)));
    for (device, gap) in all.into_iter().take(limit) {
        let main = device.main_piece(gap);
        table.add_row(vec![
            Cell::Text(device.device.to_string()),
            Cell::Duration(Duration(gap.interval.begin.0)),
            Cell::Duration(gap.interval.length()),
            main.map_or(Cell::Missing, |piece| Cell::text(piece.cause.key())),
            main.map_or(Cell::Missing, |piece| Cell::Duration(piece.interval.length())),
            name(main.and_then(named).or(gap.operator)),
            name(gap.next),
            lines.of_gap(gap).map_or(Cell::Missing, |line| Cell::text(&line)),
        ]);
    }
    drop_empty(&mut table, "python");
    table
}

/// Which line of Python launched late: that of the call, the function around it, or the stack that its operator recorded.
struct PythonLines<'m> {
    model: &'m Model,
    stack: Texts<'m>,
    called_from: Texts<'m>,
}

impl<'m> PythonLines<'m> {
    fn of(model: &'m Model) -> Self {
        Self { model, stack: model.call_stack(), called_from: model.called_from() }
    }

    fn of_gap(&self, gap: &Gap) -> Option<Cow<'m, str>> {
        if let Some(function) = gap.python {
            let name = self.model.span_name(function);
            let site = gap.site.and_then(|site| call_site(&self.called_from, site));
            // The name has the line that the function begins at.
            return Some(match (site, name.split_once("): ")) {
                (Some((file, line)), Some((_, function))) => {
                    Cow::Owned(format!("{file}({line}): {function}"))
                }
                _ => Cow::Borrowed(name),
            });
        }
        let stack = self.stack.of(gap.operator?)?;
        let entries = || stack.split(';').filter(|entry| !entry.is_empty());
        entries().find(|entry| is_user_code(entry)).or_else(|| entries().next()).map(Cow::Borrowed)
    }
}

/// Takes out a column in which nothing is.
fn drop_empty(table: &mut Table, key: &str) {
    let Some(place) = table.columns.iter().position(|column| column.key == key) else { return };
    if table.rows.iter().all(|row| row.get(place).is_none_or(|cell| *cell == Cell::Missing)) {
        table.columns.remove(place);
        for row in &mut table.rows {
            row.remove(place);
        }
    }
}
