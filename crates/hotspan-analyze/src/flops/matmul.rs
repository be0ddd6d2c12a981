//! Matrix products and elementwise operators. A multiplication and an addition are two operations.

use crate::model::inputs::{Inputs, product};

pub(super) fn mm(inputs: &Inputs<'_>) -> Option<u64> {
    matrix(inputs.shape(0)?, inputs.shape(1)?)
}

pub(super) fn addmm(inputs: &Inputs<'_>) -> Option<u64> {
    matrix(inputs.shape(1)?, inputs.shape(2)?)
}

pub(super) fn bmm(inputs: &Inputs<'_>) -> Option<u64> {
    batched(inputs.shape(0)?, inputs.shape(1)?)
}

pub(super) fn baddbmm(inputs: &Inputs<'_>) -> Option<u64> {
    batched(inputs.shape(1)?, inputs.shape(2)?)
}

/// One operation for each element of the first operand, as torch counts: broadcasting is left out.
pub(super) fn elementwise(inputs: &Inputs<'_>) -> Option<u64> {
    product(inputs.shape(0)?)
}

/// `[m, k] x [k, n]`.
fn matrix(left: &[i64], right: &[i64]) -> Option<u64> {
    let (&[m, inner], &[_, n]) = (left, right) else { return None };
    product(&[2, m, inner, n])
}

/// `[b, m, k] x [b, k, n]`.
fn batched(left: &[i64], right: &[i64]) -> Option<u64> {
    let (&[batch, m, inner], &[_, _, n]) = (left, right) else { return None };
    product(&[2, batch, m, inner, n])
}
