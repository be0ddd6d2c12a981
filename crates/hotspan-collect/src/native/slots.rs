//! The slots that signal handlers write samples into. Memory is taken once and kept; a handler claims a slot with one
//! compare-and-swap and never waits. A full set is a counted loss.

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How much of a thread's stack is copied.
pub(crate) const STACK_BYTES: usize = 64 * 1024;
/// How many Python frames are copied.
pub(crate) const PYTHON_FRAMES: usize = 512;
/// How many samples can wait for the collector.
const SLOTS: usize = 256;

const FREE: u32 = 0;
const WRITING: u32 = 1;
const FULL: u32 = 2;

/// A Python frame as the handler saw it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PythonEntry {
    /// The code object; 0 for the mark that the interpreter leaves where C called it.
    pub(crate) code: usize,
    /// The instruction: a pointer, or on Python 3.10 its number.
    pub(crate) instruction: usize,
    /// Whether C called the interpreter here: the outermost frame of one call of the evaluation loop.
    pub(crate) is_entry: bool,
}

/// The registers that unwinding starts from.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    pub(crate) frame: u64,
    /// Where the function returns to, on processors that keep it in a register.
    pub(crate) link: u64,
}

/// A place for one sample. Its state says whose the content is.
#[repr(C)]
pub(crate) struct Slot {
    state: AtomicU32,
    content: UnsafeCell<Copied>,
}

/// One sample, as copied on the thread it is of.
#[repr(C)]
pub(crate) struct Copied {
    pub(crate) thread: i32,
    pub(crate) generation: u64,
    pub(crate) ticks: u64,
    /// Timer periods that passed without a signal of their own.
    pub(crate) overrun: u32,
    pub(crate) has_gil: bool,
    pub(crate) has_python: bool,
    pub(crate) registers: Registers,
    pub(crate) python_count: usize,
    pub(crate) stack_length: usize,
    pub(crate) python: [PythonEntry; PYTHON_FRAMES],
    /// Room for the handler to read frames of the interpreter by the page.
    pub(crate) window: [u8; 4096],
    pub(crate) stack: [u8; STACK_BYTES],
}

/// Samples that found no free slot.
pub(crate) static MISSED: AtomicU64 = AtomicU64::new(0);

struct Region(*mut Slot);

// SAFETY: slots are handed to one owner at a time by their state.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

static REGION: OnceLock<Option<Region>> = OnceLock::new();

/// Takes the memory, on the first call; says whether there is any.
pub(crate) fn reserve() -> bool {
    let region = REGION.get_or_init(|| {
        // SAFETY: a fresh private mapping, whose zeros are free slots. Pages cost memory only once written to.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                SLOTS * size_of::<Slot>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (address != libc::MAP_FAILED).then(|| Region(address.cast()))
    });
    region.is_some()
}

fn region() -> Option<*mut Slot> {
    REGION.get().and_then(Option::as_ref).map(|region| region.0)
}

/// Claims a slot to write to. The first free one is taken, so that few pages are ever touched. Safe in a handler.
pub(crate) fn claim() -> Option<&'static Slot> {
    let first = region()?;
    for index in 0..SLOTS {
        // SAFETY: the region has that many slots and is never unmapped; the content is in a cell.
        let slot: &'static Slot = unsafe { &*first.add(index) };
        if slot.state.load(Ordering::Relaxed) == FREE
            && slot.state.compare_exchange(FREE, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Some(slot);
        }
    }
    MISSED.fetch_add(1, Ordering::Relaxed);
    None
}

/// Where to write in a claimed slot.
pub(crate) fn content(slot: &Slot) -> *mut Copied {
    slot.content.get()
}

/// Hands a claimed and written slot to the collector.
pub(crate) fn publish(slot: &Slot) {
    slot.state.store(FULL, Ordering::Release);
}

/// Shows each full slot to `take` and frees it.
pub(crate) fn drain(mut take: impl FnMut(&Copied)) {
    let Some(first) = region() else { return };
    for index in 0..SLOTS {
        // SAFETY: the region has that many slots and is never unmapped; the content is in a cell.
        let slot: &'static Slot = unsafe { &*first.add(index) };
        if slot.state.load(Ordering::Acquire) == FULL {
            // SAFETY: a full slot belongs to the collector until it is free again.
            take(unsafe { &*slot.content.get() });
            slot.state.store(FREE, Ordering::Release);
        }
    }
}

/// Gives the memory behind the slots back to the system. They read as free afterwards; a handler that is still writing
/// to one leaves a sample of an old generation, which nobody takes.
pub(crate) fn release() {
    if let Some(first) = region() {
        // SAFETY: the whole private mapping; zeros are a valid value of every slot.
        unsafe { libc::madvise(first.cast(), SLOTS * size_of::<Slot>(), libc::MADV_DONTNEED) };
    }
}
