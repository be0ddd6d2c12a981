//! Operators while they are recorded: what has ended goes into a trace that grows, what still runs is held.
//!
//! Threads write on meanwhile. Each time, the records that were published since the last time are read, in order; names and
//! inputs come before the records that mention them. A chunk goes back when all of its operators have ended.

use std::sync::Arc;

use hashbrown::HashMap;
use hotspan_store::{Ident, Loss, Timestamp, TraceBuilder, TrackId};

use super::Converter;
use super::blocks::Blocks;
use crate::buffer::{self, Chunk};
use crate::calls::SpanTable;
use crate::clock::{self, Ticks, TimeLine};
use crate::torch::abi::{self, Record};
use crate::torch::session::{AddedSpan, Recording, Session};
use crate::torch::threads::{Part, ThreadRecording};

/// Sessions, one after the other, on their way into one growing trace whose times are Unix nanoseconds.
pub struct Stream {
    session: Option<Session>,
    /// What sessions that were stopped have left.
    rest: Vec<Recording>,
    converter: Option<Converter>,
    cursors: HashMap<u64, ThreadCursor>,
    /// The last look.
    looked: Ticks,
    records: u64,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("session", &self.session).finish_non_exhaustive()
    }
}

/// How far a thread was read.
struct ThreadCursor {
    track: TrackId,
    torch_thread: u64,
    blocks: Blocks,
    /// The chunk that was not full the last time; how many of its slots and words of blocks were read.
    current: Option<(Arc<Chunk>, usize, usize)>,
    held: Vec<Held>,
    dropped: u64,
    inputs_dropped: u64,
    has_ended: bool,
}

/// An operator that runs, or whose node has not come yet.
struct Held {
    operator: abi::Operator,
    time: Timestamp,
    slot: *mut u8,
    awaits_node: bool,
    /// Keeps the slot where it is.
    _chunk: Arc<Chunk>,
}

// SAFETY: the slot is in the chunk that comes with it, and is read with the atomics that write it.
unsafe impl Send for Held {}

impl Stream {
    /// Begins with a running session.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self {
            session: Some(session),
            rest: Vec::new(),
            converter: None,
            cursors: HashMap::new(),
            looked: clock::now(),
            records: 0,
        }
    }

    /// The session that runs, if one does.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Ends the session, so that another one can begin. What it recorded comes with the next [`Self::drain`].
    pub fn pause(&mut self) {
        if let Some(session) = self.session.take() {
            self.rest.push(session.stop());
        }
    }

    /// Goes on with a new session.
    pub fn resume(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// How many events were taken so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Moves what is new into the trace. It must be the same one each time, with the Unix epoch as its base.
    pub fn drain(&mut self, builder: &mut TraceBuilder) {
        for rest in std::mem::take(&mut self.rest) {
            let Recording { shim, options, process, threads, added, calibration, stopped, .. } = rest;
            self.enter(builder, shim, options, process, &calibration);
            self.take(process, threads, added, Some(stopped));
            self.leave(builder);
            self.cursors.clear();
        }
        if let Some(session) = &self.session {
            buffer::sweep_limbo();
            let (shim, options, process) = (session.shim(), session.options(), session.process());
            let calibration = session.calibrate();
            // Before the threads are read: all that began earlier is among what they show.
            let horizon = clock::now();
            let (added, threads) = (session.take_added(), session.drain());
            self.enter(builder, shim, options, process, &calibration);
            self.take(process, threads, added, None);
            if let Some(converter) = &mut self.converter {
                let before = converter.time(horizon.0).0;
                converter.flows.settle(&mut converter.builder, before);
            }
            self.leave(builder);
        }
    }

    /// Ends the session and moves the rest into the trace.
    pub fn finish(mut self, builder: &mut TraceBuilder) {
        self.pause();
        self.drain(builder);
    }

    /// Adds calls of Python functions that were traced meanwhile.
    pub fn add_calls(&mut self, calls: SpanTable, builder: &mut TraceBuilder) {
        if let Some(converter) = &mut self.converter {
            std::mem::swap(builder, &mut converter.builder);
            converter.calls(Ident::Int(i64::from(std::process::id())), calls);
            std::mem::swap(builder, &mut converter.builder);
        }
    }

    /// Lends the trace to the converter.
    fn enter(
        &mut self,
        builder: &mut TraceBuilder,
        shim: abi::Functions,
        options: crate::torch::Options,
        process: u32,
        calibration: &clock::Calibration,
    ) {
        let now = clock::now();
        let lent = std::mem::replace(builder, TraceBuilder::new());
        let converter = if let Some(converter) = &mut self.converter {
            converter.builder = lent;
            converter.clock.bend(self.looked, now, calibration);
            converter
        } else {
            let clock = TimeLine::fixed(*calibration);
            let converter = self.converter.insert(Converter::new(lent, shim, clock, options));
            converter.describe(options, process);
            converter
        };
        converter.operators = converter.operators.max(converter.builder.last_id());
        self.looked = now;
    }

    fn leave(&mut self, builder: &mut TraceBuilder) {
        if let Some(converter) = &mut self.converter {
            let unfinished = std::mem::take(&mut converter.unfinished);
            converter.lose(Loss::UnfinishedSpan, unfinished);
            converter.builder.reserve_ids(converter.operators);
            std::mem::swap(builder, &mut converter.builder);
        }
    }

    fn take(
        &mut self,
        process: u32,
        threads: Vec<ThreadRecording>,
        added: Vec<AddedSpan>,
        stopped: Option<Ticks>,
    ) {
        let Some(converter) = &mut self.converter else { return };
        let process = Ident::Int(i64::from(process));
        if let Some(stopped) = stopped {
            converter.stopped = stopped;
        }
        for thread in threads {
            let identity = &thread.identity;
            let cursor = self.cursors.entry(identity.number).or_insert_with(|| ThreadCursor {
                track: converter.track(process, identity.os_thread, &identity.name),
                torch_thread: identity.torch_thread,
                blocks: Blocks::default(),
                current: None,
                held: Vec::new(),
                dropped: 0,
                inputs_dropped: 0,
                has_ended: false,
            });
            if stopped.is_some() || thread.has_ended {
                converter.track(process, identity.os_thread, &identity.name);
            }
            self.records += cursor.read(converter, &thread, stopped.is_some());
        }
        // Operators of threads that are gone may end elsewhere.
        for cursor in self.cursors.values_mut() {
            cursor.release(converter, stopped.is_some());
        }
        self.cursors.retain(|_, cursor| !cursor.has_ended || !cursor.held.is_empty());
        for span in added {
            let track = converter.builder.track(process, Ident::Int(span.os_thread));
            if converter.builder.track_mut(track).name.is_none() {
                converter.track(process, span.os_thread, "");
            }
            converter.added_span(track, &span);
        }
        if stopped.is_some() {
            converter.flows.settle(&mut converter.builder, i64::MAX - 1);
        }
    }
}

