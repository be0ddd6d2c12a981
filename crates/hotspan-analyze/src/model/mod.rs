//! The model: a trace with what follows from it. Each part is computed when it is first asked for, and once.
//!
//! Analyses are functions of the model. They find the same nesting, launches, steps and memory there, so what two of them say
//! about a trace agrees, and a second question about a trace costs only what is new in it. A model is cheap to make, and can be
//! shared between threads.
//!
//! | part | says |
//! |---|---|
//! | [`columns`] | what an event carries: correlation, sequence number, bytes … as typed columns |
//! | [`events`] | what role a span plays, and what tables call it |
//! | [`inputs`] | the shapes, types and values of operators' inputs |
//! | [`time_order`](Model::time_order) | the spans in order of time |
//! | [`nesting`] | which call encloses which |
//! | [`launches`], [`launch_calls`] | which operator, and which runtime call, launched which device work |
//! | [`device_work`] | what each device does when |
//! | [`host_activity`], [`runtime_calls`] | what the host does, as far as it matters to a device |
//! | [`steps`], [`windows`] | the steps of the program, on the host and on devices |
//! | [`job`](crate::job) | the process that others waited for, in a program of many |
//! | [`memory_events`], [`memory_use`] | allocations and releases, and the spans they fall into |
//! | [`stacks`], [`source`] | the Python stack, module and line behind a span |

pub mod columns;
mod device_kind;
pub mod device_work;
pub mod events;
pub mod host_activity;
pub mod inputs;
pub mod launch_calls;
pub mod launches;
pub mod memory_events;
pub mod memory_use;
pub mod nesting;
pub mod runtime_calls;
mod scope;
pub(crate) mod source;
pub(crate) mod stacks;
pub mod steps;
mod time_order;
mod warm_up;
pub mod windows;

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use hotspan_store::{Duration, SpanId, StackId, Timestamp, Trace, TrackId};

use crate::advice::{Advice, Selection, advise};
use crate::averages::{GroupBy, KeyAverages};
use crate::flops::Flops;
use crate::idle::DeviceIdle;
use crate::intervals::Interval;
use crate::job::Job;
use crate::memory_blocks::Blocks;
use crate::memory_timeline::DeviceTimeline;
use crate::process_memory::ProcessMemory;
use crate::source_lines::SourceLines;
use crate::steps::Steps;
use crate::summary::Summary;
use crate::verdict::Verdict;
use crate::wall_time::{RANGE_KEY, WallTime};

use device_work::DeviceWork;
use events::{Events, Role};
use host_activity::HostActivity;
use inputs::{InputShapes, Interned};
use launch_calls::LaunchCalls;
use launches::Launches;
use memory_events::MemoryEvent;
use memory_use::MemoryUse;
use nesting::{Children, Nesting};
use source::Sources;
use stacks::{Modules, Stacks};
use steps::ProgramSteps;
use windows::StepWindow;

pub use device_kind::DeviceKind;
pub use scope::RecordScope;

