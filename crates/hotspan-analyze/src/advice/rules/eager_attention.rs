//! `eager-attention`: attention spelled out as product, softmax, product.

use hotspan_store::SpanId;

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "eager-attention",
    title: "Attention is computed step by step",
    finds: "A batched product, a softmax over its result and another batched product, on one thread with little in between, and no \
        `scaled_dot_product_attention` around them. Where shapes were recorded, the second product must take the result of the softmax, of 16 rows or more.",
    costs: "The matrix of scores, with a row and a column per token, is written to memory and read again by scaling, mask, softmax and dropout, \
        and kept for the backward pass. Its size grows with the square of the length.",
    fix: "`torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=…, dropout_p=…, is_causal=…)`; for Hugging Face models \
        `attn_implementation=\"sdpa\"`. `nn.MultiheadAttention`: `need_weights=False`.",
    measured: "Time from the first product to the end of the second; reported from 5 % of the time on. The gain is half of it.",
    needs: &[Need::Operators],
    check,
};

const REACH: usize = 8;
/// With fewer rows of scores there is little to keep out of memory: one token at a time, as when text is generated.
const FEWEST_ROWS: i64 = 16;

/// Whether a product multiplies the result of a softmax, as far as shapes tell: where none were recorded, the order of calls decides.
fn is_attention(context: &Context<'_>, softmax: SpanId, product: SpanId) -> bool {
    let size = |shape: &[i64]| shape.iter().try_fold(1_i64, |size, &length| size.checked_mul(length));
    match (context.shapes(softmax).first(), context.shapes(product).first()) {
        (Some(scores), Some(left)) => {
            let rows = scores.len().checked_sub(2).map_or(0, |place| scores[place]);
            rows >= FEWEST_ROWS && scores.last() == left.last() && size(scores) == size(left)
        }
        _ => true,
    }
}

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let fused = |span: SpanId| {
        context.around(span).any(|outer| {
            let name = context.name(outer);
            name.contains("scaled_dot_product") || name.contains("_native_multi_head_attention")
        })
    };
    // The products and softmaxes among the outermost calls of each thread.
    let mut threads: Vec<Vec<SpanId>> = vec![Vec::new(); context.model.tracks().len()];
    for span in context.outermost_calls() {
        threads[spans.track(span).index()].push(span);
    }
    let is_product = |span: &SpanId| {
        let runs = |name: &str| matches!(name, "aten::bmm" | "aten::baddbmm");
        let name = context.name(*span);
        runs(name)
            || (matches!(name, "aten::matmul" | "aten::einsum") && context.children(*span).iter().any(|&child| runs(context.name(child))))
    };
    let mut tally = Tally::default();
    for calls in &threads {
        for (index, &softmax) in calls.iter().enumerate() {
            if !matches!(context.name(softmax), "aten::softmax" | "aten::_softmax") || fused(softmax) {
                continue;
            }
            let before = calls[index.saturating_sub(REACH)..index].iter().rposition(is_product);
            let after = calls[index + 1..calls.len().min(index + 1 + REACH)].iter().position(is_product);
            if let (Some(before), Some(after)) = (before, after)
                && is_attention(context, softmax, calls[index + 1 + after])
            {
                let first = index.saturating_sub(REACH) + before;
                let time = calls[first..=index + 1 + after].iter().map(|&span| context.time(span)).sum();
                tally.add(context, "product, softmax, product", softmax, time);
            }
        }
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let (count, time) = (tally.count(), tally.time());
    Some(Finding {
        message: format!("{percent:.0} % of {} is attention computed step by step ({count} times)", context.basis()),
        fix: "use `torch.nn.functional.scaled_dot_product_attention`".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.5), "half of the time from the first product to the second"),
        confidence: Confidence::Medium,
    })
}
