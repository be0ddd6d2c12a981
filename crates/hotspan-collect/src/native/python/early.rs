//! Code objects that may be gone before the collector reads them: the handler copies what their names and lines need.
//!
//! The code of a module lives only as long as the module is being imported, which is often shorter than a turn of the
//! collector. Functions live long: once the collector has read one, the handler leaves it alone.

use std::sync::atomic::{AtomicU64, Ordering};

use super::interpreter::Interpreter;
use crate::cpython::{Address, MOST_COPIES, Memory, RawFrame, word_at};
use crate::native::memory::{self, Unreadable};

/// How many pieces, and how many bytes in all, are copied for one sample.
const MOST_PIECES: usize = 320;
const MOST_BYTES: usize = 128 * 1024;
/// Longer tables of lines are cut; what lies beyond has the first line of its function.
const LONGEST_TABLE: usize = 4 * 1024;
/// Enough for most names and paths.
const TEXT_BYTES: usize = 256;
const LONGEST_TEXT: usize = 4 * 1024;

/// Code objects that the collector has read and that are not those of modules.
static READ: [AtomicU64; 1 << 14] = [const { AtomicU64::new(0) }; 1 << 14];

fn slot(code: Address) -> &'static AtomicU64 {
    // Objects lie at multiples of 16; the rest of the address is mixed.
    &READ[((code.0 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % READ.len()]
}

/// The collector has read this one; it need not be copied from now on.
pub(super) fn set_read(code: Address) {
    slot(code).store(code.0, Ordering::Relaxed);
}

/// The collector has forgotten all.
pub(super) fn forget_all() {
    for read in &READ {
        read.store(0, Ordering::Relaxed);
    }
}

/// Pieces of memory as they were when a sample was taken.
#[repr(C)]
pub(crate) struct CodeCopies {
    count: usize,
    used: usize,
    /// The address of each piece, where it is in `bytes`, and how long it is.
    pieces: [(Address, usize, usize); MOST_PIECES],
    bytes: [u8; MOST_BYTES],
}

impl CodeCopies {
    /// No copies.
    #[cfg(test)]
    pub(crate) fn none() -> Box<Self> {
        Box::new(Self {
            count: 0,
            used: 0,
            pieces: [(Address(0), 0, 0); MOST_PIECES],
            bytes: [0; MOST_BYTES],
        })
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.used = 0;
    }

    /// Copies a piece, or as much of it as is there. Safe in a signal handler.
    fn copy(&mut self, address: Address, length: usize) -> Option<&[u8]> {
        let into = self.bytes.get_mut(self.used..self.used.checked_add(length)?)?;
        let piece = self.pieces.get_mut(self.count)?;
        // SAFETY: `into` has as many bytes.
        let length = unsafe { memory::copy_from(address.0 as usize, into.as_mut_ptr(), length) };
        *piece = (address, self.used, length);
        self.count += 1;
        self.used += length;
        self.bytes.get(self.used - length..self.used)
    }

    /// Gives back what is not needed of the last piece.
    fn shorten_last(&mut self, most: usize) {
        if let Some((_, at, length)) = self.count.checked_sub(1).and_then(|last| self.pieces.get_mut(last)) {
            *length = most.min(*length);
            self.used = *at + *length;
        }
    }

    /// What was copied from an address on, at most so much. A neighbour's piece may hold the beginning of it.
    fn get(&self, address: Address, most: usize) -> Option<&[u8]> {
        let held = self.pieces.get(..self.count)?.iter().filter_map(|&(start, at, length)| {
            let offset = address.0.checked_sub(start.0)? as usize;
            let offset = Some(offset).filter(|&offset| offset < length)?;
            self.bytes.get(at + offset..(at + offset).checked_add(most)?.min(at + length))
        });
        held.max_by_key(|bytes| bytes.len())
    }

    /// Whether a piece was copied from exactly there.
    pub(super) fn has(&self, address: Address) -> bool {
        self.pieces.get(..self.count).unwrap_or_default().iter().any(|&(start, ..)| start == address)
    }

    /// Copies what the collector will need for frames whose code it has not read. Safe in a signal handler.
    pub(crate) fn fill(&mut self, interpreter: &Interpreter, frames: &[RawFrame]) {
        self.clear();
        for &RawFrame { code, .. } in frames {
            let is_new = !code.is_null() && slot(code).load(Ordering::Relaxed) != code.0 && !self.has(code);
            // A set that is full leaves the frames further out to be read later.
            if is_new
                && self.code(interpreter, code).is_none()
                && self.used + interpreter.offsets.code_length() > MOST_BYTES
            {
                break;
            }
        }
    }

    fn code(&mut self, interpreter: &Interpreter, code: Address) -> Option<()> {
        let offsets = &interpreter.offsets;
        let length = offsets.code_length();
        let header = self.copy(code, length).filter(|header| header.len() == length)?;
        if word_at(header, offsets.object_type) != interpreter.code_type.0 {
            return None;
        }
        let pointer = |offset| Address(word_at(header, offset));
        let (name, file, lines) =
            (pointer(offsets.code_name), pointer(offsets.code_file), pointer(offsets.code_line_table));
        let copies = offsets.code_copies.map(pointer);
        for text in [name, file] {
            if !self.has(text) {
                let length = word_at(self.copy(text, TEXT_BYTES)?, offsets.text_length) as usize;
                // Up to four bytes a character, after the description.
                let whole = length.checked_mul(4)?.checked_add(offsets.text_other)?;
                if whole <= TEXT_BYTES {
                    self.shorten_last(whole);
                } else if length > TEXT_BYTES - offsets.text_other {
                    self.copy(text, whole.min(LONGEST_TEXT))?;
                }
            }
        }
        let length = word_at(self.copy(lines, offsets.bytes_data)?, offsets.sized_length) as usize;
        self.copy(lines, offsets.bytes_data + length.min(LONGEST_TABLE)).map(drop)?;
        if let Some(table) = copies {
            let count = word_at(self.copy(table, 8)?, 0) as usize;
            self.copy(table, 8 + count.min(MOST_COPIES) * 8)?;
        }
        Some(())
    }
}

impl Memory for CodeCopies {
    type Error = Unreadable;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), Unreadable> {
        let copied = self.get(address, into.len()).filter(|copied| copied.len() == into.len());
        into.copy_from_slice(copied.ok_or(Unreadable)?);
        Ok(())
    }

    fn malformed(&self, _what: &'static str) -> Unreadable {
        Unreadable
    }

    fn bytes_up_to(&self, address: Address, length: usize) -> Result<Vec<u8>, Unreadable> {
        if length == 0 {
            return Ok(Vec::new());
        }
        self.get(address, length).map(<[u8]>::to_vec).ok_or(Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_outlive_what_they_were_copied_from() {
        let mut pieces = CodeCopies::none();
        let mut text = *b"a name that will be overwritten";
        let address = Address(text.as_ptr() as u64);
        assert_eq!(pieces.copy(address, text.len()), Some(&text[..]));
        text.fill(b'x');
        assert_eq!(pieces.bytes(address.plus(2), 4).as_deref(), Ok(&b"name"[..]));
        assert_eq!(memory::OwnMemory.bytes(address.plus(2), 4).as_deref(), Ok(&b"xxxx"[..]));
        assert_eq!(pieces.bytes(address, text.len() + 1), Err(Unreadable));
        assert_eq!(pieces.bytes_up_to(address.plus(27), 100).as_deref(), Ok(&b"tten"[..]));
        assert_eq!(pieces.copy(Address(8), 4).map(<[u8]>::len), Some(0), "nothing is there");
        pieces.copy(address.plus(8), 20);
        assert_eq!(
            pieces.get(address.plus(8), 20).map(<[u8]>::len),
            Some(20),
            "the piece that has all of it"
        );
        assert!(pieces.has(address.plus(8)) && !pieces.has(address.plus(9)));
        pieces.clear();
        pieces.copy(address, 10);
        pieces.shorten_last(4);
        assert_eq!((pieces.used, pieces.get(address, 10).map(<[u8]>::len)), (4, Some(4)));
        pieces.clear();
        assert_eq!(pieces.get(address, 1), None);
        assert_eq!(pieces.copy(address, MOST_BYTES + 1), None);
    }
}
