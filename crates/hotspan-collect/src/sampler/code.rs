//! Functions met in stacks, each with a number.

use hashbrown::HashMap;
use hotspan_store::FrameKind;

use super::error::SamplerError;
use super::interpreter::Interpreter;
use crate::cpython::{CodeCache, Function, Memory, Objects, RawFrame};

/// A function that a [`super::ProcessReader`] met; the number stays the same for as long as the reader lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// All functions met, and the code objects they come from.
#[derive(Debug, Default)]
pub(super) struct Functions {
    codes: CodeCache<FunctionId>,
    numbered: Numbered,
}

/// Functions by number, and numbers by function.
#[derive(Debug, Default)]
struct Numbered {
    functions: Vec<(Function, FrameKind)>,
    ids: HashMap<Function, FunctionId>,
}

impl Numbered {
    fn number(&mut self, function: Function, kind: FrameKind) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        *self.ids.entry(function).or_insert_with_key(|function| {
            self.functions.push((function.clone(), kind));
            next
        })
    }
}

impl Functions {
    /// Has every code object compared again before it is used.
    pub(super) fn next_epoch(&mut self) {
        self.codes.next_epoch();
    }

    pub(super) fn get(&self, id: FunctionId) -> (&Function, FrameKind) {
        let (function, kind) = &self.numbered.functions[id.0 as usize];
        (function, *kind)
    }

    /// The number of a function of a library.
    pub(super) fn native(&mut self, name: String, library: &str) -> FunctionId {
        self.numbered.number(Function { name, file: library.to_owned(), first_line: 0 }, FrameKind::Native)
    }

    /// The function of a frame, and the line it is at.
    pub(super) fn resolve<M: Memory<Error = SamplerError>>(
        &mut self,
        memory: &M,
        interpreter: &Interpreter,
        frame: &RawFrame,
    ) -> Result<(FunctionId, u32), SamplerError> {
        let Interpreter { offsets, code_type, .. } = interpreter;
        let mut failure = None;
        if self.codes.is_due(frame) {
            let number = |function| self.numbered.number(function, FrameKind::Python);
            failure = self.codes.refresh(&Objects { memory, offsets }, *code_type, frame.code, number).err();
        }
        // What was read before stands for what cannot be read now.
        match self.codes.function(offsets, frame) {
            Some((&function, line)) => Ok((function, line)),
            None => Err(failure.unwrap_or_else(|| memory.malformed("a function"))),
        }
    }
}