/// Declares the parts: what each is called, what it is, and how it follows from the trace and from other parts.
macro_rules! parts {
    ($($(#[$doc:meta])* $visibility:vis $part:ident: $kind:ty = $make:expr;)*) => {
        #[derive(Debug, Default)]
        struct Parts { $($part: OnceLock<$kind>,)* }

        impl Model {
            $(
                $(#[$doc])*
                #[must_use]
                $visibility fn $part(&self) -> &$kind {
                    let make: fn(&Self) -> $kind = $make;
                    self.parts.$part.get_or_init(|| make(self))
                }
            )*
        }
    };
}

/// A trace, and what follows from it.
#[derive(Debug)]
pub struct Model {
    trace: Arc<Trace>,
    parts: Parts,
}

parts! {
    /// The role and the name of every span.
    pub events: Events = |model| Events::of(model);
    /// All spans by their beginnings, longer ones first, then as in the file.
    pub time_order: Vec<SpanId> = |model| time_order::time_order(model.spans());
    /// Which host span encloses which.
    pub nesting: Nesting = |model| Nesting::of(model);
    /// The same with only children of the same name merged into their parents, as torch's tables have it.
    pub merged_nesting: Nesting = |model| model.nesting().merged(model);
    /// What each span encloses directly.
    pub children: Children = |model| Children::of(model.nesting());
    /// The same by [`Self::merged_nesting`].
    pub merged_children: Children = |model| Children::of(model.merged_nesting());
    /// The shapes of inputs.
    pub shapes: Interned<InputShapes> = |model| inputs::shapes(model);
    /// The types of inputs: `float`, `double`, `c10::Half`.
    pub dtypes: Interned<Vec<String>> = |model| inputs::dtypes(model);
    /// The values of inputs that are no tensors, as text.
    pub concrete_inputs: Interned<Vec<String>> = |model| inputs::concrete_inputs(model);
    /// Floating point operations by [`Self::merged_nesting`], each counted once.
    pub flops: Flops = |model| Flops::of(model, model.merged_nesting());
    /// Which operator or annotation launched which device work.
    pub launches: Launches = |model| Launches::of(model);
    /// Which runtime or driver call launched which device work.
    pub launch_calls: LaunchCalls = |model| LaunchCalls::of(model);
    /// What host spans stand for, and which threads drive a device.
    pub host_activity: HostActivity = |model| HostActivity::of(model);
    /// The devices that worked, by process and index.
    pub device_work: Vec<DeviceWork> = |model| DeviceWork::of(model);
    /// Why each device was idle, when it was.
    pub idle: Vec<DeviceIdle> = |model| crate::idle::find(model);
    /// The time that device analyses are about: the steps and all device work, or all spans where there are no steps.
    pub recording: Interval = |model| windows::recording(model);
    /// The process that the program is about, alone, where that is not the one that was started.
    pub job: Option<Box<Job>> = |model| crate::job::find(model).map(Box::new);
    /// The steps of the program, and what they are.
    pub steps: ProgramSteps = |model| ProgramSteps::of(model);
    /// Marked steps as the host and as the devices see them; the whole recording where none are marked.
    pub step_windows: Vec<StepWindow> = |model| windows::step_windows(model);
    /// Where the time of steps goes, on devices and on the host.
    pub step_times: Steps = |model| crate::steps::steps(model);
    /// Allocations, releases and failed allocations, in order of time.
    pub memory_events: Vec<MemoryEvent> = |model| memory_events::memory_events(model);
    /// What each thread allocated when.
    pub memory_use: MemoryUse = |model| MemoryUse::of(model);
    /// Allocations with their releases, and what they were used for.
    pub memory_blocks: Blocks = |model| crate::memory_blocks::find(model);
    /// The memory of each device over time.
    pub memory_timeline: Vec<DeviceTimeline> = |model| crate::memory_timeline::find(model);
    /// The memory of processes over time.
    pub process_memory: ProcessMemory = |model| crate::process_memory::find(model);
    /// What each source line cost.
    pub source_lines: SourceLines = |model| crate::source_lines::find(model);
    /// What the program's main thread did at each moment; `None` where the trace does not know.
    pub wall_time: Option<WallTime> = |model| crate::wall_time::find(model);
    /// torch's `key_averages()` without further grouping.
    pub averages: KeyAverages = |model| KeyAverages::compute(model, &GroupBy::default());
    /// What all rules say about it.
    pub advice: Arc<Advice> = |model| Arc::new(advise(model, &Selection::default()));
    /// Where the time goes, in one sentence.
    pub verdict: Option<Verdict> = |model| crate::verdict::verdict(model);
    /// What is in the trace.
    pub summary: Summary = |model| crate::summary::find(model);
    /// Time by stack, of those samples that count.
    pub(crate) counted_samples: Vec<(StackId, Duration)> = |model| crate::overview::counted_samples(model);
    /// The `nn.Module` around each span.
    pub(crate) modules: Modules = |model| Modules::of(model, model.nesting());
    /// The whole Python stack of each span, by [`Self::merged_nesting`].
    pub(crate) whole_stacks: Stacks = |model| Stacks::of(model, model.merged_nesting(), usize::MAX);
    /// The innermost part of the Python stack of each span, as much as anybody reads.
    pub(crate) near_stacks: Stacks = |model| Stacks::of(model, model.merged_nesting(), stacks::NEAR);
    /// The lines behind spans.
    pub(crate) sources: Sources = |model| Sources::of(model);
}

impl Model {
    /// Makes the model of a trace. Nothing is computed yet.
    #[must_use]
    pub fn new(trace: impl Into<Arc<Trace>>) -> Self {
        Self { trace: trace.into(), parts: Parts::default() }
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// The role of a span.
    #[must_use]
    pub fn role(&self, span: SpanId) -> Role {
        self.events().role(span)
    }

    /// What tables call a span that has a role.
    #[must_use]
    pub fn name(&self, span: SpanId) -> &str {
        let events = self.events();
        events.names.get(events.name(self, span).key)
    }

    /// Torch's scope of a span.
    #[must_use]
    pub fn scope(&self, span: SpanId) -> RecordScope {
        scope::scope(self, self.nesting(), span)
    }

    /// The same by [`Self::merged_nesting`].
    #[must_use]
    pub fn merged_scope(&self, span: SpanId) -> RecordScope {
        scope::scope(self, self.merged_nesting(), span)
    }

    /// The wall time that everything is a share of: that of the program where the recording knows it, else that of the trace.
    #[must_use]
    pub fn wall(&self) -> Duration {
        let (begin, end) = crate::wall_time::window(&self.trace);
        end.since(begin)
    }

    /// A stretch of it, as a model of its own; the same where that is all that was recorded.
    #[must_use]
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Self {
        let (first, length) = self.trace.window();
        if from <= first && first.plus(length) < to {
            return Self::new(Arc::clone(&self.trace));
        }
        let mut part = self.trace.between(from, to);
        part.set_metadata(RANGE_KEY, &format!("[{}, {}]", from.0, to.0));
        Self::new(part)
    }

    /// What happened on some tracks, as a model of its own: spans of those that `events` wants, samples of those that `samples` wants.
    #[must_use]
    pub fn of_tracks(&self, events: impl Fn(TrackId) -> bool, samples: impl Fn(TrackId) -> bool) -> Self {
        Self::new(self.trace.of_tracks(events, samples))
    }
}

impl From<Trace> for Model {
    fn from(trace: Trace) -> Self {
        Self::new(trace)
    }
}

impl Deref for Model {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.trace
    }
}
