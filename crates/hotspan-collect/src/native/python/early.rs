//! Code objects that may be gone before the collector reads them: the handler copies what their names and lines need.
//!
//! The code of a module lives only as long as the module is being imported, which is often shorter than a turn of the
//! collector. Functions live long: once the collector knows one, the handler leaves it alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::interpreter::Interpreter;
use super::layout::CODE_BYTES;
use crate::native::memory;
use crate::native::slots::PythonEntry;

/// How many pieces, and how many bytes in all, are copied for one sample.
const MOST_PIECES: usize = 320;
const MOST_BYTES: usize = 128 * 1024;
/// Longer tables of lines are cut; what lies beyond has the first line of its function.
const LONGEST_TABLE: usize = 4 * 1024;
/// Enough for most names and paths.
const TEXT_BYTES: usize = 256;
const LONGEST_TEXT: usize = 4 * 1024;
/// Where a text or a string of bytes keeps its length, and where the latter begins.
const LENGTH: usize = 16;
pub(super) const BYTES_START: usize = 32;

/// Code objects that the collector has read and that are not those of modules.
static KNOWN: [AtomicUsize; 1 << 14] = [const { AtomicUsize::new(0) }; 1 << 14];

fn place(code: usize) -> &'static AtomicUsize {
    // Objects lie at multiples of 16; the rest of the address is mixed.
    &KNOWN[((code >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> 40) % KNOWN.len()]
}

/// The collector knows this one from now on.
pub(super) fn know(code: usize) {
    place(code).store(code, Ordering::Relaxed);
}

/// The collector has forgotten all.
pub(super) fn forget_all() {
    for known in &KNOWN {
        known.store(0, Ordering::Relaxed);
    }
}

/// Pieces of memory as they were when a sample was taken.
#[repr(C)]
pub(crate) struct Pieces {
    count: usize,
    used: usize,
    /// Where each piece was, where it is in `bytes`, and how long it is.
    places: [(usize, usize, usize); MOST_PIECES],
    bytes: [u8; MOST_BYTES],
}

impl Pieces {
    /// None.
    #[cfg(test)]
    pub(crate) fn none() -> Box<Self> {
        Box::new(Self { count: 0, used: 0, places: [(0, 0, 0); MOST_PIECES], bytes: [0; MOST_BYTES] })
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.used = 0;
    }

    /// Copies a piece, or as much of it as is there. Safe in a signal handler.
    fn copy(&mut self, address: usize, length: usize) -> Option<&[u8]> {
        let into = self.bytes.get_mut(self.used..self.used.checked_add(length)?)?;
        let place = self.places.get_mut(self.count)?;
        // SAFETY: `into` has as many bytes.
        let length = unsafe { memory::copy_from(address, into.as_mut_ptr(), length) };
        *place = (address, self.used, length);
        self.count += 1;
        self.used += length;
        self.bytes.get(self.used - length..self.used)
    }

    /// Gives back what is not needed of the last piece.
    fn shorten_last(&mut self, most: usize) {
        if let Some((_, at, length)) = self.count.checked_sub(1).and_then(|last| self.places.get_mut(last)) {
            *length = most.min(*length);
            self.used = *at + *length;
        }
    }

    /// What was copied from an address on, at most so much. A neighbour's piece may hold the beginning of it.
    pub(super) fn get(&self, address: usize, most: usize) -> Option<&[u8]> {
        let places = self.places.get(..self.count)?;
        let held = places.iter().filter_map(|&(start, at, length)| {
            let offset = address.checked_sub(start).filter(|&offset| offset < length)?;
            self.bytes.get(at + offset..(at + offset).checked_add(most)?.min(at + length))
        });
        held.max_by_key(|bytes| bytes.len())
    }

    /// Whether a piece was copied from exactly there.
    fn has(&self, address: usize) -> bool {
        self.places.get(..self.count).unwrap_or_default().iter().any(|&(start, ..)| start == address)
    }

