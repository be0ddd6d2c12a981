//! The rows that records become: operators, ranges, reports of memory, with the args that Kineto gives them.

use hotspan_store::{
    Arg, ArgOrigin, Args, EventRow, InstantRow, InstantScope, SpanRow, StringId, Timestamp, TrackId, keys,
};

use super::Converter;
use super::blocks::{Blocks, InternedInputs};
use super::flows::Link;
use crate::host_spans::HostSpan;
use crate::torch::abi;
use crate::torch::session::AddedSpan;

/// What few operators have.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Rare {
    /// It ended on another thread, or by a future.
    is_async: bool,
    /// The modules of TorchScript that it ran in.
    modules: Option<StringId>,
}

impl Converter {
    fn arg(&mut self, key: &str, value: Arg) {
        self.builder.push_arg(&mut self.pending, ArgOrigin::Args, key.as_bytes(), value);
    }

    fn commit(&mut self) -> Args {
        self.arg(keys::EVENT_INDEX, Arg::Int(self.index));
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
        if let Some(tensors) = blocks.tensors(&self.extra) {
            self.tensors.name(self.operators, tensors);
        }
        let sequence = operator.sequence();
        let sequence = sequence.map(|sequence| [sequence, i64::from(operator.forward_thread)]);
        let scope = operator.kind & !abi::KIND_ASYNC;
        let rare =
            Rare { is_async: operator.kind & abi::KIND_ASYNC != 0, modules: blocks.modules(&self.extra) };
        let args = self.operator_args(sequence, inputs, scope, rare);
        let is_range = scope == abi::KIND_USER_SCOPE;
        let category = if is_range { self.annotation } else { self.operator };
        let event = EventRow { time, name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: end.since(time) });
        if let Some(host) = &mut self.host {
            let (start, end, external) = (time.0, end.0, self.operators);
            host.push(track, HostSpan { start, end, external, name, is_annotation: is_range });
        }
    }

    /// Kineto's keys, in its order, and the scope where the category does not imply it. They come in few combinations; each is
    /// looked up once and its rows are appended after that.
    fn operator_args(
        &mut self,
        sequence: Option<[i64; 2]>,
        inputs: Option<&InternedInputs>,
        scope: u8,
        rare: Rare,
    ) -> Args {
        let positional = inputs.and_then(|inputs| inputs.positional);
        let keywords = inputs.map_or(&[][..], |inputs| &inputs.keywords);
        let mut row = [("", Arg::Int(0)); 10];
        let mut length = 0;
        let mut put = |key: &'static str, value: Arg| {
            row[length] = (key, value);
            length += 1;
        };
        put(keys::EXTERNAL_ID, Arg::Int(self.operators));
        if positional.is_none() {
            put(keys::RECORD_FUNCTION_ID, Arg::Int(self.extra.id));
        }
        if let Some([sequence, forward_thread]) = sequence {
            put(keys::SEQUENCE_NUMBER, Arg::Int(sequence));
            put(keys::FORWARD_THREAD, Arg::Int(forward_thread));
        }
        if let Some([concrete, types, strides, dims]) = positional {
            put(keys::RECORD_FUNCTION_ID, Arg::Int(self.extra.id));
            put(keys::CONCRETE_INPUTS, Arg::Json(concrete));
            put(keys::INPUT_TYPES, Arg::Json(types));
            put(keys::INPUT_STRIDES, Arg::Json(strides));
            put(keys::INPUT_DIMS, Arg::Json(dims));
        }
        let has_scope = !matches!(scope, abi::KIND_FUNCTION | abi::KIND_USER_SCOPE);
        if has_scope {
            put(keys::SCOPE, Arg::Int(scope.into()));
        }
        let plain = keywords.is_empty() && rare == Rare::default();
        let combination = usize::from(has_scope) * 4
            + usize::from(positional.is_some()) * 2
            + usize::from(sequence.is_some());
        if let (true, Some(layout)) = (plain, self.arg_schemas[combination]) {
            let mut values = row.map(|(_, value)| value);
            let mut all = [Arg::Int(0); 11];
            all[..10].swap_with_slice(&mut values);
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
            self.arg(key, *value);
        }
        if rare.is_async {
            self.arg(keys::ASYNC, Arg::Int(1));
        }
        if let Some(modules) = rare.modules {
            self.arg(keys::MODULE_HIERARCHY, Arg::Text(modules));
        }
        let args = self.commit();
        if plain {
            self.arg_schemas[combination] = Some(args.schema);
        }
        args
    }

    pub(super) fn added_span(&mut self, track: TrackId, span: &AddedSpan) {
        self.operators += 1;
        self.arg(keys::EXTERNAL_ID, Arg::Int(self.operators));
        self.arg(keys::RECORD_FUNCTION_ID, Arg::Int(0));
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
        self.arg(keys::TOTAL_RESERVED, Arg::Int(totals.reserved as i64));
        self.arg(keys::TOTAL_ALLOCATED, Arg::Int(totals.allocated as i64));
        self.arg(keys::BYTES, Arg::Int(memory.bytes));
        self.arg(keys::DEVICE_ID, Arg::Int(i64::from(memory.device_index)));
        self.arg(keys::DEVICE_TYPE, Arg::Int(i64::from(memory.device_type)));
        let out = memory.kind == abi::KIND_OUT_OF_MEMORY;
        if !out {
            self.arg(keys::ADDRESS, Arg::Int(memory.address as i64));
        }
        let args = self.commit();
        let name = if out { self.out_of_memory } else { self.memory };
        let event = EventRow { time: self.time(memory.time), name, category: self.instant, track, args };
        self.builder.push_instant(InstantRow { event, scope: InstantScope::Thread });
    }
}
