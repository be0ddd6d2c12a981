//! A row of the tables of idle time: one gap of a device, or all pieces of gaps that one call is behind.

use hotspan_store::SpanId;

use super::calls::Calls;
use super::{Thing, only, places};
use crate::idle::{DeviceIdle, Gap, Piece, culprit_door, culprits, gap_door, gaps};
use crate::intervals::Interval;
use crate::model::Model;
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::Schema;

const MOST_PIECES: usize = 50;

pub(super) fn describe_gap(model: &Model, door: &Door) -> Option<Thing> {
    let all = model.idle().iter().flat_map(|device| device.gaps.iter().map(move |gap| (device, gap)));
    let (device, gap) = all.into_iter().find(|(device, gap)| gap_door(device, gap) == *door)?;
    let name = format!("Idle for {} on device {}", gap.interval.length(), device.device);
    let mut thing = Thing::new("Gap", &name, only(gaps(model, 0), |known| known == door)?);
    thing.stretch = Some(gap.interval);
    let main = device.main_piece(gap).and_then(|piece| piece.culprit);
    let thing = thing
        .with_related(model, "Behind it", main)
        .with_related(model, "Launched by", gap.operator)
        .with_related(model, "Next work", gap.next);
    let calls: Vec<SpanId> = gap.operator.or(gap.next).into_iter().collect();
    let tables = [pieces(model, device, gap), places::modules(model, &calls)];
    let tables = tables.into_iter().flatten().collect();
    Some(Thing { tables, stacks: places::stacks(model, &calls), ..thing })
}

/// The parts of a gap, in order of time.
fn pieces(model: &Model, device: &DeviceIdle, gap: &Gap) -> Option<Table> {
    let pieces = device.pieces.get(gap.pieces.clone())?;
    let shown = &pieces[..pieces.len().min(MOST_PIECES)];
    let culprit = |piece: &Piece| piece.named().map(|span| model.span_name(span));
    let title = if shown.len() < pieces.len() {
        format!("Causes (the first {MOST_PIECES} of {})", pieces.len())
    } else {
        "Causes".to_owned()
    };
    let table = Schema::<Piece>::new("pieces", title)
        .text("name", "Cause", |piece| piece.cause.title())
        .help("What the host did meanwhile.")
        .duration("length", "Length", |piece| piece.interval.length())
        .help("How long.")
        .text("culprit", "Operator or call", culprit)
        .help("What the host ran or waited in.")
        .door(|piece| Some(culprit_door(device.device, piece.cause, culprit(piece))))
        .table(shown);
    table.filled()
}

pub(super) fn describe_culprit(model: &Model, door: &Door) -> Option<Thing> {
    let (device, cause) = (door.get("device")?, door.get("cause")?);
    let mut times: Vec<(Interval, Option<SpanId>)> = Vec::new();
    let mut title = "";
    for idle in model.idle().iter().filter(|idle| idle.device.to_string() == device) {
        for piece in idle.pieces.iter().filter(|piece| piece.cause.key() == cause) {
            let culprit = piece.named();
            if culprit.map(|span| model.span_name(span)) == door.get("name") {
                title = piece.cause.title();
                times.push((piece.interval, piece.culprit));
            }
        }
    }
    let name = door.get("name").unwrap_or(title);
    let mut thing = Thing::new("Idle time", name, only(culprits(model), |known| known == door)?);
    thing.calls = Calls::of_times(model, &times);
    let mut spans: Vec<SpanId> = times.iter().filter_map(|&(_, span)| span).collect();
    spans.sort_unstable();
    spans.dedup();
    thing.stacks = places::stacks(model, &spans);
    thing.tables = places::modules(model, &spans).into_iter().collect();
    Some(thing)
}
