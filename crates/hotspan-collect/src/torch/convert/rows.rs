//! The rows that records become: operators, ranges, reports of memory, with the args that Kineto gives them.

use hotspan_store::{Arg, Args, EventRow, InstantRow, InstantScope, Place, SpanRow, Timestamp, TrackId};

use super::Converter;
use super::blocks::{Blocks, InternedInputs};
use super::flows::Link;
use crate::host_spans::HostSpan;
use crate::torch::abi;
use crate::torch::session::AddedSpan;

/// Keys and order as Kineto writes them.
mod key {
    pub(super) const EXTERNAL_ID: &[u8] = b"External id";
    pub(super) const RECORD_FUNCTION: &[u8] = b"Record function id";
    pub(super) const SEQUENCE: &[u8] = b"Sequence number";
    pub(super) const FORWARD_THREAD: &[u8] = b"Fwd thread id";
    pub(super) const CONCRETE: &[u8] = b"Concrete Inputs";
    pub(super) const TYPES: &[u8] = b"Input type";
    pub(super) const STRIDES: &[u8] = b"Input Strides";
    pub(super) const DIMS: &[u8] = b"Input Dims";
    pub(super) const INDEX: &[u8] = b"Ev Idx";
    /// Not Kineto's: marks ranges that ended on another thread or by a future.
    pub(super) const ASYNC: &[u8] = b"Async";
}

impl Converter {
    fn arg(&mut self, key: &[u8], value: Arg) {
        self.builder.push_arg(&mut self.pending, Place::Args, key, value);
    }

    fn commit(&mut self) -> Args {
        self.builder.push_arg(&mut self.pending, Place::Args, key::INDEX, Arg::Int(self.index));
        self.index += 1;
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        args
    }

    /// Notes an operator that may be an end of a flow. The flow ends at the node, not at the engine's evaluation around
    /// it, which has the same number.
    pub(super) fn link(&mut self, track: TrackId, torch_thread: u64, operator: &abi::Operator) {
        let forward_thread = operator.forward_thread;
        if let Some(sequence) = operator.sequence()
            && forward_thread != abi::UNKNOWN_THREAD
        {
            let time = self.time(operator.start);
            self.flows.push(Link { time: time.0, track, torch_thread, forward_thread, sequence });
        }
    }

    /// Adds an operator; `start` where its beginning was converted before.
    pub(super) fn operator(
        &mut self,
        track: TrackId,
        operator: &abi::Operator,
        start: Option<Timestamp>,
        blocks: &Blocks,
    ) {
        let name = blocks.name(operator).id;
        let inputs = blocks.inputs(operator);
        let time = start.unwrap_or_else(|| self.time(operator.start));
        let end = if operator.end == 0 {
            self.unfinished += 1;
            self.time(self.stopped.0.max(operator.start))
        } else {
            self.time(operator.end)
        };
        self.operators += 1;
        let sequence = operator.sequence();
        let sequence = sequence.map(|sequence| [sequence, i64::from(operator.forward_thread)]);
        let args = self.operator_args(sequence, inputs, operator.kind & abi::KIND_ASYNC != 0);
        let is_range = operator.kind & !abi::KIND_ASYNC == abi::KIND_USER_SCOPE;
        let category = if is_range { self.annotation } else { self.operator };
        let event = EventRow { time, name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: end.since(time) });
        if let Some(host) = &mut self.host {
            let (start, end, external) = (time.0, end.0, self.operators);
            host.push(track, HostSpan { start, end, external, name, is_annotation: is_range });
        }
    }

    /// Kineto's keys come in four combinations; each is looked up once and its rows are appended after that.
    fn operator_args(
        &mut self,
        sequence: Option<[i64; 2]>,
        inputs: Option<&InternedInputs>,
        is_async: bool,
    ) -> Args {
        let positional = inputs.and_then(|inputs| inputs.positional);
        let keywords = inputs.map_or(&[][..], |inputs| &inputs.keywords);
        let mut row = [(&[][..], Arg::Int(0)); 9];
        let mut length = 0;
        let mut put = |key: &'static [u8], value: Arg| {
            row[length] = (key, value);
            length += 1;
        };
        put(key::EXTERNAL_ID, Arg::Int(self.operators));
        if positional.is_none() {
            put(key::RECORD_FUNCTION, Arg::Int(0));
        }
        if let Some([sequence, forward_thread]) = sequence {
            put(key::SEQUENCE, Arg::Int(sequence));
            put(key::FORWARD_THREAD, Arg::Int(forward_thread));
        }
        if let Some([concrete, types, strides, dims]) = positional {
            put(key::RECORD_FUNCTION, Arg::Int(0));
            put(key::CONCRETE, Arg::Json(concrete));
            put(key::TYPES, Arg::Json(types));
            put(key::STRIDES, Arg::Json(strides));
            put(key::DIMS, Arg::Json(dims));
        }
        let plain = keywords.is_empty() && !is_async;
        let combination = usize::from(positional.is_some()) * 2 + usize::from(sequence.is_some());
        if let (true, Some(layout)) = (plain, self.layouts[combination]) {
            let mut values = row.map(|(_, value)| value);
            let mut all = [Arg::Int(0); 10];
            all[..9].swap_with_slice(&mut values);
            all[length] = Arg::Int(self.index);
            if let Some(args) = self.builder.repeat_args(layout, &all[..=length]) {
                self.index += 1;
                return args;
            }
        }
        for &(key, value) in &row[..length] {
            self.arg(key, value);
        }
        for (key, value) in keywords {
            self.arg(key.as_bytes(), *value);
        }
        if is_async {
            self.arg(key::ASYNC, Arg::Int(1));
        }
        let args = self.commit();
        if plain {
            self.layouts[combination] = Some(args.layout);
        }
        args
    }

    pub(super) fn added_span(&mut self, track: TrackId, span: &AddedSpan) {
        self.operators += 1;
        self.arg(key::EXTERNAL_ID, Arg::Int(self.operators));
        self.arg(key::RECORD_FUNCTION, Arg::Int(0));
        let args = self.commit();
        let name = self.builder.intern(&span.name);
        let time = self.time(span.start.0);
        let category = if span.is_call { self.builder.category("python_function") } else { self.annotation };
        let event = EventRow { time, name, category, track, args };
        let end = self.time(span.end.0);
        self.builder.push_span(SpanRow { event, duration: end.since(time) });
        if let (Some(host), false) = (&mut self.host, span.is_call) {
            let (start, end, external) = (time.0, end.0, self.operators);
            host.push(track, HostSpan { start, end, external, name, is_annotation: true });
        }
    }

    pub(super) fn memory(&mut self, track: TrackId, memory: &abi::Memory, totals: &abi::MemoryTotals) {
        self.arg(b"Total Reserved", Arg::Int(totals.reserved as i64));
        self.arg(b"Total Allocated", Arg::Int(totals.allocated as i64));
        self.arg(b"Bytes", Arg::Int(memory.bytes));
        self.arg(b"Device Id", Arg::Int(i64::from(memory.device_index)));
        self.arg(b"Device Type", Arg::Int(i64::from(memory.device_type)));
        let out = memory.kind == abi::KIND_OUT_OF_MEMORY;
        if !out {
            self.arg(b"Addr", Arg::Int(memory.address as i64));
        }
        let args = self.commit();
        let name = if out { self.out_of_memory } else { self.memory };
        let event = EventRow { time: self.time(memory.time), name, category: self.instant, track, args };
        self.builder.push_instant(InstantRow { event, scope: InstantScope::Thread });
    }
}
