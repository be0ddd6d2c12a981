//! The memory that running threads write to: chunks of address space, filled from both ends.
//!
//! A chunk is written by one thread and read by another once recording has stopped. Records, in slots of equal size,
//! grow down from its end; blocks of bytes (names, encoded inputs) grow up from its start. An operator that runs on after
//! the recording still writes its end into its slot: a chunk with such slots waits in limbo until they are done.
//!
//! Fresh memory is the largest cost of recording, so a few chunks are kept for the next recording.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::locks::lock_unless_forked as lock;

/// What a chunk must know about the slots in it.
#[derive(Clone, Copy, Debug)]
pub struct SlotShape {
    /// Bytes of a slot.
    pub size: usize,
    /// Where in a slot the word is that is 0 as long as someone may still write to the slot.
    pub done_at: usize,
}

/// The first chunk of a thread; many threads record only a few events.
pub const FIRST_CHUNK: usize = 16 << 10;
/// Later chunks double up to this size.
pub const LARGEST_CHUNK: usize = 1 << 20;
/// Memory kept for the next recording.
const KEPT_BYTES: usize = 2 << 20;
const PAGE: usize = 4096;
/// Slots are read as 64-bit words.
const PACKED_ALIGNMENT: usize = 16;

/// A piece of address space.
#[derive(Debug)]
pub struct Chunk {
    base: NonNull<u8>,
    size: usize,
    shape: SlotShape,
    /// Memory of the heap, just large enough for what was written elsewhere.
    is_packed: bool,
    /// The address of the last slot written, once the writer has left or the reader has looked.
    low: AtomicUsize,
}

// SAFETY: a chunk is plain memory. Its one writer publishes what it wrote and changes it afterwards only through atomics;
// the fields themselves are atomics or never change.
unsafe impl Send for Chunk {}
// SAFETY: no method writes to the memory through `&self`; what is shared otherwise is as for `Send`.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Address space of at least `size` bytes, with memory behind it from the start: faults of single pages while
    /// recording would cost more than writing the records. `None`: there is no memory.
    #[must_use]
    pub fn new(size: usize, shape: SlotShape) -> Option<Self> {
        let size = size.checked_next_multiple_of(PAGE)?;
        let kept = lock(&KEPT).and_then(|mut kept| {
            let index = kept.iter().position(|chunk| chunk.size == size)?;
            Some(kept.swap_remove(index))
        });
        let base = match kept {
            Some(kept) => kept.into_base(),
            None => map(size)?,
        };
        let low = AtomicUsize::new(base.as_ptr() as usize + size);
        Some(Self { base, size, shape, is_packed: false, low })
    }

    /// A copy that has room for nothing else, of the blocks up to `blocks_end` and the slots from `low` up. `None`: an
    /// operator may still write to one of the slots, or little would be saved.
    #[must_use]
    pub fn packed(&self, blocks_end: usize, low: usize) -> Option<Self> {
        let (start, end) = (self.start() as usize, self.end() as usize);
        let (blocks, slots) = (blocks_end.checked_sub(start)?, end.checked_sub(low)?);
        let size = (blocks + slots).next_multiple_of(self.shape.size);
        if size == 0 || size > self.size / 2 || !self.is_done() {
            return None;
        }
        // SAFETY: the size is not 0.
        let base = NonNull::new(unsafe { std::alloc::alloc(Self::packed_layout(size)?) })?;
        // SAFETY: both pieces were published before, lie in this chunk, and fit the new memory from its two ends.
        unsafe {
            base.as_ptr().copy_from_nonoverlapping(self.start(), blocks);
            base.as_ptr().add(size - slots).copy_from_nonoverlapping(self.end().sub(slots), slots);
        }
        let low = AtomicUsize::new(base.as_ptr() as usize + size - slots);
        Some(Self { base, size, shape: self.shape, is_packed: true, low })
    }

    fn packed_layout(size: usize) -> Option<Layout> {
        Layout::from_size_align(size, PACKED_ALIGNMENT).ok()
    }

    /// The first byte.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The end, from where slots grow down; aligned for them.
    #[must_use]
    pub fn end(&self) -> *mut u8 {
        // SAFETY: `size` bytes from `base` are one mapping.
        unsafe { self.base.as_ptr().add(self.size) }
    }

    /// Bytes of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// How far down slots reach, as far as it is known.
    #[must_use]
    pub fn low(&self) -> usize {
        self.low.load(Ordering::Relaxed)
    }

    /// Remembers how far down slots reach.
    pub fn set_low(&self, low: usize) {
        self.low.fetch_min(low, Ordering::Relaxed);
    }

    /// How many slots there are from `low` up.
    #[must_use]
    pub fn count_down_to(&self, low: usize) -> usize {
        (self.end() as usize).saturating_sub(low) / self.shape.size
    }

    /// The slots from `low` up, oldest (highest address) first.
    pub fn slots_down_to(&self, low: usize) -> impl Iterator<Item = *mut u8> + use<> {
        let (end, size) = (self.end(), self.shape.size);
        let count = self.count_down_to(low);
        // SAFETY: `low` is within the chunk, so all of these addresses are.
        (1..=count).map(move |index| unsafe { end.sub(index * size) })
    }

    fn is_done(&self) -> bool {
        let done_at = self.shape.done_at;
        self.slots_down_to(self.low()).all(|slot| {
            // SAFETY: slots fill the chunk from its end to `low` without gaps, so this is the word of one; an operator
            // that still runs writes it atomically.
            unsafe { AtomicU64::from_ptr(slot.add(done_at).cast()) }.load(Ordering::Acquire) != 0
        })
    }

    fn into_base(self) -> NonNull<u8> {
        let base = self.base;
        std::mem::forget(self);
        base
    }
}

