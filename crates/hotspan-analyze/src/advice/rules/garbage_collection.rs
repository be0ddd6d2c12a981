//! `garbage-collection`: Python looks for garbage among objects that stay.

use hotspan_store::Category;

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "garbage-collection",
    title: "Python's garbage collection takes long",
    finds: "Collections of Python's garbage collector on the main thread of the program, after its imports.",
    costs: "Only objects in reference cycles need it. A full collection visits every object that can hold others, whether it is garbage or not: with millions of them \
        (a model's modules, a data set in lists and dictionaries) each one takes long, and the program stands still.",
    fix: "`gc.freeze()` after the data and the model are made, which takes them out of all later collections; a higher `gc.set_threshold(50_000, 20, 100)`; \
        data in arrays or tensors instead of lists of objects.",
    measured: "Time of collections in the steps or between the first and the last operator, and of a program without operators in all of it but its imports; reported from 3 % of that on. \
        The gain is nine tenths of it for full collections, and half of it for the others.",
    needs: &[Need::Program],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let (model, spans) = (context.model, context.model.spans());
    let main = context.main_thread()?;
    let is_collection = |span: &hotspan_store::SpanId| {
        model.span_category(*span) == Category::GarbageCollection && spans.track(*span) == main && context.is_in_range(spans.time(*span))
    };
    let (mut all, mut full) = (Tally::default(), Tally::default());
    for span in spans.ids().filter(is_collection) {
        let name = model.span_name(span);
        all.add(context, name, span, context.time(span));
        if name.ends_with('2') {
            full.add(context, name, span, context.time(span));
        }
    }
    let (time, in_full) = (all.time(), full.time());
    let percent = context.percent(time);
    if percent < 3.0 {
        return None;
    }
    let count = all.count();
    Some(Finding {
        message: match count {
            1 => format!("A garbage collection takes {percent:.0} % of {}", context.basis()),
            _ => format!("{count} garbage collections take {percent:.0} % of {}", context.basis()),
        },
        fix: "`gc.freeze()` once model and data are made, and a higher `gc.set_threshold`".to_owned(),
        evidence: all.evidence(context),
        gain: context.gain(part(in_full, 0.9) + part(time - in_full, 0.5), "nine tenths of full collections, half of the others"),
        confidence: Confidence::High,
    })
}
