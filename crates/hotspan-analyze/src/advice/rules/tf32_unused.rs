//! `tf32-unused`: float32 products that do not use the tensor cores.

use crate::advice::context::{Context, part};
use crate::advice::device::{NameTest, device_spans};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "tf32-unused",
    title: "float32 matmuls do not use TF32",
    finds: "Kernels for plain float32 products and convolutions (`sgemm`, `simt`, `ffma`) on a GPU of compute capability 8.0 or higher.",
    costs: "TF32 runs float32 products on the tensor cores, several times as fast, with 10 instead of 23 bits of mantissa in the factors and \
        full float32 sums.",
    fix: "`torch.set_float32_matmul_precision(\"high\")`; for convolutions `torch.backends.cudnn.allow_tf32 = True` (the default).",
    measured: "Time of such kernels; reported from 5 % of the time on. The gain is half of it.",
    needs: &[Need::Device],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let modern = context.model.devices().iter().any(|device| device.capability.is_some_and(|(major, _)| major >= 8));
    if !modern {
        return None;
    }
    let mut tally = Tally::default();
    let mut is_plain = NameTest::of(|lower| {
        let is_plain = lower.contains("sgemm") || lower.contains("_simt_") || lower.contains("ffma");
        is_plain && !lower.contains("tf32") && !lower.contains("tensorop")
    });
    for (span, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Compute) {
        if is_plain.holds(context.model, span) {
            tally.add(context, context.model.span_name(span), span, context.time(span));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("float32 products without tensor cores take {percent:.0} % of {}", context.basis()),
        fix: "`torch.set_float32_matmul_precision(\"high\")`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.5), "half of the time of these kernels"),
        confidence: Confidence::High,
    })
}
