//! Functions met in stacks, read once: the cache of code objects.
//!
//! A frame may be read while it goes, and its code object with it. Where there is none any more, the last one known at
//! that place is the one the frame ran.

use hashbrown::HashMap;

use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::layout::LineTable;
use super::lines::Lines;
use super::memory::{Address, Memory, half_at, word_at};
use super::objects::Objects;

/// A function that a [`super::Walker`] met; the number stays the same for as long as the walker lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// What is known about a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, with its class from Python 3.11 on.
    pub name: String,
    /// Its source file.
    pub file: String,
    /// The line it begins at.
    pub first_line: u32,
}

/// A code object as it was when it was read.
#[derive(Debug)]
struct Code {
    /// What tells it from another object that later lies at the same place.
    fingerprint: [u64; 4],
    function: FunctionId,
    lines: Lines,
    /// When it was last compared with the memory of the process.
    checked: u32,
}

/// Programs that make code endlessly must not make us grow endlessly.
const MOST_CODES: usize = 1 << 16;

/// All functions met, and the code objects they come from.
#[derive(Debug, Default)]
pub(super) struct Codes {
    codes: HashMap<Address, Code>,
    functions: Vec<Function>,
    ids: HashMap<Function, FunctionId>,
    /// Counts up now and then; a code object is compared once in each.
    epoch: u32,
}

impl Codes {
    /// Has every code object compared again before it is used.
    pub(super) fn next_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    pub(super) fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The function of a code object, and the line of the instruction that `instruction` stands for.
    pub(super) fn resolve(
        &mut self,
        memory: &Memory,
        interpreter: &Interpreter,
        code: Address,
        instruction: u64,
    ) -> Result<(FunctionId, u32), SamplerError> {
        let epoch = self.epoch;
        let known = self.codes.get(&code).map(|known| (known.checked, known.fingerprint));
        if known.is_none_or(|(checked, _)| checked != epoch) {
            let outcome = self.compare(memory, interpreter, code, known.map(|(_, fingerprint)| fingerprint));
            if known.is_none() {
                outcome?;
            }
        }
        let known = self.codes.get(&code).ok_or_else(|| memory.unreadable("a function"))?;
        let offset = match interpreter.layout.line_table {
            LineTable::Lnotab => instruction,
            LineTable::Pairs => instruction.wrapping_mul(2),
            LineTable::Locations => {
                instruction.wrapping_sub(code.plus(interpreter.layout.code_instructions as u64).0)
            }
        };
        // Before its first instruction a function is at its first line.
        let offset = u32::try_from(offset).unwrap_or(0);
        Ok((known.function, known.lines.at(offset)))
    }

    /// Compares a code object with what is known of it, and reads it where it is another one.
    fn compare(
        &mut self,
        memory: &Memory,
        interpreter: &Interpreter,
        code: Address,
        known: Option<[u64; 4]>,
    ) -> Result<(), SamplerError> {
        let header = memory.bytes(code, interpreter.layout.code_length())?;
        let kind = Address(word_at(&header, interpreter.layout.object_type));
        if interpreter.code_type.is_some_and(|code_type| code_type != kind) {
            return Err(memory.unreadable("a code object"));
        }
        let fingerprint = fingerprint(&header, interpreter);
        if known != Some(fingerprint) {
            return self.read(memory, interpreter, code, &header, fingerprint);
        }
        if let Some(known) = self.codes.get_mut(&code) {
            known.checked = self.epoch;
        }
        Ok(())
    }

    fn read(
        &mut self,
        memory: &Memory,
        interpreter: &Interpreter,
        code: Address,
        header: &[u8],
        fingerprint: [u64; 4],
    ) -> Result<(), SamplerError> {
        let layout = &interpreter.layout;
        let objects = Objects { memory, layout };
        let pointer = |offset| Address(word_at(header, offset));
        let first_line = half_at(header, layout.code_first_line);
        let function = Function {
            name: objects.text(pointer(layout.code_qualname.unwrap_or(layout.code_name)))?,
            file: objects.text(pointer(layout.code_filename))?,
            first_line,
        };
        let table = objects.bytes(pointer(layout.code_line_table))?;
        let lines = Lines::decode(layout.line_table, &table, first_line);
        let next = FunctionId(self.functions.len() as u32);
        let function = *self.ids.entry(function).or_insert_with_key(|function| {
            self.functions.push(function.clone());
            next
        });
        if self.codes.len() >= MOST_CODES {
            self.codes.clear();
        }
        self.codes.insert(code, Code { fingerprint, function, lines, checked: self.epoch });
        Ok(())
    }
}

fn fingerprint(header: &[u8], interpreter: &Interpreter) -> [u64; 4] {
    let layout = &interpreter.layout;
    [
        word_at(header, layout.code_name),
        word_at(header, layout.code_filename),
        word_at(header, layout.code_line_table),
        u64::from(half_at(header, layout.code_first_line)),
    ]
}
