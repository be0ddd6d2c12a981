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
/// As many threads may have copies of the instructions of a function; those of others have no lines.
pub(crate) const MOST_COPIES: usize = 1 << 10;
const INSTRUCTION_BYTES: u64 = 2;

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
    instructions: Instructions,
    function: T,
}

/// Where the instructions of a function lie: in its code object, and in free-threaded builds in a copy for each thread that
/// has run it.
#[derive(Debug)]
struct Instructions {
    own: Address,
    /// In bytes, of each copy; 0 where there are no copies.
    length: u64,
    copies: Vec<Address>,
}

impl Instructions {
    /// Where the copy begins that an instruction is part of; `None` when it is in none that is known.
    fn start(&self, instruction: u64) -> Option<Address> {
        let has = |start: &Address| instruction.wrapping_sub(start.0) <= self.length;
        if self.length == 0 || has(&self.own) {
            return Some(self.own);
        }
        self.copies.iter().copied().find(has)
    }
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

    /// Whether the code object of a frame has to be compared with memory before it is used.
    pub(crate) fn is_due(&self, frame: &RawFrame) -> bool {
        self.codes.get(&frame.code).is_none_or(|cached| {
            cached.checked != self.epoch || cached.instructions.start(frame.instruction).is_none()
        })
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
        let instructions = instructions(objects, code, &header);
        if let Some(cached) = self.codes.get_mut(&code)
            && cached.identity == identity
        {
            cached.checked = self.epoch;
            cached.instructions = instructions;
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
        let function = function(described);
        self.codes.insert(code, Code { identity, checked: self.epoch, lines, instructions, function });
        Ok(())
    }

    /// The function of a frame and the line it is at, where its code was read.
    pub(crate) fn function(&self, offsets: &Offsets, frame: &RawFrame) -> Option<(&T, u32)> {
        let cached = self.codes.get(&frame.code)?;
        // In a copy that is not known the function is taken to be at its beginning.
        let start = cached.instructions.start(frame.instruction).unwrap_or(Address(frame.instruction));
        let offset = offsets.instruction_offset(start, frame.instruction);
        Some((&cached.function, cached.lines.at(offset)))
    }

    /// Forgets a code object whose function is such that another one may have had its address since.
    pub(crate) fn forget_if(&mut self, code: Address, is_doubtful: impl FnOnce(&T) -> bool) {
        if self.codes.get(&code).is_some_and(|cached| is_doubtful(&cached.function)) {
            self.codes.remove(&code);
        }
    }
}

/// Where the instructions of a code object are. Copies that cannot be read are none.
fn instructions<M: Memory>(objects: &Objects<'_, M>, code: Address, header: &[u8]) -> Instructions {
    let Objects { memory, offsets } = objects;
    let own = code.field(offsets.code_instructions);
    let Some(at) = offsets.code_copies else {
        return Instructions { own, length: 0, copies: Vec::new() };
    };
    let length = word_at(header, offsets.sized_length).saturating_mul(INSTRUCTION_BYTES);
    // A table: how many, then a pointer to each; null for threads that never ran it.
    let table = Address(word_at(header, at));
    let copies = memory.word(table).and_then(|count| {
        let bytes = memory.bytes(table.plus(8), (count as usize).min(MOST_COPIES) * 8)?;
        Ok(bytes
            .chunks_exact(8)
            .map(|word| Address(word_at(word, 0)))
            .filter(|copy| !copy.is_null())
            .collect())
    });
    Instructions { own, length, copies: copies.unwrap_or_default() }
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
