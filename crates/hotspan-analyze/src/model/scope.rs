//! What kind of call a span is, in torch's terms.

use hotspan_store::SpanId;

use super::Model;
use super::events::Role;
use super::nesting::Nesting;

/// The engine calls each node of the backward pass from a range with this prefix and the node's name.
const EVALUATE: &str = "autograd::engine::evaluate_function: ";

/// Where an event comes from, with torch's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordScope {
    /// An operator or anything else (0).
    #[default]
    Function,
    /// A node of the backward pass (1).
    Backward,
    /// A `record_function` range (7).
    User,
}

impl RecordScope {
    /// torch's number; scopes that only parts of torch have count as functions.
    pub(super) fn from_torch(number: i64) -> Self {
        match number {
            1 => Self::Backward,
            7 => Self::User,
            _ => Self::Function,
        }
    }
}

/// The recorded scope. Kineto does not write it: there the range around a node of the backward pass tells.
pub(super) fn scope(model: &Model, nesting: &Nesting, span: SpanId) -> RecordScope {
    match model.role(span) {
        Role::Annotation => RecordScope::User,
        Role::Operator => match model.events().recorded_scope(span) {
            Some(scope) => scope,
            None => {
                let around = nesting.parent(span).map(|parent| model.span_name(parent));
                let node = around.and_then(|name| name.strip_prefix(EVALUATE));
                let is_node = node.is_some_and(|node| node == model.span_name(span));
                if is_node { RecordScope::Backward } else { RecordScope::Function }
            }
        },
        _ => RecordScope::Function,
    }
}
