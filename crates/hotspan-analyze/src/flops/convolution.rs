//! Convolutions: `2 * batch * positions * kernel * channels in * channels out / groups`.

use crate::model::inputs::{Inputs, product};

/// torch's rule for `aten::conv2d`: four dimensions, and padding given in numbers.
pub(super) fn conv2d(inputs: &Inputs<'_>) -> Option<u64> {
    (inputs.shape(0)?.len() == 4).then(|| forward(inputs)).flatten()
}

/// `conv1d`, `conv2d`, `conv3d`: input, weight, bias, stride, padding, dilation, groups.
pub(super) fn forward(inputs: &Inputs<'_>) -> Option<u64> {
    direct(inputs, 3, 4, 5, 6)
}

/// `conv_transpose*`: input, weight, bias, stride, padding, output padding, groups, dilation.
pub(super) fn transposed(inputs: &Inputs<'_>) -> Option<u64> {
    scattered(inputs.shape(0)?, inputs.shape(1)?)
}

/// `convolution`: input, weight, bias, stride, padding, dilation, transposed, output padding, groups.
pub(super) fn general(inputs: &Inputs<'_>) -> Option<u64> {
    if inputs.truth(6)? { transposed(inputs) } else { direct(inputs, 3, 4, 5, 8) }
}

/// `convolution_backward`: gradient, input, weight, bias sizes, stride, padding, dilation, transposed, output padding,
/// groups, output mask. The gradients of input and weight cost as much as the forward pass each.
pub(super) fn backward(inputs: &Inputs<'_>) -> Option<u64> {
    let (gradient, input, weight) = (inputs.shape(0)?, inputs.shape(1)?, inputs.shape(2)?);
    let once = if inputs.truth(7)? { scattered(input, weight)? } else { scattered(gradient, weight)? };
    let mask = inputs.truths(10)?;
    let passes = mask.iter().take(2).filter(|&&wanted| wanted).count() as u64;
    once.checked_mul(passes)
}

/// Each output position gathers a kernel's worth of inputs.
fn direct(inputs: &Inputs<'_>, stride: usize, padding: usize, dilation: usize, groups: usize) -> Option<u64> {
    let (input, weight) = (inputs.shape(0)?, inputs.shape(1)?);
    let (stride, padding, dilation) = (inputs.list(stride)?, inputs.list(padding)?, inputs.list(dilation)?);
    let groups = u64::try_from(inputs.int(groups)?).ok().filter(|&groups| groups > 0)?;
    let (&[batch, channels, ref size @ ..], &[out_channels, _, ref kernel @ ..]) = (input, weight) else {
        return None;
    };
    if size.len() != kernel.len() || size.is_empty() {
        return None;
    }
    let mut flops = product(&[2, batch, channels, out_channels])?;
    for (axis, (&length, &taps)) in size.iter().zip(kernel).enumerate() {
        // A single number stands for every axis.
        let along =
            |list: &[i64]| if list.len() == 1 { list.first().copied() } else { list.get(axis).copied() };
        let (stride, padding, dilation) = (along(&stride)?, along(&padding)?, along(&dilation)?);
        let reach = dilation.checked_mul(taps.checked_sub(1)?)?.checked_add(1)?;
        let free = length.checked_add(padding.checked_mul(2)?)?.checked_sub(reach)?;
        let positions = free.checked_div(stride)?.checked_add(1)?;
        flops = flops.checked_mul(product(&[positions, taps])?)?;
    }
    Some(flops / groups)
}

/// Each input position scatters into a kernel's worth of outputs: `weight` is `[channels of this tensor, others per
/// group, kernel…]`, which already divides by the groups.
fn scattered(positions: &[i64], weight: &[i64]) -> Option<u64> {
    let &[batch, _, ref size @ ..] = positions else { return None };
    if weight.len() != positions.len() {
        return None;
    }
    product(&[2, batch])?.checked_mul(product(size)?)?.checked_mul(product(weight)?)
}
