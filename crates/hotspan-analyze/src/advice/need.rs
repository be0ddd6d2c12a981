//! What data rules need, whether a trace has it, and how to record it.

use hotspan_store::Category;

use crate::advice::context::Context;

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Spans of torch operators.
    Operators,
    /// Shapes and types of their inputs.
    Shapes,
    /// Marks of the steps of the loop.
    Steps,
    /// Allocations and releases.
    Memory,
    /// Work of a device.
    Device,
    /// How many threads and cores there were.
    Threads,
    /// The whole program, from its start to its end.
    Program,
}

impl Need {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Operators,
        Self::Shapes,
        Self::Steps,
        Self::Memory,
        Self::Device,
        Self::Threads,
        Self::Program,
    ];

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Operators => "operators",
            Self::Shapes => "input shapes and types",
            Self::Steps => "steps",
            Self::Memory => "memory events",
            Self::Device => "device activity",
            Self::Threads => "thread counts",
            Self::Program => "the whole program",
        }
    }

    /// How it gets into a trace.
    #[must_use]
    pub fn how_to_record(self) -> &'static str {
        match self {
            Self::Operators => "record with activities=[ProfilerActivity.CPU]",
            Self::Shapes => "record with record_shapes=True",
            Self::Steps => "pass a schedule and call prof.step() after each step; three steps at least",
            Self::Memory => "record with profile_memory=True",
            Self::Device => "record with ProfilerActivity.CUDA (or XPU) on a machine that has a device",
            Self::Threads => "record with hotspan.profiler, which notes them",
            Self::Program => "record with `hotspan run`",
        }
    }

    /// Whether the trace has it.
    pub(crate) fn is_met(self, context: &Context<'_>) -> bool {
        let model = context.model;
        let has =
            |wanted: fn(Category) -> bool| model.spans().ids().any(|span| wanted(model.span_category(span)));
        match self {
            Self::Operators => has(|category| category == Category::Operator),
            Self::Shapes => model.input_dims().occurs() && model.input_types().occurs(),
            Self::Steps => context.steps.len() >= 3,
            Self::Memory => !model.memory_events().is_empty(),
            Self::Device => context.has_device(),
            Self::Threads => context.threads().is_some(),
            Self::Program => context.is_whole_program(),
        }
    }
}
