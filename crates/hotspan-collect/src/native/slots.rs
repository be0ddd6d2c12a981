//! The slots that signal handlers write samples into. Memory is taken once and kept; a handler claims a slot with one
//! compare-and-swap and never waits. A full set is a counted loss.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::python::CodeCopies;
use crate::cpython::RawFrame;

/// How much of a thread's stack is copied.
pub(crate) const STACK_BYTES: usize = 64 * 1024;
/// How many Python frames are copied.
pub(crate) const PYTHON_FRAMES: usize = 512;
/// How many samples can wait for the collector, on the largest machine.
const SLOTS: usize = 256;
/// Threads that run at once are interrupted at once, and the collector may be late.
const SLOTS_PER_PROCESSOR: usize = 8;

const FREE: u32 = 0;
const WRITING: u32 = 1;
const FULL: u32 = 2;

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

/// A claimed slot for one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Whose the content of each slot is. Apart from the content, so that looking at all of them touches little memory.
static STATES: [AtomicU32; SLOTS] = [const { AtomicU32::new(FREE) }; SLOTS];
/// Whether any slot was published since the last time they were taken.
static PUBLISHED: AtomicBool = AtomicBool::new(false);

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
    pub(crate) python: [RawFrame; PYTHON_FRAMES],
    /// Code objects that may be gone when the collector comes.
    pub(crate) code: CodeCopies,
    /// Room for the handler to read frames of the interpreter by the page.
    pub(crate) window: [u8; 4096],
    pub(crate) stack: [u8; STACK_BYTES],
}

/// Samples that found no free slot.
pub(crate) static MISSED: AtomicU64 = AtomicU64::new(0);

/// The memory of all slots, and how many there are.
struct Region(*mut Copied, usize);

// SAFETY: slots are handed to one owner at a time by their state.
unsafe impl Send for Region {}
// SAFETY: a shared reference only gives out the pointer; whoever follows it has claimed the slot by its atomic state.
unsafe impl Sync for Region {}

static REGION: OnceLock<Option<Region>> = OnceLock::new();

/// Takes the memory, on the first call; says whether there is any.
pub(crate) fn reserve() -> bool {
    let region = REGION.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let count = processors.saturating_mul(SLOTS_PER_PROCESSOR).clamp(32, SLOTS);
        // SAFETY: a fresh private mapping; zeros are a valid content. Pages cost memory only once written to.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<Copied>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (address != libc::MAP_FAILED).then(|| Region(address.cast(), count))
    });
    region.is_some()
}

fn region() -> Option<&'static Region> {
    REGION.get().and_then(Option::as_ref)
}

/// Claims a slot to write to. The first free one is taken, so that few pages are ever touched. Safe in a handler.
pub(crate) fn claim() -> Option<Slot> {
    let count = region()?.1;
    for (index, state) in STATES.iter().enumerate().take(count) {
        if state.load(Ordering::Relaxed) == FREE
            && state.compare_exchange(FREE, WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Some(Slot(index));
        }
    }
    MISSED.fetch_add(1, Ordering::Relaxed);
    None
}

/// Where to write in a claimed slot. The memory is never unmapped.
pub(crate) fn content(slot: Slot) -> Option<*mut Copied> {
    // SAFETY: `claim` gives numbers below the count of the region only.
    region().map(|region| unsafe { region.0.add(slot.0) })
}

/// Hands a claimed and written slot to the collector.
pub(crate) fn publish(slot: Slot) {
    if let Some(state) = STATES.get(slot.0) {
        state.store(FULL, Ordering::Release);
        PUBLISHED.store(true, Ordering::Release);
    }
}

/// Shows each full slot to `take` and frees it.
pub(crate) fn drain(mut take: impl FnMut(&Copied)) {
    if !PUBLISHED.swap(false, Ordering::AcqRel) {
        return;
    }
    for (index, state) in STATES.iter().enumerate() {
        if state.load(Ordering::Acquire) == FULL
            && let Some(content) = content(Slot(index))
        {
            // SAFETY: a full slot belongs to the collector until it is free again.
            take(unsafe { &*content });
            state.store(FREE, Ordering::Release);
        }
    }
}

/// Frees all slots in a forked child, where the threads that were writing to some do not exist.
pub(crate) fn forget_parent() {
    for state in &STATES {
        state.store(FREE, Ordering::Release);
    }
    release();
}

/// Gives the memory behind the slots back to the system. A handler that is still writing to one leaves a sample of an old
/// generation, or of none, which nobody takes.
pub(crate) fn release() {
    if let Some(first) = region() {
        // SAFETY: the whole private mapping; zeros are a valid content of every slot.
        unsafe { libc::madvise(first.0.cast(), first.1 * size_of::<Copied>(), libc::MADV_DONTNEED) };
    }
}
