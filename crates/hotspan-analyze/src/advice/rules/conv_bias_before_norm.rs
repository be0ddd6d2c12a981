//! `conv-bias-before-norm`: a bias that batch normalisation takes away again.

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "conv-bias-before-norm",
    title: "Convolutions have a bias that batch normalisation removes",
    finds: "`aten::conv1d/2d/3d` with a bias, directly followed by `aten::batch_norm` of as many channels, in a program that trains. (In a trained model the bias is part of what was learned.)",
    costs: "Batch normalisation subtracts the mean, so the bias has no effect: adding it, and summing up its gradient over all \
        pictures and places, is for nothing.",
    fix: "`nn.Conv2d(…, bias=False)` before `nn.BatchNorm2d`.",
    measured: "Such pairs, where the convolutions take 2 % of the time or more. The gain is 3 % of the time of these convolutions, forward.",
    needs: &[Need::Operators, Need::Shapes],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    if !context.model.strings().iter().any(|name| name.starts_with("autograd::engine::") || name.contains("ConvolutionBackward")) {
        return None;
    }
    let mut last = vec![None; context.model.tracks().len()];
    let mut tally = Tally::default();
    for span in context.outermost_calls() {
        let last = &mut last[spans.track(span).index()];
        match context.name(span) {
            "aten::conv1d" | "aten::conv2d" | "aten::conv3d" => *last = Some(span),
            // The normalisation counts its batches first.
            "aten::add_" | "aten::empty" => continue,
            "aten::batch_norm" => {}
            _ => *last = None,
        }
        let Some(convolution) = last.filter(|_| context.name(span) == "aten::batch_norm") else { continue };
        let (shapes, normalised) = (context.shapes(convolution), context.shapes(span));
        let (Some([channels]), Some(input)) = (shapes.get(2).map(Vec::as_slice), normalised.first()) else { continue };
        if input.get(1) == Some(channels) {
            let label = format!("{} with bias, {channels} channels", context.name(convolution));
            tally.add(context, &label, convolution, context.time(convolution));
        }
    }
    if context.percent(tally.time()) < 2.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{count} convolutions add a bias that the batch normalisation after them takes away"),
        fix: "construct these convolutions with `bias=False`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.03), "3 % of the time of these convolutions"),
        confidence: Confidence::High,
    })
}