    /// Copies what the collector will need for frames whose code it does not know. Safe in a signal handler.
    pub(crate) fn fill(&mut self, interpreter: &Interpreter, entries: &[PythonEntry]) {
        self.clear();
        for entry in entries {
            let is_new = entry.code != 0
                && place(entry.code).load(Ordering::Relaxed) != entry.code
                && !self.has(entry.code);
            // A set that is full leaves the frames further out to be read later.
            if is_new && self.code(interpreter, entry.code).is_none() && self.used + CODE_BYTES > MOST_BYTES {
                break;
            }
        }
    }

    fn code(&mut self, interpreter: &Interpreter, code: usize) -> Option<()> {
        let layout = &interpreter.layout;
        let head = self.copy(code, CODE_BYTES)?;
        if word(head, 8)? != interpreter.code_type {
            return None;
        }
        let (name, file, lines) =
            (word(head, layout.code_name)?, word(head, layout.code_file)?, word(head, layout.code_lines)?);
        for text in [name, file] {
            if !self.has(text) {
                let length = word(self.copy(text, TEXT_BYTES)?, LENGTH)?;
                // Up to four bytes a character, after at most 72 of description.
                let whole = length.checked_mul(4)?.checked_add(72)?;
                if whole <= TEXT_BYTES {
                    self.shorten_last(whole);
                } else if length > TEXT_BYTES - 72 {
                    self.copy(text, whole.min(LONGEST_TEXT))?;
                }
            }
        }
        let length = word(self.copy(lines, BYTES_START)?, LENGTH)?;
        self.copy(lines, BYTES_START + length.min(LONGEST_TABLE)).map(drop)
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<usize> {
    bytes.get(offset..offset + 8)?.try_into().ok().map(usize::from_ne_bytes)
}

/// Where the collector reads from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Memory as it is now.
    Live,
    /// Memory as it was when the sample was taken.
    Copied(&'a Pieces),
}

impl Source<'_> {
    /// All bytes of a stretch, or nothing.
    pub(super) fn bytes(self, address: usize, length: usize) -> Option<Vec<u8>> {
        self.at_most(address, length).filter(|bytes| bytes.len() == length)
    }

    /// The bytes of a stretch as far as they are there.
    pub(super) fn at_most(self, address: usize, length: usize) -> Option<Vec<u8>> {
        match self {
            Source::Live => memory::bytes(address, length),
            Source::Copied(_) if length == 0 => Some(Vec::new()),
            Source::Copied(pieces) => pieces.get(address, length).map(<[u8]>::to_vec),
        }
    }

    pub(super) fn word(self, address: usize) -> Option<usize> {
        word(&self.bytes(address, 8)?, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_outlive_what_they_were_copied_from() {
        let mut pieces = Pieces::none();
        let mut text = *b"a name that will be overwritten";
        let address = text.as_ptr() as usize;
        assert_eq!(pieces.copy(address, text.len()), Some(&text[..]));
        text.fill(b'x');
        assert_eq!(Source::Copied(&pieces).bytes(address + 2, 4).as_deref(), Some(&b"name"[..]));
        assert_eq!(Source::Live.bytes(address + 2, 4).as_deref(), Some(&b"xxxx"[..]));
        assert_eq!(Source::Copied(&pieces).bytes(address, text.len() + 1), None);
        assert_eq!(Source::Copied(&pieces).at_most(address + 27, 100).as_deref(), Some(&b"tten"[..]));
        assert_eq!(pieces.copy(8, 4).map(<[u8]>::len), Some(0), "nothing is there");
        pieces.copy(address + 8, 20);
        assert_eq!(pieces.get(address + 8, 20).map(<[u8]>::len), Some(20), "the piece that has all of it");
        assert!(pieces.has(address + 8) && !pieces.has(address + 9));
        pieces.clear();
        pieces.copy(address, 10);
        pieces.shorten_last(4);
        assert_eq!((pieces.used, pieces.get(address, 10).map(<[u8]>::len)), (4, Some(4)));
        pieces.clear();
        assert_eq!(pieces.get(address, 1), None);
        assert_eq!(pieces.copy(address, MOST_BYTES + 1), None);
    }
}
