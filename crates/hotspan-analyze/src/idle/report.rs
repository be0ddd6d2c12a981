//! How idle time looks: by cause, by culprit, and the longest gaps.

use std::borrow::Cow;

use hashbrown::HashMap;
use hotspan_store::{Duration, StringId};

use crate::idle::{Cause, DeviceIdle, Gap, Piece, call_site, is_user_code};
use crate::model::Model;
use crate::model::columns::Texts;
use crate::model::device_work::DeviceId;
use crate::report::door::Door;
use crate::report::schema::{Schema, share};
use crate::report::{Cell, Table};

const CAUSE: &str = "What the host did meanwhile: data_loader waited for a batch; host_late ran operators or Python; \
     synchronise waited for the device; dispatch had launched the work already.";

/// The idle time of all devices by cause; causes that do not occur are left out.
#[must_use]
pub fn causes(idle: &[DeviceIdle]) -> Table {
    struct Row<'a> {
        device: &'a DeviceIdle,
        cause: Cause,
        total: Duration,
        pieces: u64,
        longest: Duration,
    }
    let mut rows = Vec::new();
    for device in idle {
        for cause in Cause::ALL {
            let pieces = device.pieces.iter().filter(|piece| piece.cause == cause);
            let lengths: Vec<Duration> = pieces.map(|piece| piece.interval.length()).collect();
            let (total, pieces) = (device.total(cause), lengths.len() as u64);
            rows.extend(lengths.into_iter().max().map(|longest| Row {
                device,
                cause,
                total,
                pieces,
                longest,
            }));
        }
    }
    Schema::<Row<'_>>::new("idle", "Idle time by cause")
        .text("device", "Device", |row| row.device.device.to_string())
        .help("The number of the device.")
        .text("cause", "Cause", |row| row.cause.key())
        .help(CAUSE)
        .duration("total", "Total", |row| row.total)
        .help("How long the device was idle for that cause.")
        .percent("share", "Idle %", |row| share(row.total, row.device.idle))
        .help("The total as a share of all idle time of the device.")
        .percent("recording_share", "Recording %", |row| share(row.total, row.device.window.length()))
        .help("The total as a share of the recording.")
        .count("pieces", "Pieces", |row| row.pieces)
        .help("How many pieces of gaps have that cause.")
        .duration("longest", "Longest", |row| row.longest)
        .help("The longest of these pieces.")
        .table(&rows)
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
                let name = piece.named().map(|span| model.spans().name(span));
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
    Schema::<((DeviceId, Cause, Option<StringId>), Row<'_>)>::new("culprits", "Who kept the device waiting")
        .text("device", "Device", |row| row.0.0.to_string())
        .help("The number of the device.")
        .text("cause", "Cause", |row| row.0.1.key())
        .help(CAUSE)
        .text("culprit", "Operator or call", |row| row.0.2.map(|name| model.str(name)))
        .help("What the host ran, or waited in, while the device was idle.")
        .duration("total", "Total", |row| row.1.total)
        .help("How long the device was idle for it.")
        .count("pieces", "Pieces", |row| row.1.pieces)
        .help("How many pieces of gaps it caused.")
        .duration("longest", "Longest", |row| row.1.longest)
        .help("The longest of these pieces.")
        .text("python", "Python, at the longest", |row| {
            row.1.longest_in.and_then(|gap| lines.of_gap(gap)).as_deref().map(Cell::from)
        })
        .help("The line of Python that launched late, in the gap with the longest piece.")
        .if_any()
        .door(|row| Some(culprit_door(row.0.0, row.0.1, row.0.2.map(|name| model.str(name)))))
        .table(&rows)
}

/// The kind of doors to gaps.
pub(crate) const GAP: &str = "gap";
/// The kind of doors to what keeps a device waiting.
pub(crate) const CULPRIT: &str = "culprit";

/// The door to a gap.
pub(crate) fn gap_door(device: &DeviceIdle, gap: &Gap) -> Door {
    Door::new(GAP).with("device", device.device.to_string()).with("at", gap.interval.begin.0.to_string())
}

/// The door to all pieces of gaps with the same cause and culprit.
pub(crate) fn culprit_door(device: DeviceId, cause: Cause, culprit: Option<&str>) -> Door {
    let door = Door::new(CULPRIT).with("device", device.to_string()).with("cause", cause.key());
    door.with_any("name", culprit)
}

/// The gaps of all devices, longest first; `limit` 0 gives all.
#[must_use]
pub fn gaps(model: &Model, limit: usize) -> Table {
    let (idle, lines) = (model.idle(), PythonLines::of(model));
    let all = idle.iter().flat_map(|device| device.gaps.iter().map(move |gap| (device, gap)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, gap)| (std::cmp::Reverse(gap.interval.length()), gap.interval.begin));
    let limit = if limit == 0 { all.len() } else { limit };
    all.truncate(limit);
    Schema::<(&DeviceIdle, &Gap)>::new("gaps", "Longest gaps")
        .text("device", "Device", |row| row.0.device.to_string())
        .help("The number of the device.")
        .duration("begin", "Begin", |row| Duration(row.1.interval.begin.0))
        .help("When the gap began, from the start of the trace.")
        .duration("length", "Length", |row| row.1.interval.length())
        .help("How long the device did nothing on any stream.")
        .text("cause", "Main cause", |row| row.0.main_piece(row.1).map(|piece| piece.cause.key()))
        .help(CAUSE)
        .duration("cause_time", "Of that cause", |row| {
            row.0.main_piece(row.1).map(|piece| piece.interval.length())
        })
        .help("How much of the gap has that cause.")
        .text("culprit", "Operator or call", |row| {
            let culprit = row.0.main_piece(row.1).and_then(Piece::named).or(row.1.operator);
            culprit.map(|span| model.span_name(span))
        })
        .help("What the host ran or waited in, or else the operator that launched the work which ended the gap.")
        .text("next", "Next work", |row| row.1.next.map(|span| model.span_name(span)))
        .help("The work that ended the gap.")
        .text("python", "Python", |row| lines.of_gap(row.1).as_deref().map(Cell::from))
        .help("The line of Python that launched late.")
        .if_any()
        .door(|row| Some(gap_door(row.0, row.1)))
        .table(&all)
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
