//! Names and inputs of operators: written once by the shim, interned once here, referred to by number in records.

use std::ops::Range;

use hotspan_store::{Arg, StringId};

use super::Converter;
use crate::torch::abi::{self, Block};
use crate::torch::inputs::{self, Keyword};

/// Texts of one list of inputs, interned.
pub(super) struct InternedInputs {
    /// Concrete inputs, types, strides, dims; `None` when there are only keyword inputs.
    pub(super) positional: Option<[StringId; 4]>,
    pub(super) keywords: Vec<(String, Arg)>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Name {
    pub(super) id: StringId,
    pub(super) is_evaluation: bool,
}

/// What the autograd engine calls its work on a node. The node itself, recorded next, has the sequence number.
const EVALUATION: &[u8] = b"autograd::engine::evaluate_function: ";

/// The blocks of one thread, interned, in the order that records count them by.
#[derive(Default)]
pub(super) struct Blocks {
    names: Vec<Name>,
    inputs: Vec<InternedInputs>,
    /// Where the tensors of a block are in the table of all.
    tensors: Vec<Range<usize>>,
}

// All are counted from 1. What is not there can only be a mistake of the shim; it must not become a panic.
impl Blocks {
    pub(super) fn name(&self, operator: &abi::Operator) -> Name {
        self.names.get((operator.name as usize).wrapping_sub(1)).copied().unwrap_or_default()
    }

    /// The modules of TorchScript around an operator.
    pub(super) fn modules(&self, extra: &abi::Extra) -> Option<StringId> {
        self.names.get((extra.modules as usize).wrapping_sub(1)).map(|name| name.id)
    }

    pub(super) fn inputs(&self, operator: &abi::Operator) -> Option<&InternedInputs> {
        self.inputs.get((operator.inputs as usize).wrapping_sub(1))
    }

    pub(super) fn tensors(&self, extra: &abi::Extra) -> Option<Range<usize>> {
        self.tensors.get((extra.tensors as usize).wrapping_sub(1)).cloned()
    }
}

impl Converter {
    pub(super) fn read_blocks(&mut self, mut words: &[u64], blocks: &mut Blocks) {
        while let Some((block, rest)) = Block::read(words) {
            words = rest;
            match block {
                Block::Name(name, overload) => blocks.names.push(self.name(name, overload)),
                Block::Inputs(count, items) => blocks.inputs.push(self.inputs(count, items)),
                Block::Tensors(words) => blocks.tensors.push(self.tensors.add(words)),
            }
        }
    }

    fn name(&mut self, name: &[u8], overload: &[u8]) -> Name {
        let id = if self.overload_names && !overload.is_empty() {
            self.builder.intern_bytes(&[name, b".", overload].concat(), 0)
        } else {
            self.builder.intern_bytes(name, 0)
        };
        Name { id, is_evaluation: name.starts_with(EVALUATION) }
    }

    fn inputs(&mut self, count: usize, items: &[u64]) -> InternedInputs {
        let texts = inputs::decode(items, count, |dtype| self.shim.dtype_name(dtype));
        let builder = &mut self.builder;
        let positional = (count > 0).then(|| {
            [&texts.concrete, &texts.types, &texts.strides, &texts.dims].map(|text| builder.intern(text))
        });
        let mut value = |value: Keyword| match value {
            Keyword::Int(number) => Arg::Int(number),
            Keyword::Text(text) => Arg::Text(builder.intern(&text)),
            Keyword::Json(text) => Arg::Json(builder.intern(&text)),
        };
        let keywords = texts.keywords.into_iter().map(|(key, keyword)| (key, value(keyword))).collect();
        InternedInputs { positional, keywords }
    }
}
