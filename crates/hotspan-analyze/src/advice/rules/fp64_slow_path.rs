//! `fp64-slow-path`: convolutions and matrix products in double precision.

use hotspan_store::Duration;

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "fp64-slow-path",
    title: "Convolutions or matrix products run in double precision",
    finds: "Convolutions and matrix products whose inputs are `double`, and convolutions that ran in torch's own slow kernels \
        (`aten::_slow_conv2d_forward`, `aten::thnn_conv2d`) instead of oneDNN's.",
    costs: "Fast kernels exist for float32 and smaller. On CPUs a double convolution falls back to unfolding the picture and a plain \
        matrix product; on most GPUs double precision runs at a 2nd to a 64th of the speed of float32. It moves twice the bytes in any case.",
    fix: "Make model and data float32: `model.float()`, `data.float()`, no `torch.set_default_dtype(torch.float64)`. NumPy arrays are double \
        by default: `torch.from_numpy(array.astype(numpy.float32))`.",
    measured: "Time of the outermost convolutions and products with a `double` input, forward and backward; reported from 5 % on. The gain is \
        half of that time for products and two thirds for convolutions.",
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

fn check(context: &Context<'_>) -> Option<Finding> {
    let (mut tally, mut saved) = (Tally::default(), Duration::ZERO);
    let mut knows_types = false;
    for span in context.calls() {
        let name = context.name(span);
        let is_convolution = CONVOLUTIONS.contains(&name);
        let is_slow = SLOW.contains(&name);
        if !is_convolution && !is_slow && !PRODUCTS.contains(&name) {
            continue;
        }
        let counted_before = context.around(span).any(|outer| {
            let outer = context.name(outer);
            CONVOLUTIONS.contains(&outer) || (is_slow && SLOW.contains(&outer))
        });
        let types = context.types(span);
        let is_double = types.iter().any(|kind| kind == "double");
        knows_types |= is_double;
        // Without types only the slow kernels tell, and the convolution around them does not.
        let counts = if types.is_empty() { is_slow } else { is_double && !counted_before };
        if counts {
            let label = if is_double { format!("{name} (double)") } else { name.to_owned() };
            tally.add(context, &label, span, context.time(span));
            let share = if is_convolution || is_slow { 2.0 / 3.0 } else { 0.5 };
            saved += part(context.time(span), share);
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let (confidence, kind) =
        if knows_types { (Confidence::High, "double precision") } else { (Confidence::Medium, "slow kernels") };
    Some(Finding {
        message: format!("{percent:.0} % of {} is in convolutions and matrix products in {kind}", context.basis()),
        fix: "convert the model and its inputs to float32 (`.float()`); double precision misses the fast convolution and \
            matrix kernels"
            .to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(saved, "half of the time of matrix products, two thirds of that of convolutions"),
        confidence,
    })
}
