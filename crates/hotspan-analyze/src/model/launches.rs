//! Which operator launched which device work.
//!
//! Three facts tie a kernel to the host, tried in this order:
//! 1. `External id`, when it is the id of an operator. Kineto of 2023 wrote the correlation there instead, and such
//!    numbers can be another operator's id by accident, so an external id equal to the correlation proves nothing.
//! 2. `correlation`: the runtime or driver call with the same number, and the innermost operator or annotation around that call.
//!    One call may launch many kernels (CUDA graphs).
//! 3. The external id of that call, for files in which calls and operators are on different threads.
//!
//! What none of them ties stays unattributed. Number 0 means "none" in every version.

use hotspan_store::SpanId;

use super::Model;
use super::events::Role;

/// The host span behind each device span.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    /// Device span, operator or annotation; in order of device span.
    owners: Vec<(SpanId, SpanId)>,
    unattributed: usize,
}

impl Launches {
    /// Ties every device span that can be tied.
    pub(super) fn of(model: &Model) -> Self {
        let (spans, events) = (model.spans(), model.events());
        let is_device = |&span: &SpanId| events.role(span) == Role::Device;
        if !spans.ids().any(|span| is_device(&span)) {
            return Self::default();
        }
        let (external, correlation) = (model.external_id(), model.correlation());
        let external = |span: SpanId| external.of(span).filter(|&id| id != 0);
        let correlation = |span: SpanId| correlation.of(span).filter(|&id| id != 0);

        let is_call = |span: SpanId| matches!(events.role(span), Role::Operator | Role::Annotation);
        let is_launch = |span: SpanId| events.role(span) == Role::Launch;
        let numbered = |number: &dyn Fn(SpanId) -> Option<i64>, test: &dyn Fn(SpanId) -> bool| {
            let wanted = spans.ids().filter(|&span| test(span));
            ByNumber::of(wanted.filter_map(|span| Some((number(span)?, span))))
        };
        let operators = numbered(&external, &is_call);
        let calls = numbered(&correlation, &is_launch);
        let around = model.nesting().innermost(is_call);
        // An external id that merely repeats the correlation says nothing.
        let operator_of = |span: SpanId| {
            let id = external(span).filter(|&id| Some(id) != correlation(span))?;
            operators.first(id)
        };
        let through_call = |span: SpanId| {
            let call = calls.first(correlation(span)?)?;
            around.of(call).or_else(|| operator_of(call))
        };

        let mut launches = Self::default();
        for span in spans.ids().filter(is_device) {
            match operator_of(span).or_else(|| through_call(span)) {
                Some(owner) => launches.owners.push((span, owner)),
                None => launches.unattributed += 1,
            }
        }
        launches
    }

    /// Device spans and the operators or annotations that launched them.
    #[must_use]
    pub fn owners(&self) -> &[(SpanId, SpanId)] {
        &self.owners
    }

    /// The operator or annotation that launched a device span.
    #[must_use]
    pub fn owner(&self, device: SpanId) -> Option<SpanId> {
        let index = self.owners.binary_search_by_key(&device, |&(span, _)| span).ok()?;
        Some(self.owners[index].1)
    }

    /// How many device spans could not be tied to any operator.
    #[must_use]
    pub fn unattributed(&self) -> usize {
        self.unattributed
    }
}

/// Spans by a number of theirs. Files number in order of time, so sorting costs next to nothing and looking up is
/// cheaper than hashing.
pub(super) struct ByNumber {
    entries: Vec<(i64, SpanId)>,
}

impl ByNumber {
    pub(super) fn of(entries: impl Iterator<Item = (i64, SpanId)>) -> Self {
        let mut entries: Vec<(i64, SpanId)> = entries.collect();
        entries.sort_by_key(|&(number, _)| number);
        Self { entries }
    }

    /// The first span in the file that has this number.
    pub(super) fn first(&self, number: i64) -> Option<SpanId> {
        let index = self.entries.partition_point(|&(other, _)| other < number);
        self.entries.get(index).filter(|&&(other, _)| other == number).map(|&(_, span)| span)
    }
}
