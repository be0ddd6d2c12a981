//! Copying a chain of Python frames. Runs in the signal handler: no allocation, no lock, every read checked.
//!
//! A thread may be interrupted while it pushes or pops a frame, so any pointer may be stale. Memory is read by the page
//! through the kernel; where frames lie in the copied C stack they are read there.

use super::layout::{EntryRule, FRAME_BYTES, Layout};
use crate::native::memory;
use crate::native::slots::PythonEntry;

/// Reads small pieces of memory with few system calls.
pub(crate) struct MemoryWindow<'a> {
    stack: &'a [u8],
    stack_address: usize,
    page: &'a mut [u8; 4096],
    page_address: usize,
    page_length: usize,
}

impl<'a> MemoryWindow<'a> {
    /// Reads from a copied stack where it can, and through `page` otherwise.
    pub(crate) fn new(stack: &'a [u8], stack_address: usize, page: &'a mut [u8; 4096]) -> Self {
        Self { stack, stack_address, page, page_address: 0, page_length: 0 }
    }

    fn read<const LENGTH: usize>(&mut self, address: usize) -> Option<[u8; LENGTH]> {
        if let Some(found) = piece(self.stack, self.stack_address, address) {
            return Some(found);
        }
        let known = self.page.get(..self.page_length)?;
        if let Some(found) = piece(known, self.page_address, address) {
            return Some(found);
        }
        // Older frames lie before newer ones, so the whole page is worth having.
        let page_start = address & !4095;
        let crosses = address.checked_add(LENGTH)? > page_start.checked_add(4096)?;
        self.page_address = if crosses { address } else { page_start };
        // SAFETY: the page has as many bytes.
        self.page_length = unsafe { memory::copy_from(self.page_address, self.page.as_mut_ptr(), 4096) };
        piece(self.page.get(..self.page_length)?, self.page_address, address)
    }

    fn pointer(&mut self, address: usize) -> Option<usize> {
        self.read(address).map(usize::from_ne_bytes)
    }
}

fn piece<const LENGTH: usize>(bytes: &[u8], start: usize, address: usize) -> Option<[u8; LENGTH]> {
    let offset = address.checked_sub(start)?;
    bytes.get(offset..offset.checked_add(LENGTH)?)?.try_into().ok()
}

/// Copies the frames of a thread, innermost first; returns how many.
pub(crate) fn walk(
    layout: &Layout,
    thread: usize,
    memory: &mut MemoryWindow<'_>,
    into: &mut [PythonEntry],
) -> usize {
    let mut count = 0;
    let mut next = first_frame(layout, thread, memory);
    while let Some(frame) = next
        && let Some(entry) = into.get_mut(count)
        && let Some(bytes) = memory.read::<FRAME_BYTES>(frame)
    {
        let word = |offset: usize| piece(&bytes, 0, offset).map_or(0, usize::from_ne_bytes);
        let byte = |offset: usize| bytes.get(offset).copied().unwrap_or(0);
        let instruction = word(layout.frame_instruction);
        *entry = PythonEntry {
            code: word(layout.frame_code),
            instruction: if layout.instruction_is_number { instruction & 0xffff_ffff } else { instruction },
            is_entry: match layout.entry {
                EntryRule::Always => true,
                EntryRule::Flag(offset) => byte(offset) != 0,
                EntryRule::Owner(offset, least) => byte(offset) >= least,
            },
        };
        if matches!(layout.entry, EntryRule::Owner(..)) && entry.is_entry {
            entry.code = 0;
        }
        count += 1;
        next = plausible(word(layout.frame_previous)).filter(|&previous| previous != frame);
    }
    count
}

fn first_frame(layout: &Layout, thread: usize, memory: &mut MemoryWindow<'_>) -> Option<usize> {
    let pointer = memory.pointer(thread.checked_add(layout.thread_frame)?)?;
    let frame = match layout.by_c_frame {
        Some(offset) => memory.pointer(pointer.checked_add(offset)?)?,
        None => pointer,
    };
    plausible(frame)
}

fn plausible(pointer: usize) -> Option<usize> {
    (pointer > 4096 && pointer.is_multiple_of(8)).then_some(pointer)
}
