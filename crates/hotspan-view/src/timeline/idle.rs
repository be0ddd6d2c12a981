//! Why devices were idle, as a lane for each: every idle moment with its cause and what was behind it.

use std::collections::HashMap;

use hotspan_analyze::Model;
use hotspan_analyze::idle::{Cause, DeviceIdle, Gap, Piece as IdlePiece};
use hotspan_store::{SpanId, StringId};

use super::lanes::{Lanes, NO_SPAN, Piece};

/// The idle time of all devices, and the names of its pieces: those are numbered after the strings of the trace.
#[derive(Debug, Default)]
pub(super) struct IdleTracks {
    /// Of each device.
    pub(super) lanes: Vec<Lanes>,
    pub(super) names: Vec<String>,
}

/// What the kinds of idle time are called among the kinds of spans.
pub(super) fn categories() -> impl Iterator<Item = String> {
    Cause::ALL.into_iter().map(|cause| format!("idle {}", cause.key()))
}

impl IdleTracks {
    /// Of all devices that were idle; `category` is the kind of the first cause.
    pub(super) fn of(model: &Model, category: u16) -> Self {
        let mut result = Self::default();
        let first = model.strings().len() as u32;
        let mut known: HashMap<(Cause, Option<StringId>), u32> = HashMap::new();
        for idle in model.idle() {
            let mut lanes = Lanes::default();
            for piece in &idle.pieces {
                let culprit = piece.named().map(|span| model.spans().name(span));
                let names = &mut result.names;
                let name = *known.entry((piece.cause, culprit)).or_insert_with(|| {
                    names.push(name_of(model, piece));
                    names.len() as u32 - 1
                });
                let cause = Cause::ALL.iter().position(|&cause| cause == piece.cause).unwrap_or(0);
                lanes.add(
                    0,
                    &Piece {
                        begin: piece.interval.begin.0,
                        end: piece.interval.end.0,
                        name: StringId(first + name),
                        category: category + cause as u16,
                        span: NO_SPAN,
                    },
                );
            }
            lanes.finish();
            result.lanes.push(lanes);
        }
        result
    }
}

fn name_of(model: &Model, piece: &IdlePiece) -> String {
    let culprit = piece.named().map(|span: SpanId| model.span_name(span));
    culprit.map_or(piece.cause.title().to_owned(), |culprit| format!("{}: {culprit}", piece.cause.title()))
}

/// The gap of a device around a moment, and the piece of it.
pub(crate) fn idle_at(idle: &DeviceIdle, time: i64) -> Option<(&Gap, &IdlePiece)> {
    let gap = idle.gaps.partition_point(|gap| gap.interval.begin.0 <= time).checked_sub(1)?;
    let gap = &idle.gaps[gap];
    let pieces = idle.pieces.get(gap.pieces.clone())?;
    let piece = pieces.partition_point(|piece| piece.interval.begin.0 <= time).checked_sub(1)?;
    Some((gap, &pieces[piece]))
}
