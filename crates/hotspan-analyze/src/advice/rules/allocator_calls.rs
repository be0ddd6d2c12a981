//! `allocator-calls`: memory requested from the driver inside the step.

use crate::advice::context::Context;
use crate::advice::device::{runtime_calls, without_kernels};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "allocator-calls",
    title: "Device memory is requested from the driver in the step",
    finds: "`cudaMalloc`, `cudaFree`, `cudaHostAlloc`, `cudaFreeHost` and their sisters during the steps.",
    costs: "torch keeps freed memory for the next tensor, so that in a steady state there are none. Each one costs up to milliseconds, and \
        `cudaFree` waits for the whole device.",
    fix: "No `torch.cuda.empty_cache()` in the loop; tensors of steady sizes (pad to a few lengths); \
        `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; less memory in use when it is about to run out.",
    measured: "Time of these calls; reported from 1 % of the time on. The gain is that time, and not more than the time in which no kernel runs.",
    needs: &[Need::Device],
    check,
};

const CALLS: [&str; 10] = [
    "cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaMallocHost", "hipMalloc", "hipFree", "hipHostMalloc", "cuMemCreate",
    "cuMemUnmap",
];

fn check(context: &Context<'_>) -> Option<Finding> {
    let mut tally = Tally::default();
    for call in runtime_calls(context).filter(|&call| CALLS.contains(&context.model.span_name(call))) {
        tally.add(context, context.model.span_name(call), call, context.time(call));
    }
    let percent = context.percent(tally.time());
    if percent < 1.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{count} requests for memory go to the driver, {percent:.0} % of {}", context.basis()),
        fix: "no `empty_cache()` in the loop, steady sizes, `expandable_segments:True`; or this is warm-up: record later".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(time.min(without_kernels(context)), "the time of the calls, and not more than the device is without work"),
        confidence: if context.steps.is_empty() { Confidence::Medium } else { Confidence::High },
    })
}
