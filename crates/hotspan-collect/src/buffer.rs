//! The memory that running threads write records to: chunks of address space, filled from both ends.
//!
//! A chunk is written by one thread and read by another once recording has stopped. Records (fixed size) grow down
//! from its end, bytes (names, encoded inputs) grow up from its start. Someone may still hold a pointer to a record after
//! the recording is over, for an operator that runs on: such a chunk waits in limbo until its records are released.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// What a chunk must know about the records in it.
#[derive(Clone, Copy, Debug)]
pub struct RecordShape {
    /// Bytes of a record.
    pub size: usize,
    /// Where in a record the byte is that becomes 1 when nobody points to the record any more.
    pub released_at: usize,
}

/// The first chunk of a thread; many threads record only a few events.
pub const FIRST_CHUNK: usize = 64 << 10;
/// Later chunks double up to this size.
pub const LARGEST_CHUNK: usize = 1 << 20;
const PAGE: usize = 4096;

/// A piece of address space.
#[derive(Debug)]
pub struct Chunk {
    base: NonNull<u8>,
    size: usize,
    shape: RecordShape,
    /// The address of the last record written, once the writer has left or the reader has looked.
    low: AtomicUsize,
    /// Records at and above this address were read, found released and given back to the system.
    discarded: AtomicUsize,
}

// SAFETY: a chunk is plain memory. Its one writer writes below `low` or through atomics, readers read what was published
// to them; the fields themselves are atomics or never change.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Address space of at least `size` bytes, with memory behind it from the start: faults of single pages while
    /// recording would cost more than writing the records. `None`: there is no memory.
    #[must_use]
    pub fn new(size: usize, shape: RecordShape) -> Option<Self> {
        let size = size.checked_next_multiple_of(PAGE)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(base.cast::<u8>())?;
        let end = base.as_ptr() as usize + size;
        Some(Self { base, size, shape, low: AtomicUsize::new(end), discarded: AtomicUsize::new(end) })
    }

    /// The first byte.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The end, where records begin to grow down; aligned for records.
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

    /// Remembers how far down records reach.
    pub fn set_low(&self, low: *const u8) {
        self.low.fetch_min(low as usize, Ordering::Relaxed);
    }

    /// The records from `low` up, oldest (highest address) first.
    pub fn records_down_to(&self, low: *const u8) -> impl Iterator<Item = *mut u8> + use<> {
        let (end, size) = (self.end(), self.shape.size);
        let count = (end as usize).saturating_sub(low as usize) / size;
        // SAFETY: `low` is within the chunk, so all of these addresses are.
        (1..=count).map(move |index| unsafe { end.sub(index * size) })
    }

    fn all_released(&self, from: usize, to: usize) -> bool {
        let (size, at) = (self.shape.size, self.shape.released_at);
        let count = to.saturating_sub(from) / size;
        (0..count).all(|index| {
            // SAFETY: records fill the chunk from its end to `low` without gaps, so this is the mark of one; threads
            // that still run an operator write it atomically.
            unsafe { AtomicU8::from_ptr((from + index * size + at) as *mut u8) }.load(Ordering::Acquire) == 1
        })
    }

    /// Gives the memory of records that were read back to the system, unless someone still points to one of them.
    pub fn discard_records(&self, low: *const u8) {
        let end = self.end() as usize;
        if !self.all_released(low as usize, end) {
            return;
        }
        let from = (low as usize).next_multiple_of(PAGE);
        if from < end {
            self.discarded.store(low as usize, Ordering::Relaxed);
            // SAFETY: whole pages of this mapping that hold only released records, which nobody reads again.
            unsafe { libc::madvise(from as *mut libc::c_void, end - from, libc::MADV_DONTNEED) };
        }
    }

    fn may_be_freed(&self) -> bool {
        self.all_released(self.low.load(Ordering::Relaxed), self.discarded.load(Ordering::Relaxed))
    }

    fn unmap(&self) {
        // SAFETY: the mapping was made in `new`, is unmapped once, and all its records are released.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}

static LIMBO: Mutex<Vec<Chunk>> = Mutex::new(Vec::new());

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.may_be_freed() {
            self.unmap();
            return;
        }
        let waiting = Self {
            base: self.base,
            size: self.size,
            shape: self.shape,
            low: AtomicUsize::new(*self.low.get_mut()),
            discarded: AtomicUsize::new(*self.discarded.get_mut()),
        };
        match lock_limbo() {
            Some(mut limbo) => limbo.push(waiting),
            None => std::mem::forget(waiting),
        }
    }
}

/// The lock is held for moments, so not getting it means that it was held when this process was forked off: what is in
/// limbo then belongs to the parent.
fn lock_limbo() -> Option<MutexGuard<'static, Vec<Chunk>>> {
    for _ in 0..10_000 {
        if let Ok(limbo) = LIMBO.try_lock() {
            return Some(limbo);
        }
        std::thread::yield_now();
    }
    None
}

/// Frees chunks whose last operators have ended in the meantime. Returns how many still wait.
pub fn sweep_limbo() -> usize {
    let Some(mut limbo) = lock_limbo() else { return 0 };
    let (done, waiting): (Vec<_>, Vec<_>) = limbo.drain(..).partition(Chunk::may_be_freed);
    *limbo = waiting;
    let count = limbo.len();
    drop(limbo);
    drop(done);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: RecordShape = RecordShape { size: 56, released_at: 54 };

    /// Writes `count` records, of which those in `open` are still pointed to.
    fn filled(count: usize, open: &[usize]) -> (Chunk, *mut u8) {
        let chunk = Chunk::new(FIRST_CHUNK, SHAPE).unwrap();
        let mut low = chunk.end();
        for index in 0..count {
            low = low.wrapping_sub(SHAPE.size);
            // SAFETY: the chunk has room for these records and no other thread sees it.
            unsafe {
                low.cast::<u64>().write(index as u64);
                low.add(SHAPE.released_at).write(u8::from(!open.contains(&index)));
            }
        }
        chunk.set_low(low);
        (chunk, low)
    }

    #[test]
    fn records_are_read_in_the_order_written() {
        let (chunk, low) = filled(1_000, &[]);
        // SAFETY: `filled` wrote these records.
        let read: Vec<u64> = chunk.records_down_to(low).map(|at| unsafe { at.cast::<u64>().read() }).collect();
        assert_eq!(read, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_chunk_waits_for_operators_that_still_run() {
        let (chunk, low) = filled(500, &[123]);
        chunk.discard_records(low);
        let at = chunk.records_down_to(low).nth(123).unwrap();
        drop(chunk);
        assert!(sweep_limbo() >= 1);
        // SAFETY: the chunk is in limbo, not freed: the record can be read and the end of its operator written.
        unsafe {
            assert_eq!(at.cast::<u64>().read(), 123);
            AtomicU8::from_ptr(at.add(SHAPE.released_at)).store(1, Ordering::Release);
        }
        assert_eq!(sweep_limbo(), 0);
    }

    #[test]
    fn bytes_survive_when_records_are_discarded() {
        let (chunk, low) = filled(1_000, &[]);
        // SAFETY: the first bytes of a chunk that holds 56,000 bytes of records are free.
        unsafe { chunk.start().write(42) };
        chunk.discard_records(low);
        // SAFETY: written above; discarding touches records only.
        assert_eq!(unsafe { chunk.start().read() }, 42);
        // SAFETY: the pages are mapped, only their content is gone.
        let oldest = unsafe { chunk.end().sub(SHAPE.size).cast::<u64>().read() };
        assert_eq!(oldest, 0, "pages of records were given back");
    }
}
