//! The operator tree: which host span encloses which, on the same thread.
//!
//! A span is inside another when it begins before the other ends and ends no later. Spans that merely overlap are not
//! related, and asynchronous ranges neither enclose anything nor are they inside anything: their thread does other things
//! meanwhile. Device spans are not part of the tree; [`super::launches`] ties them to it.

use std::sync::Arc;

use hotspan_store::SpanId;

use super::Model;
use super::events::Role;

const NONE: u32 = u32::MAX;

/// The spans in order of time, and the parent of each host span.
#[derive(Clone, Debug)]
pub struct Nesting {
    order: Arc<[SpanId]>,
    parent: Vec<u32>,
    merged: Vec<bool>,
}

impl Nesting {
    /// Builds the tree.
    pub(super) fn of(model: &Model) -> Self {
        let (spans, events) = (model.spans(), model.events());
        let is_event = |&span: &SpanId| events.role(span) != Role::Ignored;
        let order: Vec<SpanId> = model.time_order().iter().copied().filter(is_event).collect();

        let mut parent = vec![NONE; spans.len()];
        let mut open: Vec<Vec<SpanId>> = vec![Vec::new(); model.tracks().len()];
        let nests = |&&span: &&SpanId| events.role(span).is_host() && !events.is_async(span);
        for &span in order.iter().filter(nests) {
            let stack = &mut open[spans.track(span).index()];
            let (begin, end) = (spans.time(span), spans.end(span));
            while let Some(&outer) = stack.last() {
                let outer_end = spans.end(outer);
                if begin >= outer_end || end > outer_end {
                    stack.pop();
                } else {
                    parent[span.index()] = outer.0;
                    break;
                }
            }
            stack.push(span);
        }
        Self { order: order.into(), parent, merged: Vec::new() }
    }

    /// Merges each only child into a parent of the same name, as torch does: `aten::to` calling nothing but
    /// `aten::to` is one call.
    pub(super) fn merged(&self, model: &Model) -> Self {
        let mut merged = self.clone();
        merged.merged = vec![false; merged.parent.len()];
        merged.merge_duplicates(model);
        merged
    }

    fn merge_duplicates(&mut self, model: &Model) {
        let events = model.events();
        // 0, 1, or 2 for "more than one": all that has to be known.
        let mut children = vec![0_u8; self.parent.len()];
        for &parent in self.parent.iter().filter(|&&parent| parent != NONE) {
            children[parent as usize] = (children[parent as usize] + 1).min(2);
        }
        for &span in self.order.iter() {
            let Some(mut parent) = self.raw_parent(span) else { continue };
            // The parent comes earlier in the order, so its own parent is final.
            if self.merged[parent.index()] {
                let Some(grandparent) = self.raw_parent(parent) else { continue };
                parent = grandparent;
                self.parent[span.index()] = parent.0;
            }
            let same_name = events.name(model, parent).key == events.name(model, span).key;
            if same_name && children[parent.index()] == 1 {
                children[parent.index()] = children[span.index()];
                self.merged[span.index()] = true;
            }
        }
    }

    /// All spans that are events, in order of time, merged ones among them.
    #[must_use]
    pub fn order(&self) -> &[SpanId] {
        &self.order
    }

    /// The span that encloses this one.
    #[must_use]
    pub fn parent(&self, span: SpanId) -> Option<SpanId> {
        self.raw_parent(span)
    }

    /// Whether the span was merged into its parent.
    #[must_use]
    pub fn is_merged(&self, span: SpanId) -> bool {
        self.merged.get(span.index()).copied().unwrap_or(false)
    }

    /// For each span, the innermost one from it outwards that passes the test. One walk, however deep the calls.
    #[must_use]
    pub fn innermost(&self, test: impl Fn(SpanId) -> bool) -> Innermost {
        let mut found = vec![NONE; self.parent.len()];
        for &span in self.order.iter() {
            found[span.index()] = match self.raw_parent(span) {
                _ if test(span) => span.0,
                Some(parent) => found[parent.index()],
                None => NONE,
            };
        }
        Innermost { found }
    }

    fn raw_parent(&self, span: SpanId) -> Option<SpanId> {
        let parent = self.parent[span.index()];
        (parent != NONE).then_some(SpanId(parent))
    }
}

