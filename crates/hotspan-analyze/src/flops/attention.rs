//! Fused attention: two matrix products forward, five backward (one recomputes the scores).
//!
//! Masks are not subtracted, so a causal attention counts as a full one, as in the literature. The unfused variant is
//! counted by the `bmm`s it calls.

use crate::model::inputs::{Inputs, product};

/// The formula of a fused attention operator.
pub(super) fn formula(operator: &str) -> Option<fn(&Inputs<'_>) -> Option<u64>> {
    Some(match operator {
        "aten::_scaled_dot_product_flash_attention"
        | "aten::_scaled_dot_product_flash_attention_for_cpu"
        | "aten::_scaled_dot_product_efficient_attention"
        | "aten::_scaled_dot_product_cudnn_attention"
        | "aten::_scaled_dot_product_fused_attention_overrideable" => forward,
        "aten::_scaled_dot_product_flash_attention_backward"
        | "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
        | "aten::_scaled_dot_product_efficient_attention_backward"
        | "aten::_scaled_dot_product_cudnn_attention_backward"
        | "aten::_scaled_dot_product_fused_attention_overrideable_backward" => backward,
        _ => return None,
    })
}

fn forward(inputs: &Inputs<'_>) -> Option<u64> {
    let sizes = Sizes::of(inputs.shape(0)?, inputs.shape(1)?, inputs.shape(2)?)?;
    sizes.product(sizes.key_width)?.checked_add(sizes.product(sizes.value_width)?)
}

/// Inputs begin with the gradient of the output.
fn backward(inputs: &Inputs<'_>) -> Option<u64> {
    let sizes = Sizes::of(inputs.shape(1)?, inputs.shape(2)?, inputs.shape(3)?)?;
    // Scores again, gradient of queries and of keys; gradient of scores and of values.
    let keys = sizes.product(sizes.key_width)?.checked_mul(3)?;
    let values = sizes.product(sizes.value_width)?.checked_mul(2)?;
    keys.checked_add(values)
}

/// `[batch, heads, length, width]` of queries, keys and values.
struct Sizes {
    batch: i64,
    heads: i64,
    queries: i64,
    keys: i64,
    key_width: i64,
    value_width: i64,
}

impl Sizes {
    fn of(query: &[i64], key: &[i64], value: &[i64]) -> Option<Self> {
        let (&[batch, heads, queries, key_width], &[_, _, keys, _], &[.., value_width]) = (query, key, value)
        else {
            return None;
        };
        Some(Self { batch, heads, queries, keys, key_width, value_width })
    }

    fn product(&self, width: i64) -> Option<u64> {
        product(&[2, self.batch, self.heads, self.queries, self.keys, width])
    }
}
