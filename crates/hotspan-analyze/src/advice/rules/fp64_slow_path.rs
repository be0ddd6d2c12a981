//! `fp64-slow-path`: convolutions and matrix products in double precision.

use hotspan_store::{Duration, SpanId};

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "fp64-slow-path",
    title: "Convolutions or matmuls run in double precision",
    finds: "Convolutions and matrix products whose inputs are `double`. Where types were not recorded, convolutions in torch's own slow kernels \
        (`aten::_slow_conv2d_forward`) in which samples were in `dgemm` and none in `sgemm`: torch chooses these kernels for small float32 batches, too.",
    costs: "Fast kernels exist for float32 and smaller. On CPUs a double convolution falls back to unfolding the picture and a plain \
        matrix product; on most GPUs double precision runs at a 2nd to a 64th of the speed of float32. It moves twice the bytes in any case.",
    fix: "Where single precision is enough, make model and data float32: `model.float()`, `data.float()`, no `torch.set_default_dtype(torch.float64)`. NumPy arrays are double \
        by default: `torch.from_numpy(array.astype(numpy.float32))`.",
    measured: "Time of the outermost convolutions and products with a `double` input, forward and backward, of 20 µs or more: shorter ones cost what \
        calling them costs. With a device, the time of their kernels. Reported from 5 % on. The gain is half of that time for products and two thirds for convolutions.",
    needs: &[Need::Operators],
    check,
};

const PRODUCTS: [&str; 6] = ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::addmv"];
const CONVOLUTIONS: [&str; 3] = ["aten::convolution", "aten::convolution_backward", "aten::_convolution_double_backward"];
const SLOW: [&str; 6] = [
    "aten::_slow_conv2d_forward",
    "aten::_slow_conv2d_backward",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
    "aten::thnn_conv2d",
    "aten::thnn_conv2d_forward",
];
/// What takes less is the cost of calling, which no type changes.
const SHORTEST: Duration = Duration(20_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    let candidates = double_calls(context);
    let mut tally = Tally::default();
    let mut saved = Duration::ZERO;
    let mut note = |call: SpanId, at: SpanId, time: Duration| {
        let name = context.name(call);
        let is_product = PRODUCTS.contains(&name);
        tally.add(context, &format!("{name} (double)"), at, time);
        saved += part(time, if is_product { 0.5 } else { 2.0 / 3.0 });
    };
    if context.has_device() {
        for work in context.device_work() {
            let owner = context.model.launches().owner(work.span);
            let mut around = owner.into_iter().flat_map(|owner| std::iter::once(owner).chain(context.around(owner)));
            if let Some(call) = around.find(|outer| candidates.binary_search(outer).is_ok()) {
                note(call, work.span, context.time(work.span));
            }
        }
    } else {
        for &call in candidates.iter().filter(|&&call| context.time(call) >= SHORTEST) {
            note(call, call, context.time(call));
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("{percent:.0} % of {} is in convolutions and matrix products in double precision", context.basis()),
        fix: "convert the model and its inputs to float32 (`.float()`) where that is precise enough; double precision misses the fast \
            convolution and matrix kernels"
            .to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(saved.min(time), "half of the time of matrix products, two thirds of that of convolutions"),
        confidence: Confidence::High,
    })
}

/// The outermost convolutions and products that are known to be in double precision, in the order of the trace.
fn double_calls(context: &Context<'_>) -> Vec<SpanId> {
    let mut found = Vec::new();
    let mut untyped = Vec::new();
    let counts = |name: &str| CONVOLUTIONS.contains(&name) || PRODUCTS.contains(&name);
    for span in context.calls() {
        let name = context.name(span);
        let types = context.types(span);
        if types.is_empty() && SLOW.contains(&name) && !context.around(span).any(|outer| SLOW.contains(&context.name(outer))) {
            untyped.push(span);
        }
        let is_double = types.iter().any(|kind| kind == "double");
        if is_double && counts(name) && !context.around(span).any(|outer| CONVOLUTIONS.contains(&context.name(outer))) {
            found.push(span);
        }
    }
    if computes_in_double(context, &untyped) {
        found.append(&mut untyped);
    }
    found.sort_unstable();
    found
}

/// Whether samples in these calls were in products of doubles, and in no others.
fn computes_in_double(context: &Context<'_>, calls: &[SpanId]) -> bool {
    let (trace, spans) = (context.model, context.model.spans());
    let profile = trace.profile();
    let (mut double, mut single) = (0_u64, 0_u64);
    for &call in calls {
        for sample in trace.sources().between(spans.track(call), spans.time(call), spans.end(call)) {
            let frames = profile.stacks.frames(profile.samples.row(sample).stack);
            let names = frames.map(|frame| trace.str(profile.frames.row(frame).name));
            let kind = names.into_iter().find_map(|name| {
                (name.contains("dgemm")).then_some(true).or_else(|| name.contains("sgemm").then_some(false))
            });
            match kind {
                Some(true) => double += 1,
                Some(false) => single += 1,
                None => {}
            }
        }
    }
    double > 0 && single == 0
}
