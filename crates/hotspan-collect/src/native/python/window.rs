//! Copying a chain of Python frames. Runs in the signal handler: no allocation, no lock, every read checked.
//!
//! Memory is read by the page through the kernel; where frames lie in the copied C stack they are read there.

use std::cell::Cell;

use crate::cpython::{Address, Memory, Offsets, RawFrame, walk};
use crate::native::memory::{self, Unreadable};

const PAGE: usize = 4096;

/// Reads small pieces of memory with few system calls.
pub(crate) struct MemoryWindow<'a> {
    stack: &'a [u8],
    stack_address: u64,
    page: &'a Cell<[u8; PAGE]>,
    page_address: Cell<u64>,
    page_length: Cell<usize>,
}

impl<'a> MemoryWindow<'a> {
    /// Reads from a copied stack where it can, and through `page` otherwise.
    pub(crate) fn new(stack: &'a [u8], stack_address: u64, page: &'a mut [u8; PAGE]) -> Self {
        let page = Cell::from_mut(page);
        Self { stack, stack_address, page, page_address: Cell::new(0), page_length: Cell::new(0) }
    }

    /// Reads from the page that is there; whether it holds all of it is the answer.
    fn read_page(&self, address: u64, into: &mut [u8]) -> bool {
        let offset = range(self.page_address.get(), self.page_length.get(), address, into.len());
        if let Some(offset) = offset {
            // SAFETY: the range lies within the page, which nothing refers to but this window; `into` is other memory.
            unsafe {
                let from = self.page.as_ptr().cast::<u8>().add(offset);
                into.as_mut_ptr().copy_from_nonoverlapping(from, into.len());
            }
        }
        offset.is_some()
    }

    /// Copies the frames of a thread, innermost first, up to the first that cannot be read; returns how many.
    pub(crate) fn copy_frames(&self, offsets: &Offsets, thread: Address, into: &mut [RawFrame]) -> usize {
        let mut slots = into.iter_mut();
        let mut count = 0;
        let _unreadable_end = walk(offsets, self, thread, |frame| {
            let slot = slots.next();
            count += usize::from(slot.is_some());
            slot.map(|slot| *slot = frame).is_some()
        });
        count
    }
}

impl Memory for MemoryWindow<'_> {
    type Error = Unreadable;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), Unreadable> {
        let Address(address) = address;
        if let Some(offset) = range(self.stack_address, self.stack.len(), address, into.len())
            && let Some(found) = self.stack.get(offset..offset + into.len())
        {
            into.copy_from_slice(found);
            return Ok(());
        }
        if self.read_page(address, into) {
            return Ok(());
        }
        // Older frames lie before newer ones, so the whole page is worth having.
        let page_start = address & !(PAGE as u64 - 1);
        let crosses = (address - page_start) as usize + into.len() > PAGE;
        self.page_address.set(if crosses { address } else { page_start });
        // SAFETY: the page has as many bytes, and nothing refers to it but this window.
        self.page_length.set(unsafe {
            memory::copy_from(self.page_address.get() as usize, self.page.as_ptr().cast(), PAGE)
        });
        if self.read_page(address, into) { Ok(()) } else { Err(Unreadable) }
    }

    fn malformed(&self, _what: &'static str) -> Unreadable {
        Unreadable
    }
}

/// Where a stretch begins within memory that starts at `start`, when all of it is there.
fn range(start: u64, available: usize, address: u64, length: usize) -> Option<usize> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    (offset.checked_add(length)? <= available).then_some(offset)
}
