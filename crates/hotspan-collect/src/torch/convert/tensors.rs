//! Which tensors the inputs of operators are: kept beside the trace, for the program that recorded it.

use std::collections::HashMap;
use std::ops::Range;

/// A tensor among the inputs of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputTensor {
    /// The address of its `TensorImpl`. No other has it while recording goes on.
    pub implementation: u64,
    /// The address of its storage's data; 0 for none.
    pub data: u64,
    /// `c10::ScalarType`.
    pub dtype: u8,
    /// `c10::Layout`.
    pub layout: u8,
    /// `c10::DeviceType`.
    pub device_type: u8,
    /// -1 for the only one.
    pub device_index: i32,
}

/// The tensors of all operators of a recording, by the operator's `External id`.
#[derive(Clone, Debug, Default)]
pub struct TensorTable {
    tensors: Vec<InputTensor>,
    operators: HashMap<i64, Range<usize>>,
}

impl TensorTable {
    /// Those among the positional inputs that have a shape, in order, with those of lists.
    #[must_use]
    pub fn of(&self, external_id: i64) -> &[InputTensor] {
        self.operators.get(&external_id).and_then(|range| self.tensors.get(range.clone())).unwrap_or_default()
    }

    pub(super) fn add(&mut self, words: &[u64]) -> Range<usize> {
        let start = self.tensors.len();
        let (tensors, _) = words.as_chunks::<3>();
        self.tensors.extend(tensors.iter().map(|&[implementation, data, what]| InputTensor {
            implementation,
            data,
            dtype: what as u8,
            layout: (what >> 8) as u8,
            device_type: (what >> 16) as u8,
            device_index: (what >> 32) as i32,
        }));
        start..self.tensors.len()
    }

    pub(super) fn name(&mut self, external_id: i64, tensors: Range<usize>) {
        self.operators.insert(external_id, tensors);
    }
}
