//! What an event adds to the trace, by its phase: a span, an instant, a counter, an arrow, or the name of a thread.

use std::borrow::Cow;

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, CategoryId, Duration, EventRow, FlowPhase, FlowRow, Ident, InstantRow, InstantScope,
    Loss, SpanRow, StringId, Timestamp, TrackId,
};
use serde_json::Value;

use super::event::EventReader;
use super::fields::{Fields, IdField, Time};
use super::numbers::parse_micros;

/// Times beyond 146 years are refused, so that the difference of any two still fits 64 bits.
const MAX_NANOS: u64 = 1 << 62;

/// A begin event that waits for its end.
pub(super) struct Open {
    time: Timestamp,
    name: StringId,
    category: CategoryId,
    args: PendingArgs,
    order: u64,
}

impl EventReader<'_> {
    /// Adds a whole event to the trace.
    pub(super) fn add(&mut self, fields: &Fields<'_>, event: &[u8], offset: u64) {
        match fields.phase {
            Some(b'X') => self.add_span(fields, offset),
            Some(b's' | b't' | b'f') => self.add_flow(fields, offset),
            Some(b'i' | b'I') => self.add_instant(fields, offset),
            Some(b'C') => {
                if let Some(event) = self.event(fields, offset) {
                    self.builder.push_counter(event);
                }
            }
            Some(b'B') => self.begin(fields, offset),
            Some(b'E') => self.end(fields, offset),
            Some(b'M') if self.describe(fields, offset) => {}
            Some(phase) if phase.is_ascii_graphic() => {
                let text = self.builder.intern_bytes(event, offset);
                self.builder.push_verbatim(text);
                if fields.phase != Some(b'M') {
                    self.builder.losses.add(Loss::KeptVerbatim, Some(offset));
                }
            }
            _ => self.builder.losses.add(Loss::MissingField, Some(offset)),
        }
    }

    /// The part common to all events, or a counted loss.
    #[inline]
    fn event(&mut self, fields: &Fields<'_>, offset: u64) -> Option<EventRow> {
        let (Some(time), Some(name)) = (fields.time, fields.name) else {
            self.builder.losses.add(Loss::MissingField, Some(offset));
            return None;
        };
        let time = self.nanos(time, offset)?;
        let name = self.intern(name, offset);
        let category = self.category(fields.category, offset);
        let track = self.track(fields);
        // Keys that mean something for some phases only are kept as they are for the others.
        if let (Some(id), false) = (fields.id, matches!(fields.phase, Some(b's' | b't' | b'f'))) {
            let value = match id {
                IdField::Int(number) => Arg::Int(number),
                IdField::Text(text) => Arg::Text(self.intern(text, offset)),
            };
            self.builder.push_arg(&mut self.pending, ArgOrigin::Event, b"id", value);
        }
        let args = self.builder.commit_args(&mut self.pending);
        Some(EventRow { time: Timestamp(time), name, category, track, args })
    }

    fn track(&mut self, fields: &Fields<'_>) -> TrackId {
        let process = fields.process.unwrap_or(Ident::Int(0));
        self.builder.track(process, fields.thread.unwrap_or(Ident::Int(0)))
    }

    #[inline]
    fn nanos(&mut self, time: Time<'_>, offset: u64) -> Option<i64> {
        let nanos = match time {
            Time::Nanos(nanos) => Some((nanos, false)),
            Time::Text(text) => parse_micros(text),
        };
        match nanos {
            Some((nanos, rounded)) if nanos.unsigned_abs() < MAX_NANOS => {
                if rounded {
                    self.builder.losses.add(Loss::RoundedTime, Some(offset));
                }
                Some(nanos)
            }
            _ => {
                self.builder.losses.add(Loss::BadTimestamp, Some(offset));
                None
            }
        }
    }

    fn add_span(&mut self, fields: &Fields<'_>, offset: u64) {
        let duration = match fields.duration {
            Some(text) => match self.nanos(text, offset) {
                Some(nanos) => nanos,
                None => return,
            },
            None => {
                self.builder.losses.add(Loss::MissingDuration, Some(offset));
                0
            }
        };
        if let Some(event) = self.event(fields, offset) {
            if duration < 0 {
                self.builder.losses.add(Loss::NegativeDuration, Some(offset));
            }
            self.builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
    }

    fn add_flow(&mut self, fields: &Fields<'_>, offset: u64) {
        let id = match fields.id {
            Some(IdField::Int(number)) => number,
            Some(IdField::Text(text)) => {
                // A word names the arrow: its string id tells arrows apart, and the word itself is kept.
                let text = self.intern(text, offset);
                self.builder.push_arg(&mut self.pending, ArgOrigin::Event, b"id", Arg::Text(text));
                text.0.into()
            }
            None => return self.builder.losses.add(Loss::MissingField, Some(offset)),
        };
        let phase = match fields.phase {
            Some(b's') => FlowPhase::Start,
            Some(b't') => FlowPhase::Step,
            _ => FlowPhase::End,
        };
        if let Some(event) = self.event(fields, offset) {
            self.builder.push_flow(FlowRow { event, id, phase, binds_enclosing: fields.binds_enclosing });
        }
    }

    fn add_instant(&mut self, fields: &Fields<'_>, offset: u64) {
        let scope = match fields.scope {
            Some(b't') => InstantScope::Thread,
            Some(b'p') => InstantScope::Process,
            Some(b'g') => InstantScope::Global,
            _ => InstantScope::Unspecified,
        };
        if let Some(event) = self.event(fields, offset) {
            self.builder.push_instant(InstantRow { event, scope });
        }
    }

    fn begin(&mut self, fields: &Fields<'_>, offset: u64) {
        let (Some(time), Some(name)) = (fields.time, fields.name) else {
            return self.builder.losses.add(Loss::MissingField, Some(offset));
        };
        let Some(time) = self.nanos(time, offset) else { return };
        let name = self.intern(name, offset);
        let category = self.category(fields.category, offset);
        let track = self.track(fields);
        let args = std::mem::take(&mut self.pending);
        let open = Open { time: Timestamp(time), name, category, args, order: offset };
        self.open.entry(track).or_default().push(open);
    }

    fn end(&mut self, fields: &Fields<'_>, offset: u64) {
        let track = self.track(fields);
        let Some(time) = fields.time else {
            return self.builder.losses.add(Loss::MissingField, Some(offset));
        };
        let Some(time) = self.nanos(time, offset) else { return };
        let Some(open) = self.open.get_mut(&track).and_then(Vec::pop) else {
            return self.builder.losses.add(Loss::UnmatchedEnd, Some(offset));
        };
        let end_args = std::mem::replace(&mut self.pending, open.args);
        self.builder.append_args(&mut self.pending, &end_args);
        let duration = Timestamp(time).since(open.time);
        if duration < Duration::ZERO {
            self.builder.losses.add(Loss::NegativeDuration, Some(offset));
        }
        self.close(track, open.time, open.name, open.category, duration);
    }

    fn close(
        &mut self,
        track: TrackId,
        time: Timestamp,
        name: StringId,
        category: CategoryId,
        duration: Duration,
    ) {
        let args = self.builder.commit_args(&mut self.pending);
        self.builder.push_span(SpanRow { event: EventRow { time, name, category, track, args }, duration });
    }

    /// Names and sort orders of processes and threads. `false` for metadata of another kind.
    fn describe(&mut self, fields: &Fields<'_>, offset: u64) -> bool {
        let (Some(name), Some(process)) = (fields.name, fields.process) else { return false };
        let text = String::from_utf8_lossy(fields.args.unwrap_or_default());
        if matches!(text, Cow::Owned(_)) {
            self.builder.losses.add(Loss::InvalidUtf8, Some(offset));
        }
        let args = serde_json::from_str::<Value>(&text).ok();
        let value = |key: &str| args.as_ref().and_then(|args| args.get(key)).cloned();
        let (key, is_sort) = match name.bytes {
            b"process_name" | b"thread_name" => ("name", false),
            b"process_labels" => ("labels", false),
            b"process_sort_index" | b"thread_sort_index" => ("sort_index", true),
            _ => return false,
        };
        let Some(value) = value(key) else { return false };
        let text = match &value {
            Value::String(text) => self.builder.intern_bytes(text.as_bytes(), offset),
            other => self.builder.intern(&other.to_string()),
        };
        let index = value.as_i64();
        if is_sort && index.is_none() {
            return false;
        }
        if name.bytes.starts_with(b"process") {
            let id = self.builder.process(process);
            let process = self.builder.process_mut(id);
            match name.bytes {
                b"process_name" => process.name = Some(text),
                b"process_labels" => process.labels = Some(text),
                _ => process.sort_index = index,
            }
        } else {
            let id = self.track(fields);
            let track = self.builder.track_mut(id);
            match name.bytes {
                b"thread_name" => track.name = Some(text),
                _ => track.sort_index = index,
            }
        }
        true
    }

    /// Closes begin events that never ended, at the last moment of the trace, in file order.
    pub(crate) fn finish(&mut self) {
        let last = self.builder.last_time();
        let mut left: Vec<(TrackId, Open)> = self
            .open
            .drain()
            .flat_map(|(track, open)| open.into_iter().map(move |open| (track, open)))
            .collect();
        left.sort_by_key(|(_, open)| open.order);
        for (track, open) in left {
            self.builder.losses.add(Loss::UnfinishedSpan, Some(open.order));
            let duration = last.since(open.time).max(Duration::ZERO);
            self.pending = open.args;
            self.close(track, open.time, open.name, open.category, duration);
        }
    }
}
