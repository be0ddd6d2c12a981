//! One row of a table, with all that is known about it: what somebody asks who has found the row and wants to know more.
//!
//! The row itself is made by the schema of its table, from the same sums, so the two cannot differ. `calls` says how long single
//! calls took and which were the slowest, `trend` how they spread over the steps, `places` where they came from. Each file of
//! [`KINDS`] knows one kind of thing. All lists have a limit: a trace may hold anything.

mod calls;
mod kernel;
mod operator;
mod places;
mod trend;

use crate::model::Model;
use crate::report::Table;
use crate::report::door::Door;
use crate::reports::{kernels::KERNEL, operators::OPERATOR};

pub use calls::{Bucket, Call, Calls};
pub use places::CallStack;
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
    /// Its calls.
    pub calls: Calls,
    /// How they spread over the steps; `None` where the program has none.
    pub trend: Option<Trend>,
    /// The Python stacks it was called from, most time first.
    pub stacks: Vec<CallStack>,
    /// What else there is to say; none is empty.
    pub tables: Vec<Table>,
}

/// A kind of thing, and how to describe one.
type Kind = (&'static str, fn(&Model, &Door) -> Option<Thing>);

/// The kinds of things; one line adds one.
const KINDS: &[Kind] = &[(OPERATOR, operator::describe), (KERNEL, kernel::describe)];

/// Describes what is behind a door; `None` where there is nothing.
#[must_use]
pub fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let (_, describe) = KINDS.iter().find(|(kind, _)| *kind == door.kind)?;
    describe(model, door)
}
