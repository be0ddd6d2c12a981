//! torch's `events()`: every event of a trace on its own, with its place in the tree and what is its own of time, memory
//! and device work. The numbers are those that [`crate::averages`] adds up.

use std::sync::OnceLock;

use hotspan_store::{Bytes, Duration, SpanId, Timestamp, Trace, TrackId};

use crate::averages::stacks::Stacks;
use crate::averages::{DeviceKind, RecordScope, scope_of};
use crate::events::{Events, Role};
use crate::flops::Flops;
use crate::launches::Launches;
use crate::memory::{Memory, Use};
use crate::nesting::Nesting;

/// Deeper than any stack.
const WHOLE_STACK: usize = 1_000_000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionEvent {
    /// A span.
    Span(SpanId),
    /// An allocation or release outside of every span, or an allocation that failed.
    Memory {
        /// When.
        time: Timestamp,
        /// On which thread.
        track: TrackId,
        /// How much.
        used: Use,
        /// Whether it failed.
        is_failure: bool,
    },
}

/// All events of a trace, in order of time.
#[derive(Debug)]
pub struct FunctionEvents {
    list: Vec<FunctionEvent>,
    events: Events,
    nesting: Nesting,
    memory: Memory,
    /// Launcher and device work, in this order.
    kernels: Vec<(SpanId, SpanId)>,
    flops: Flops,
    /// Where the children of each span begin in `children`, and one more.
    child_begin: Vec<u32>,
    children: Vec<SpanId>,
    /// Device time of each span and all it called; empty without device work.
    device_totals: Vec<Duration>,
    device: DeviceKind,
    stacks: OnceLock<Stacks>,
}

impl FunctionEvents {
    /// Lists the events of a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let events = Events::of(trace);
        let mut nesting = Nesting::of(trace, &events);
        let memory = Memory::of(trace, &events, nesting.order());
        let launches = Launches::of(trace, &events, &nesting);
        nesting.merge_duplicates(trace, &events);
        let flops = Flops::of(trace, &events, &nesting);

        let spans = trace.spans();
        let uncovered = memory.uncovered().iter().map(|&(time, track, used)| (time, track, used, false));
        let mut loose: Vec<_> = uncovered.chain(failures(trace)).collect();
        loose.sort_by_key(|&(time, ..)| time);
        let memory_event =
            |(time, track, used, is_failure)| FunctionEvent::Memory { time, track, used, is_failure };
        let mut loose = loose.into_iter().peekable();
        let mut list = Vec::with_capacity(nesting.order().len());
        for &span in nesting.order() {
            while let Some(event) = loose.next_if(|(time, ..)| *time < spans.time(span)) {
                list.push(memory_event(event));
            }
            if !nesting.is_merged(span) {
                list.push(FunctionEvent::Span(span));
            }
        }
        list.extend(loose.map(memory_event));

