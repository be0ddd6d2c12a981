//! One row of a table, with all that is known about it: what somebody asks who has found the row and wants to know more.
//!
//! The row itself is made by the schema of its table, from the same sums, so the two cannot differ. `calls` says how long single
//! calls took and which were the slowest, `trend` how they spread over the steps, `places` where they came from. Each file of
//! [`KINDS`] knows one kind of thing. All lists have a limit: a trace may hold anything.

mod allocation;
mod calls;
mod function;
mod gap;
mod kernel;
mod line;
mod module;
mod operator;
mod places;
mod trend;

use hotspan_store::{Category, SpanId};

use crate::averages::DeviceKind;
use crate::functions::Functions;
use crate::idle::{CULPRIT, GAP};
use crate::intervals::Interval;
use crate::memory_events::ALLOCATION;
use crate::model::Model;
use crate::model::events::Role;
use crate::report::Table;
use crate::report::door::Door;
use crate::reports::functions::{FUNCTION, function_door};
use crate::reports::kernels::{KERNEL, kernel_door};
use crate::reports::operators::{OPERATOR, operator_door};
use crate::reports::{lines::LINE, modules::MODULE};
use trend::Steps;

pub use calls::{Bucket, Call, Calls};
pub use places::CallStack;
pub(crate) use places::source_of;
pub use trend::{StepPart, Trend};

/// A thing that a row of a table stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    /// What it is, in a word or two.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its row, as its table has it.
    pub row: Table,
    /// The line it is at, as `file:line`.
    pub source: Option<String>,
    /// When it was, where it is a stretch of time.
    pub stretch: Option<Interval>,
    /// Spans that have to do with it, and what.
    pub related: Vec<(&'static str, Call)>,
    /// Its calls.
    pub calls: Calls,
    /// How they spread over the steps; `None` where the program has none.
    pub trend: Option<Trend>,
    /// The Python stacks it was called from, most time first.
    pub stacks: Vec<CallStack>,
    /// What else there is to say; none is empty.
    pub tables: Vec<Table>,
}

impl Thing {
    pub(crate) fn new(kind: &'static str, name: &str, row: Table) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            row,
            source: None,
            stretch: None,
            related: Vec::new(),
            calls: Calls::default(),
            trend: None,
            stacks: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// The same with all that follows from its calls.
    fn with_calls(mut self, model: &Model, calls: &[SpanId]) -> Self {
        self.calls = Calls::of(model, calls);
        self.trend = Steps::of(model).trend(calls);
        self.stacks = places::stacks(model, calls);
        self
    }

    /// The same with a span that has to do with it.
    fn with_related(mut self, model: &Model, what: &'static str, span: Option<SpanId>) -> Self {
        self.related.extend(span.map(|span| (what, calls::call(model, &Steps::of(model), span))));
        self
    }
}

/// The rows of a table that have one of these doors; `None` where there are none.
pub(crate) fn only(mut table: Table, is_wanted: impl Fn(&Door) -> bool) -> Option<Table> {
    let rows = std::mem::take(&mut table.rows).into_iter().zip(std::mem::take(&mut table.doors));
    let wanted = rows.filter(|(_, door)| door.as_ref().is_some_and(&is_wanted));
    (table.rows, table.doors) = wanted.unzip();
    table.filled()
}

/// A kind of thing, and how to describe one.
type Kind = (&'static str, fn(&Model, &Door) -> Option<Thing>);

/// The kinds of things; one line adds one.
const KINDS: &[Kind] = &[
    (OPERATOR, operator::describe),
    (KERNEL, kernel::describe),
    (MODULE, module::describe),
    (FUNCTION, function::describe),
    (LINE, line::describe),
    (GAP, gap::describe_gap),
    (CULPRIT, gap::describe_culprit),
    (ALLOCATION, allocation::describe),
];

/// The door to all that a span is one call of: its operator, kernel or function.
#[must_use]
pub fn door_of(model: &Model, span: SpanId) -> Option<Door> {
    let name = model.span_name(span);
    match model.events().role(span) {
        Role::Operator | Role::Launch => Some(operator_door(name, DeviceKind::Cpu, false)),
        Role::Annotation => Some(operator_door(name, DeviceKind::Cpu, true)),
        Role::Device => (model.span_category(span) == Category::Kernel).then(|| kernel_door(name)),
        Role::Python => Some(function_door(&Functions::of_span(model, span)?)),
        Role::Ignored | Role::Overhead | Role::DeviceAnnotation => None,
    }
}

/// Whether things of this kind are those of the whole trace, whatever stretch of it is looked at.
#[must_use]
pub fn is_of_whole(door: &Door) -> bool {
    [ALLOCATION, LINE].contains(&door.kind.as_str())
}

/// Describes what is behind a door; `None` where there is nothing.
#[must_use]
pub fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let (_, describe) = KINDS.iter().find(|(kind, _)| *kind == door.kind)?;
    describe(model, door)
}
