//! Names, files and lines of code objects in this process.
//!
//! Modules die young: their code objects are mostly gone when the collector comes, so the handler copies them (`early`).

use super::early::{self, CodeCopies};
use super::interpreter::Interpreter;
use crate::cpython::{CodeCache, Function, Objects, RawFrame};
use crate::native::memory::OwnMemory;
use crate::native::rows::Frame;

/// Code of this name lives as long as its module is being imported.
const MODULE: &str = "<module>";

/// Code objects that were met, each with a frame at its first line.
pub(crate) struct Codes(CodeCache<Frame>);

impl Codes {
    pub(crate) fn new() -> Self {
        early::forget_all();
        Self(CodeCache::default())
    }

    /// Begins a batch: what is kept must be compared with memory again.
    pub(crate) fn next_batch(&mut self) {
        if self.0.next_epoch() {
            early::forget_all();
        }
    }

    /// The names of a frame, or nothing when its code object is not there any more and was never read.
    pub(crate) fn frame(
        &mut self,
        interpreter: &Interpreter,
        frame: &RawFrame,
        copies: Option<&CodeCopies>,
    ) -> Option<Frame> {
        let Interpreter { offsets, code_type, .. } = interpreter;
        let (code, code_type) = (frame.code, Some(*code_type));
        let make = |Function { name, file, first_line }| {
            if name != MODULE {
                early::set_read(code);
            }
            let (name, file) = (name.into(), file.into());
            Frame { name, file, line: first_line, first_line, is_python: true }
        };
        let refreshed = match copies.filter(|copies| copies.has(code)) {
            Some(memory) => self.0.refresh(&Objects { memory, offsets }, code_type, code, make),
            None if self.0.is_due(frame) => {
                self.0.refresh(&Objects { memory: &OwnMemory, offsets }, code_type, code, make)
            }
            None => Ok(()),
        };
        if refreshed.is_err() {
            // Another module may have lain there since.
            self.0.forget_if(code, |function| &*function.name == MODULE);
        }
        let (function, line) = self.0.function(offsets, frame)?;
        Some(Frame { line, ..function.clone() })
    }
}
