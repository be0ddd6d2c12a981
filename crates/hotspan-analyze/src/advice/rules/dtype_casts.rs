//! `dtype-casts`: time spent converting between types.

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::model::inputs::product;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "dtype-casts",
    title: "Tensors are converted from or to double precision in the step",
    finds: "Copies between `double` and another floating-point type: `.float()`, `.double()`, `.to(dtype)`, mixed types in one expression. Conversions of pictures and \
        labels, and those of mixed precision, are meant.",
    costs: "A conversion reads and writes the whole tensor and computes nothing.",
    fix: "Convert once, outside the loop; keep data, model and constants in one type (NumPy's double and Python's lists are the usual strangers).",
    measured: "`aten::copy_` calls between two such types of 1,024 elements or more, outside of data loaders and optimizers, with what encloses them (`aten::to`); reported from 5 % of the time on, when it happens \
        again and again: in every second step, or three times where there are none. \
        The gain is that time.",
    needs: &[Need::Operators, Need::Shapes],
    check,
};

const FLOATING: [&str; 4] = ["double", "float", "c10::Half", "c10::BFloat16"];

fn check(context: &Context<'_>) -> Option<Finding> {
    let mut tally = Tally::default();
    let loading = context.inside("enumerate(Data");
    let optimizer = context.inside("Optimizer.");
    let is_large = |span| context.shapes(span).first().and_then(product).is_some_and(|count| count >= 1024);
    for span in context.calls().filter(|&span| context.name(span) == "aten::copy_") {
        if loading.of(span).is_some() || optimizer.of(span).is_some() || !is_large(span) {
            continue;
        }
        let types = context.types(span);
        if let [to, from, ..] = types
            && to != from
            && [to, from].iter().any(|kind| *kind == "double")
            && [to, from].iter().all(|kind| FLOATING.contains(&kind.as_str()))
        {
            let outer = context.around(span).take_while(|&outer| matches!(context.name(outer), "aten::to" | "aten::_to_copy")).last();
            tally.add(context, &format!("{from} to {to}"), span, context.time(outer.unwrap_or(span)));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 || !context.is_repeated(tally.count()) {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{percent:.0} % of {} goes to {count} conversions from or to double precision", context.basis()),
        fix: "convert once, before the loop, and keep one type throughout".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the time of the conversions"),
        confidence: Confidence::High,
    })
}