/// What each span encloses directly, in order of time.
#[derive(Clone, Debug)]
pub struct Children {
    /// For each span where its children begin in `children`, and one more.
    begins: Vec<u32>,
    children: Vec<SpanId>,
}

impl Children {
    /// Turns the tree around; spans that were merged into their parents are nobody's children.
    pub(super) fn of(nesting: &Nesting) -> Self {
        let inner = || {
            let spans = nesting.order().iter().copied().filter(|&span| !nesting.is_merged(span));
            spans.filter_map(|span| Some((span, nesting.parent(span)?)))
        };
        let mut begins = vec![0_u32; nesting.parent.len() + 1];
        inner().for_each(|(_, parent)| begins[parent.index() + 1] += 1);
        for index in 1..begins.len() {
            begins[index] += begins[index - 1];
        }
        let mut next = begins.clone();
        let mut children = vec![SpanId(0); begins.last().map_or(0, |&count| count as usize)];
        for (span, parent) in inner() {
            let slot = &mut next[parent.index()];
            children[*slot as usize] = span;
            *slot += 1;
        }
        Self { begins, children }
    }

    /// What a span encloses directly, in order of time.
    #[must_use]
    pub fn of_span(&self, span: SpanId) -> &[SpanId] {
        &self.children[self.begins[span.index()] as usize..self.begins[span.index() + 1] as usize]
    }
}

/// The answer of [`Nesting::innermost`].
#[derive(Clone, Debug)]
pub struct Innermost {
    found: Vec<u32>,
}

impl Innermost {
    /// The span itself or the nearest around it that passed the test.
    #[must_use]
    pub fn of(&self, span: SpanId) -> Option<SpanId> {
        Some(self.found[span.index()]).filter(|&found| found != NONE).map(SpanId)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Duration, EventRow, Ident, SpanRow, Timestamp, TraceBuilder};

    use super::*;

    fn tree(rows: &[(&str, i64, i64, i64)]) -> Model {
        let mut builder = TraceBuilder::new();
        for &(name, begin, duration, thread) in rows {
            let track = builder.track(Ident::Int(1), Ident::Int(thread));
            let (name, category) = (builder.intern(name), builder.category("cpu_op"));
            let args = builder.no_args();
            let event = EventRow { time: Timestamp(begin), name, category, track, args };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        Model::new(builder.finish())
    }

    fn parents(nesting: &Nesting, count: u32) -> Vec<Option<u32>> {
        (0..count).map(|row| nesting.parent(SpanId(row)).map(|parent| parent.0)).collect()
    }

    #[test]
    fn nests_within_a_thread_only() {
        let model = tree(&[("b", 10, 5, 1), ("a", 0, 100, 1), ("c", 12, 1, 1), ("d", 12, 1, 2)]);
        assert_eq!(parents(model.nesting(), 4), [Some(1), None, Some(0), None]);
        assert_eq!(model.children().of_span(SpanId(1)), [SpanId(0)]);
        assert_eq!(model.children().of_span(SpanId(3)), []);
    }

    #[test]
    fn the_end_of_one_may_touch_the_begin_of_the_next() {
        let model = tree(&[("a", 0, 10, 1), ("b", 0, 5, 1), ("c", 5, 5, 1), ("d", 10, 0, 1)]);
        assert_eq!(parents(model.nesting(), 4), [None, Some(0), Some(0), None]);
    }

    #[test]
    fn overlapping_and_negative_spans_are_not_related() {
        let model = tree(&[("a", 0, 10, 1), ("b", 5, 10, 1), ("c", 6, -3, 1), ("d", i64::MAX, 5, 1)]);
        assert_eq!(parents(model.nesting(), 4), [None, None, Some(1), None]);
    }

    #[test]
    fn only_children_of_the_same_name_are_merged() {
        let rows =
            [("to", 0, 100, 1), ("to", 1, 90, 1), ("to", 2, 80, 1), ("copy", 3, 10, 1), ("to", 20, 10, 1)];
        let model = tree(&rows);
        let nesting = model.merged_nesting();
        let merged: Vec<bool> = (0..5).map(|row| nesting.is_merged(SpanId(row))).collect();
        assert_eq!(merged, [false, true, true, false, false]);
        assert_eq!(parents(nesting, 5)[3..], [Some(0), Some(0)]);
    }
}