fn map(size: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Chunks that operators may still write to.
static LIMBO: Mutex<Vec<Chunk>> = Mutex::new(Vec::new());
/// Chunks for the next recording.
static KEPT: Mutex<Vec<Chunk>> = Mutex::new(Vec::new());

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.is_packed {
            if let Some(layout) = Self::packed_layout(self.size) {
                // SAFETY: `packed` got this memory with this layout, and nobody writes to a packed chunk.
                unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) };
            }
            return;
        }
        let copy = Self { low: AtomicUsize::new(*self.low.get_mut()), ..*self };
        if !copy.is_done() {
            match lock(&LIMBO) {
                Some(mut limbo) => limbo.push(copy),
                None => std::mem::forget(copy),
            }
            return;
        }
        if let Some(mut kept) = lock(&KEPT)
            && kept.iter().map(|chunk| chunk.size).sum::<usize>() + copy.size <= KEPT_BYTES
        {
            kept.push(copy);
            return;
        }
        let (base, size) = (copy.base, copy.size);
        std::mem::forget(copy);
        // SAFETY: the mapping was made by `map`, nobody writes to it any more, and it is unmapped once: chunks in
        // limbo or kept are not dropped, they become new chunks.
        unsafe { libc::munmap(base.as_ptr().cast(), size) };
    }
}

/// Frees chunks whose last operators have ended in the meantime. Returns how many still wait.
pub fn sweep_limbo() -> usize {
    let Some(mut limbo) = lock(&LIMBO) else { return 0 };
    let (done, waiting): (Vec<_>, Vec<_>) = limbo.drain(..).partition(Chunk::is_done);
    *limbo = waiting;
    let count = limbo.len();
    drop(limbo);
    drop(done);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: SlotShape = SlotShape { size: 32, done_at: 8 };

    /// Writes `count` slots, of which those in `open` are not done.
    fn filled(count: u64, open: &[u64]) -> (Chunk, usize) {
        let chunk = Chunk::new(FIRST_CHUNK, SHAPE).unwrap();
        let mut low = chunk.end();
        for index in 0..count {
            low = low.wrapping_sub(SHAPE.size);
            // SAFETY: the chunk has room for these slots and no other thread sees it.
            unsafe { low.cast::<[u64; 4]>().write([index, u64::from(!open.contains(&index)), 0, 0]) };
        }
        chunk.set_low(low as usize);
        (chunk, low as usize)
    }

    #[test]
    fn slots_are_read_in_the_order_written() {
        let (chunk, low) = filled(400, &[]);
        // SAFETY: `filled` wrote these slots.
        let read: Vec<u64> = chunk.slots_down_to(low).map(|at| unsafe { at.cast::<u64>().read() }).collect();
        assert_eq!(read, (0..400).collect::<Vec<_>>());
    }

    #[test]
    fn a_chunk_waits_for_operators_that_still_run() {
        let (chunk, low) = filled(400, &[123]);
        let slot = chunk.slots_down_to(low).nth(123).unwrap();
        drop(chunk);
        assert!(sweep_limbo() >= 1);
        // SAFETY: the chunk is in limbo, not freed: the slot can be read and the end of its operator written.
        unsafe {
            assert_eq!(slot.cast::<u64>().read(), 123);
            AtomicU64::from_ptr(slot.add(SHAPE.done_at).cast()).store(1, Ordering::Release);
        }
        assert_eq!(sweep_limbo(), 0);
    }

    #[test]
    fn a_packed_chunk_has_the_same_blocks_and_slots() {
        let (chunk, low) = filled(20, &[]);
        // SAFETY: the first words of the chunk are free.
        unsafe { chunk.start().cast::<[u64; 3]>().write([7, 8, 9]) };
        let packed = chunk.packed(chunk.start() as usize + 24, low).unwrap();
        assert_eq!(packed.size(), 20 * 32 + 32);
        // SAFETY: three words and twenty slots were copied.
        unsafe {
            assert_eq!(packed.start().cast::<[u64; 3]>().read(), [7, 8, 9]);
            let read: Vec<u64> =
                packed.slots_down_to(packed.low()).map(|at| at.cast::<u64>().read()).collect();
            assert_eq!(read, (0..20).collect::<Vec<_>>());
        }
        let (running, low) = filled(20, &[3]);
        assert!(running.packed(running.start() as usize, low).is_none(), "its operator writes there yet");
        let slot = running.slots_down_to(low).nth(3).unwrap();
        // SAFETY: the word of a slot that `filled` wrote.
        unsafe { AtomicU64::from_ptr(slot.add(SHAPE.done_at).cast()) }.store(1, Ordering::Release);
    }

    #[test]
    fn no_more_than_a_few_chunks_are_kept() {
        let chunks: Vec<Chunk> = (0..8).map(|_| Chunk::new(LARGEST_CHUNK, SHAPE).unwrap()).collect();
        drop(chunks);
        let kept: usize = lock(&KEPT).unwrap().iter().map(Chunk::size).sum();
        assert!(kept <= KEPT_BYTES, "{kept}");
    }
}
