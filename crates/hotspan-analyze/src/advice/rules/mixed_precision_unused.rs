//! `mixed-precision-unused`: products and convolutions without tensor cores.

use hotspan_store::Duration;

use crate::advice::context::{Context, part};
use crate::advice::device::{NameTest, device_spans};
use crate::model::device_work::WorkKind;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "mixed-precision-unused",
    title: "Matmuls and convolutions do not use tensor cores",
    finds: "A fifth of the kernel time or more under matrix products and convolutions, and no kernel that uses tensor cores (by name: \
        `h884`, `s1688`, `s16816`, `hmma`, `wgmma`, `nvjet`, `tensorop`, `xmma`), on a GPU that has them (compute capability 7.0 or higher).",
    costs: "Half precision on tensor cores computes these several times as fast, and moves half the bytes.",
    fix: "`with torch.autocast(\"cuda\", dtype=torch.bfloat16):` around the forward pass; float16 with a `GradScaler` on GPUs before Ampere.",
    measured: "Kernel time under `aten::mm`, `addmm`, `bmm`, `convolution` and their backward. The gain is half of it.",
    needs: &[Need::Device],
    check,
};

const ELIGIBLE: [&str; 10] = [
    "aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::matmul", "aten::linear", "aten::conv2d", "aten::convolution",
    "aten::convolution_backward", "aten::cudnn_convolution",
];
const TENSOR_CORES: [&str; 9] = ["884", "1688", "16816", "hmma", "wgmma", "gmma", "nvjet", "tensorop", "xmma"];

fn check(context: &Context<'_>) -> Option<Finding> {
    let has_cores = context.model.devices().iter().any(|device| device.capability.is_some_and(|(major, _)| major >= 7));
    if !has_cores {
        return None;
    }
    let (mut all, mut tally) = (Duration::ZERO, Tally::default());
    let mut on_tensor_cores = NameTest::of(|name| TENSOR_CORES.iter().any(|part| name.contains(part)));
    for (span, _) in device_spans(context).filter(|&(_, work)| work == WorkKind::Compute) {
        if on_tensor_cores.holds(context.model, span) {
            return None;
        }
        all += context.time(span);
        let Some(owner) = context.model.launches().owner(span) else { continue };
        let eligible = std::iter::once(owner)
            .chain(context.around(owner))
            .find(|&outer| ELIGIBLE.contains(&context.name(outer)) || context.name(outer).contains("onvolution_backward"));
        if let Some(operator) = eligible {
            tally.add(context, context.name(operator), operator, context.time(span));
        }
    }
    let share = tally.time().0 as f64 * 100.0 / all.0.max(1) as f64;
    if share < 20.0 || context.percent(tally.time()) < 5.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("{share:.0} % of the kernel time is under products and convolutions, and no kernel uses tensor cores"),
        fix: "`torch.autocast(\"cuda\", dtype=torch.bfloat16)` around the forward pass".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.5), "half of the time of these kernels"),
        confidence: Confidence::Medium,
    })
}
