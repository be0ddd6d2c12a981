//! Code objects that were met in stacks, read once.
//!
//! A code object may die and another take its address. What is kept is compared with memory once in each epoch, and read
//! again where it differs. Where there is no code object any more, the last one that was there is the one the frame ran.

use hashbrown::HashMap;

use super::frames::RawFrame;
use super::lines::Lines;
use super::memory::{Address, Memory, half_at, word_at};
use super::objects::Objects;
use super::offsets::Offsets;

/// Programs that make code endlessly must not make us grow endlessly.
const MOST_CODES: usize = 1 << 16;

/// A function, as its code object describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, with its class from Python 3.11 on.
    pub name: String,
    /// Its source file.
    pub file: String,
    /// The line it begins at.
    pub first_line: u32,
}

#[derive(Debug)]
struct Code<T> {
    /// What tells it from another object that later lies at the same address.
    identity: [u64; 5],
    /// The epoch in which it was last compared.
    checked: u32,
    lines: Lines,
    function: T,
}

/// Code objects by address, each with what the owner of the cache makes of its function.
#[derive(Debug)]
pub(crate) struct CodeCache<T> {
    codes: HashMap<Address, Code<T>>,
    epoch: u32,
}

impl<T> Default for CodeCache<T> {
    fn default() -> Self {
        Self { codes: HashMap::new(), epoch: 0 }
    }
}

impl<T> CodeCache<T> {
    /// Has every code object compared again before it is used. Whether all were forgotten is the answer.
    pub(crate) fn next_epoch(&mut self) -> bool {
        self.epoch = self.epoch.wrapping_add(1);
        let is_full = self.codes.len() > MOST_CODES;
        if is_full {
            self.codes.clear();
        }
        is_full
    }

    /// Whether a code object has to be compared with memory before it is used.
    pub(crate) fn is_due(&self, code: Address) -> bool {
        self.codes.get(&code).is_none_or(|cached| cached.checked != self.epoch)
    }

    /// Compares a code object with memory, and reads it where it is new or another one.
    pub(crate) fn refresh<M: Memory>(
        &mut self,
        objects: &Objects<'_, M>,
        code_type: Option<Address>,
        code: Address,
        function: impl FnOnce(Function) -> T,
    ) -> Result<(), M::Error> {
        let Objects { memory, offsets } = objects;
        let header = memory.bytes(code, offsets.code_length())?;
        let identity = identity(offsets, &header);
        if code_type.is_some_and(|code_type| code_type.0 != identity[0]) {
            return Err(memory.malformed("a code object"));
        }
        if let Some(cached) = self.codes.get_mut(&code)
            && cached.identity == identity
        {
            cached.checked = self.epoch;
            return Ok(());
        }
        let pointer = |offset| Address(word_at(&header, offset));
        let first_line = half_at(&header, offsets.code_first_line);
        let described = Function {
            name: objects.text(pointer(offsets.code_name))?,
            file: objects.text(pointer(offsets.code_file))?,
            first_line,
        };
        let table = objects.bytes_up_to_end(pointer(offsets.code_line_table))?;
        let lines = Lines::decode(offsets.line_table, &table, first_line);
        self.codes.insert(code, Code { identity, checked: self.epoch, lines, function: function(described) });
        Ok(())
    }

    /// The function of a frame and the line it is at, where its code was read.
    pub(crate) fn function(&self, offsets: &Offsets, frame: &RawFrame) -> Option<(&T, u32)> {
        let cached = self.codes.get(&frame.code)?;
        let offset = offsets.instruction_offset(frame.code, frame.instruction);
        Some((&cached.function, cached.lines.at(offset)))
    }

    /// Forgets a code object whose function is such that another one may have had its address since.
    pub(crate) fn forget_if(&mut self, code: Address, is_doubtful: impl FnOnce(&T) -> bool) {
        if self.codes.get(&code).is_some_and(|cached| is_doubtful(&cached.function)) {
            self.codes.remove(&code);
        }
    }
}

/// The reference count is no part of what a code object is, nor are the counters of the specialiser.
fn identity(offsets: &Offsets, header: &[u8]) -> [u64; 5] {
    [
        word_at(header, offsets.object_type),
        u64::from(half_at(header, offsets.code_first_line)),
        word_at(header, offsets.code_name),
        word_at(header, offsets.code_file),
        word_at(header, offsets.code_line_table),
    ]
}