        let owner = |owner| if nesting.is_merged(owner) { nesting.parent(owner) } else { Some(owner) };
        let mut kernels: Vec<(SpanId, SpanId)> = launches
            .owners()
            .iter()
            .filter_map(|&(device, launcher)| Some((owner(launcher)?, device)))
            .collect();
        kernels.sort_unstable();
        let (child_begin, children) = children(trace, &nesting);
        let device_totals = device_totals(trace, &nesting, &kernels);
        let device = DeviceKind::of(trace).unwrap_or(DeviceKind::Cuda);
        let stacks = OnceLock::new();
        Self {
            list,
            events,
            nesting,
            memory,
            kernels,
            flops,
            child_begin,
            children,
            device_totals,
            device,
            stacks,
        }
    }

    /// The events.
    #[must_use]
    pub fn list(&self) -> &[FunctionEvent] {
        &self.list
    }

    /// The role of a span.
    #[must_use]
    pub fn role(&self, span: SpanId) -> Role {
        self.events.role(span)
    }

    /// The name that tables show, and the operator's overload.
    #[must_use]
    pub fn name(&self, trace: &Trace, span: SpanId) -> (&str, &str) {
        let name = self.events.name(trace, span);
        (self.events.names.get(name.key), self.events.names.get(name.overload))
    }

    /// What called a span.
    #[must_use]
    pub fn parent(&self, span: SpanId) -> Option<SpanId> {
        self.nesting.parent(span)
    }

    /// What a span called, in order of time.
    #[must_use]
    pub fn children(&self, span: SpanId) -> &[SpanId] {
        let begin = |place: usize| self.child_begin.get(place).map_or(0, |&begin| begin as usize);
        self.children.get(begin(span.index())..begin(span.index() + 1)).unwrap_or_default()
    }

    /// Device work that a span launched itself.
    pub fn kernels(&self, span: SpanId) -> impl Iterator<Item = SpanId> {
        let begin = self.kernels.partition_point(|&(owner, _)| owner < span);
        self.kernels[begin..].iter().take_while(move |&&(owner, _)| owner == span).map(|&(_, device)| device)
    }

    /// Memory that a span used, with all it called.
    #[must_use]
    pub fn memory(&self, trace: &Trace, span: SpanId) -> Use {
        if self.role(span).is_device() { Use::default() } else { self.memory.of_span(trace, span) }
    }

    /// Memory that a span used itself.
    #[must_use]
    pub fn self_memory(&self, trace: &Trace, span: SpanId) -> Use {
        let mut own = self.memory(trace, span);
        for &child in self.children(span) {
            let used = self.memory(trace, child);
            own.cpu -= used.cpu;
            own.device -= used.device;
        }
        own
    }

    /// Time on the CPU, with all it called.
    #[must_use]
    pub fn cpu_time(&self, trace: &Trace, span: SpanId) -> Duration {
        if self.role(span).is_device() { Duration::ZERO } else { trace.spans().duration(span) }
    }

    /// Time on the CPU that was its own.
    #[must_use]
    pub fn self_cpu_time(&self, trace: &Trace, span: SpanId) -> Duration {
        let called: Duration = self.children(span).iter().map(|&child| trace.spans().duration(child)).sum();
        self.cpu_time(trace, span) - called
    }

    /// Time on the device, with all it called.
    #[must_use]
    pub fn device_time(&self, trace: &Trace, span: SpanId) -> Duration {
        if self.role(span).is_device() {
            return trace.spans().duration(span);
        }
        self.device_totals.get(span.index()).copied().unwrap_or_default()
    }

    /// Time on the device that was its own.
    #[must_use]
    pub fn self_device_time(&self, trace: &Trace, span: SpanId) -> Duration {
        let called: Duration = self.children(span).iter().map(|&child| self.device_time(trace, child)).sum();
        self.device_time(trace, span) - called
    }

    /// Floating point operations.
    #[must_use]
    pub fn flops(&self, span: SpanId) -> u64 {
        self.flops.of_span(span)
    }

    /// Where it comes from.
    #[must_use]
    pub fn scope(&self, trace: &Trace, span: SpanId) -> RecordScope {
        scope_of(trace, &self.events, &self.nesting, span)
    }

    /// Where it happened.
    #[must_use]
    pub fn device(&self, span: SpanId) -> DeviceKind {
        if self.role(span).is_device() { self.device } else { DeviceKind::Cpu }
    }

    /// Where in the Python program it was called, innermost first.
    #[must_use]
    pub fn stack(&self, trace: &Trace, span: SpanId) -> &[String] {
        let find = || Stacks::of(trace, &self.events, &self.nesting, WHOLE_STACK);
        let stacks = self.stacks.get_or_init(find);
        stacks.entries(stacks.id(span))
    }
}

/// Failed allocations: when, on which thread, and the bytes asked for.
fn failures(trace: &Trace) -> Vec<(Timestamp, TrackId, Use, bool)> {
    let Some(name) = trace.strings().find("[OutOfMemory]") else { return Vec::new() };
    let (bytes, device_type) = (trace.arg("Bytes"), trace.arg("Device Type"));
    let failure = |event: hotspan_store::EventRow| {
        let amount = Bytes(bytes.int(event.args).unwrap_or(0));
        let used = Use::of_device_type(device_type.int(event.args).unwrap_or(0), amount);
        (event.time, event.track, used, true)
    };
    trace.instants().events().filter(|event| event.name == name).map(failure).collect()
}

fn children(trace: &Trace, nesting: &Nesting) -> (Vec<u32>, Vec<SpanId>) {
    let called = || nesting.order().iter().copied().filter(|&span| !nesting.is_merged(span));
    let mut begins = vec![0_u32; trace.spans().len() + 2];
    for parent in called().filter_map(|span| nesting.parent(span)) {
        begins[parent.index() + 2] += 1;
    }
    for place in 1..begins.len() {
        begins[place] += begins[place - 1];
    }
    let mut children = vec![SpanId(0); begins.last().map_or(0, |&count| count as usize)];
    for span in called() {
        if let Some(parent) = nesting.parent(span) {
            let next = &mut begins[parent.index() + 1];
            children[*next as usize] = span;
            *next += 1;
        }
    }
    begins.pop();
    (begins, children)
}

fn device_totals(trace: &Trace, nesting: &Nesting, kernels: &[(SpanId, SpanId)]) -> Vec<Duration> {
    if kernels.is_empty() {
        return Vec::new();
    }
    let mut totals = vec![Duration::ZERO; trace.spans().len()];
    for &(owner, device) in kernels {
        totals[owner.index()] += trace.spans().duration(device);
    }
    for &span in nesting.order().iter().rev().filter(|&&span| !nesting.is_merged(span)) {
        if let Some(parent) = nesting.parent(span) {
            let total = totals[span.index()];
            totals[parent.index()] += total;
        }
    }
    totals
}