impl ThreadCursor {
    /// Converts what is new of a thread; returns how many records that were.
    fn read(&mut self, converter: &mut Converter, thread: &ThreadRecording, is_last: bool) -> u64 {
        self.release(converter, false);
        let before = (self.dropped, self.inputs_dropped);
        (self.dropped, self.inputs_dropped) = (thread.dropped, thread.inputs_dropped);
        converter.lose(Loss::BufferFull, self.dropped.saturating_sub(before.0));
        converter.lose(Loss::InputsDropped, self.inputs_dropped.saturating_sub(before.1));
        let records = thread.parts.iter().map(|part| self.part(converter, part)).sum();
        if is_last || thread.has_ended {
            self.has_ended = true;
            self.current = None;
            for held in &mut self.held {
                held.awaits_node = false;
            }
        }
        records
    }

    fn part(&mut self, converter: &mut Converter, part: &Part) -> u64 {
        let (slots_read, words_read) = match &self.current {
            Some((chunk, slots, words)) if Arc::ptr_eq(chunk, part.chunk()) => (*slots, *words),
            _ => (0, 0),
        };
        let words = part.blocks();
        converter.read_blocks(words.get(words_read..).unwrap_or_default(), &mut self.blocks);
        let mut taken = slots_read;
        let mut records = 0;
        let mut slots = part.slots().skip(slots_read).inspect(|_| taken += 1).peekable();
        while let Some(&slot) = slots.peek() {
            // SAFETY: `part` shows the slots down to the one that its thread had published, and keeps their chunk; `skip`
            // leaves out whole records, since `taken` counts the slots of those that were read.
            let Some(record) = (unsafe { Record::read(&mut slots) }) else { break };
            records += 1;
            match record {
                Record::Operator(operator) => self.operator(converter, operator, slot, part.chunk()),
                // Whole programs are recorded without.
                Record::Extra(_) => {}
                Record::Memory(memory, totals) => converter.memory(self.track, &memory, &totals),
            }
        }
        drop(slots);
        self.current = Some((Arc::clone(part.chunk()), taken, words.len()));
        records
    }

    fn operator(
        &mut self,
        converter: &mut Converter,
        operator: abi::Operator,
        slot: *mut u8,
        chunk: &Arc<Chunk>,
    ) {
        if let Some(held) = self.held.last_mut()
            && held.awaits_node
        {
            held.awaits_node = false;
            held.operator = held.operator.of_node(&operator);
        }
        let awaits_node = self.blocks.name(&operator).is_evaluation;
        if !awaits_node {
            converter.link(self.track, self.torch_thread, &operator);
            if operator.end != 0 {
                converter.operator(self.track, &operator, None, &self.blocks);
                return;
            }
        }
        let time = converter.time(operator.start);
        self.held.push(Held { operator, time, slot, awaits_node, _chunk: Arc::clone(chunk) });
    }

    /// Converts what has ended of what was held, or all of it.
    fn release(&mut self, converter: &mut Converter, all: bool) {
        for held in std::mem::take(&mut self.held) {
            // SAFETY: `operator` took the slot from a part, where it was published, and `_chunk` keeps the memory.
            let record = unsafe { Record::read(&mut std::iter::once(held.slot)) };
            let Some(Record::Operator(now)) = record else { continue };
            if all || (now.end != 0 && !held.awaits_node) {
                let mut operator = held.operator;
                (operator.end, operator.kind) = (now.end, now.kind);
                converter.operator(self.track, &operator, Some(held.time), &self.blocks);
            } else {
                self.held.push(held);
            }
        }
    }
}
