//! Names, files and lines of code objects, read from memory and kept.
//!
//! A code object may die and another take its place. What is kept is compared with memory once in each batch of
//! samples; where it differs it is read anew. Where there is no code object any more, the last one known there is the
//! one that the frame ran: modules, which die young, never get that far, since the handler copies them (`early`).

use std::sync::Arc;

use hashbrown::HashMap;

use super::early::{self, BYTES_START, Pieces, Source};
use super::interpreter::Interpreter;
use super::layout::{CODE_BYTES, Layout};
use super::lines::line_at;
use crate::native::slots::PythonEntry;

/// Longer texts and tables than this are not believed.
const MOST_BYTES: usize = 1 << 20;

/// Code of this name lives as long as its module is being imported.
const MODULE: &str = "<module>";

/// More code objects than this are forgotten and read again.
const MOST_CODES: usize = 50_000;

/// A Python frame with its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonFrame {
    pub(crate) name: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) line: u32,
    pub(crate) first_line: u32,
}

struct Code {
    head: Vec<u8>,
    checked: u64,
    name: Arc<str>,
    file: Arc<str>,
    first_line: u32,
    table: Vec<u8>,
    lines: HashMap<usize, u32>,
}

/// Code objects that were met.
pub(crate) struct CodeNames {
    known: HashMap<usize, Code>,
    batch: u64,
}

impl CodeNames {
    pub(crate) fn new() -> Self {
        early::forget_all();
        Self { known: HashMap::new(), batch: 0 }
    }

    /// Begins a batch: what is kept must be compared with memory again.
    pub(crate) fn next_batch(&mut self) {
        self.batch += 1;
        // A program that makes code without end must not make this grow without end.
        if self.known.len() > MOST_CODES {
            self.known.clear();
            early::forget_all();
        }
    }

    /// The names of a frame, or nothing when its code object is not there any more and was never read.
    pub(crate) fn frame(
        &mut self,
        interpreter: &Interpreter,
        entry: &PythonEntry,
        pieces: Option<&Pieces>,
    ) -> Option<PythonFrame> {
        let layout = &interpreter.layout;
        let copied = pieces.and_then(|pieces| {
            Some((Source::Copied(pieces), Source::Copied(pieces).bytes(entry.code, CODE_BYTES)?))
        });
        let is_due = self.known.get(&entry.code).is_none_or(|code| code.checked != self.batch);
        let look = || Some((Source::Live, Source::Live.bytes(entry.code, CODE_BYTES)?));
        if let Some((source, head)) = copied.or_else(|| is_due.then(look).flatten()) {
            self.compare(interpreter, entry.code, source, head);
        }
        let code = self.known.get_mut(&entry.code)?;
        let offset = if layout.instruction_is_number {
            // -1 before the first instruction.
            (entry.instruction as u32 as i32).max(0) as usize * 2
        } else {
            entry.instruction.saturating_sub(entry.code + layout.code_instructions)
        };
        let (table, first_line) = (&code.table, code.first_line);
        let line = *code
            .lines
            .entry(offset)
            .or_insert_with(|| line_at(layout.minor, table, first_line, offset).unwrap_or(first_line));
        Some(PythonFrame { name: Arc::clone(&code.name), file: Arc::clone(&code.file), line, first_line })
    }
}

impl CodeNames {
    /// Reads a code object whose head is there, unless it is the one that is known.
    fn compare(&mut self, interpreter: &Interpreter, code: usize, source: Source<'_>, head: Vec<u8>) {
        let layout = &interpreter.layout;
        // The reference count is not part of what a code object is, nor are the counters of the specialiser.
        let same = |known: &&mut Code| identity(layout, &known.head) == identity(layout, &head);
        if let Some(known) = self.known.get_mut(&code).filter(same) {
            known.checked = self.batch;
        } else if let Some(read) = Code::read(interpreter, source, head, self.batch) {
            if &*read.name != MODULE {
                early::know(code);
            }
            self.known.insert(code, read);
        } else if self.known.get(&code).is_some_and(|known| &*known.name == MODULE) {
            // Another module may have lain there since.
            self.known.remove(&code);
        }
    }
}

fn word(head: &[u8], offset: usize) -> Option<usize> {
    head.get(offset..offset + 8)?.try_into().ok().map(usize::from_ne_bytes)
}

fn identity(layout: &Layout, head: &[u8]) -> [Option<usize>; 5] {
    let first_line = word(head, layout.code_first_line).map(|line| line & 0xffff_ffff);
    [
        word(head, 8),
        first_line,
        word(head, layout.code_name),
        word(head, layout.code_file),
        word(head, layout.code_lines),
    ]
}

impl Code {
    fn read(interpreter: &Interpreter, source: Source<'_>, head: Vec<u8>, batch: u64) -> Option<Self> {
        let layout = &interpreter.layout;
        if word(&head, 8)? != interpreter.code_type {
            return None;
        }
        let name = text(layout, source, word(&head, layout.code_name)?)?;
        let file = text(layout, source, word(&head, layout.code_file)?)?;
        let first_line = word(&head, layout.code_first_line)? as u32;
        // A bytes object: its size at 16. Of a copy the end may be missing.
        let lines = word(&head, layout.code_lines)?;
        let size = source.word(lines.checked_add(16)?).filter(|&size| size < MOST_BYTES)?;
        let table = source.at_most(lines.checked_add(BYTES_START)?, size)?;
        let (name, file) = (name.into(), file.into());
        Some(Self { head, checked: batch, name, file, first_line, table, lines: HashMap::new() })
    }
}

/// A Python string: its length at 16, its shape at 32.
fn text(layout: &Layout, source: Source<'_>, address: usize) -> Option<String> {
    let length = source.word(address.checked_add(16)?).filter(|&length| length < MOST_BYTES)?;
    let shape = source.word(address.checked_add(32)?)?;
    let (width, is_compact, is_ascii) = ((shape >> 2) & 7, shape & 0x20 != 0, shape & 0x40 != 0);
    if !is_compact || !matches!(width, 1 | 2 | 4) {
        return None;
    }
    let start = if is_ascii { layout.ascii_size } else { layout.compact_size };
    let bytes = source.bytes(address.checked_add(start)?, length * width)?;
    let replaced = |number: u32| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some(match width {
        1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        2 => bytes
            .chunks_exact(2)
            .map(|pair| replaced(u16::from_ne_bytes([pair[0], pair[1]]).into()))
            .collect(),
        _ => bytes
            .chunks_exact(4)
            .map(|four| replaced(u32::from_ne_bytes(four.try_into().unwrap_or_default())))
            .collect(),
    })
}
