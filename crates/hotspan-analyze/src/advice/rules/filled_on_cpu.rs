//! `filled-on-cpu`: tensors made on the CPU and copied to the device at once.

use hotspan_store::{Category, SpanId};

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "filled-on-cpu",
    title: "Tensors are filled on the CPU and then moved to the device",
    finds: "`torch.zeros`, `ones`, `full`, `arange`, `rand`, `randn` and their kind directly followed by a copy to the device, on the same thread.",
    costs: "The CPU writes every element, and the copy of pageable memory makes it wait. The device could have written them in no time.",
    fix: "Make it where it is needed: `torch.zeros(…, device=device)`, `torch.arange(n, device=x.device)`, `torch.randn_like(x)`.",
    measured: "The filling call and the copy that follows it, where that copy launched a transfer to the device; reported from 1 % of the time \
        on; without steps three or more. The gain is their time on the CPU.",
    needs: &[Need::Operators, Need::Device],
    check,
};

const MAKERS: [&str; 14] = [
    "aten::zeros", "aten::ones", "aten::full", "aten::arange", "aten::rand", "aten::randn", "aten::randint", "aten::randperm",
    "aten::linspace", "aten::eye", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_",
];

fn check(context: &Context<'_>) -> Option<Finding> {
    let (trace, spans) = (context.model, context.model.spans());
    // The outermost calls whose copies go to the device.
    let mut uploads: Vec<SpanId> = Vec::new();
    for &(device, owner) in context.model.launches().owners() {
        let is_upload = trace.span_category(device) == Category::Memcpy && trace.span_name(device).contains("HtoD");
        if is_upload {
            uploads.push(context.around(owner).filter(|&outer| context.is_call(outer)).last().unwrap_or(owner));
        }
    }
    uploads.sort_unstable();
    let mut last: Vec<Option<SpanId>> = vec![None; trace.tracks().len()];
    let mut tally = Tally::default();
    for span in context.outermost_calls() {
        let before = last[spans.track(span).index()].replace(span);
        if let Some(before) = before
            && MAKERS.contains(&context.name(before))
            && matches!(context.name(span), "aten::to" | "aten::copy_" | "aten::cuda" | "aten::_to_copy")
            && uploads.binary_search(&span).is_ok()
        {
            let time = context.time(before) + context.time(span);
            tally.add(context, &format!("{}, then {}", context.name(before), context.name(span)), span, time);
        }
    }
    let percent = context.percent(tally.time());
    // A single one without steps is the start of the program, when the device is set up.
    let is_once = tally.count() < 3 && context.steps.is_empty();
    if percent < 1.0 || is_once {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{count} tensors are filled on the CPU and then copied to the device ({percent:.1} % of {})", context.basis()),
        fix: "pass `device=` to the function that makes the tensor".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time, "the filling and the copy, on the CPU"),
        confidence: Confidence::High,
    })
}
