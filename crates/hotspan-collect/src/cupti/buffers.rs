//! The memory that CUPTI writes records to: lent, filled, read by a worker thread, lent again.
//!
//! CUPTI asks for buffers and returns them through two functions without any context, on threads of its own or of the
//! program. What belongs to the running session is therefore static. Buffers that come back when no session runs, late, are
//! put away unread. Nothing here calls CUPTI while a lock is held that its callbacks take.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::cupti::abi::{CuptiResult, Functions};
use crate::cupti::calls::Calls;
use crate::cupti::records::{Call, Records};
use crate::locks::lock;
use crate::own_threads;

/// Bytes of one buffer: ten thousand kernels.
const BUFFER_BYTES: usize = 2 << 20;
/// Buffers with CUPTI or waiting to be read, at most; more means that the worker cannot keep up.
const MOST_BUFFERS: usize = 128;
/// Buffers kept for the next recording.
const KEPT_BUFFERS: usize = 4;
/// CUPTI wants records at multiples of 8.
const ALIGNMENT: usize = 4096;

/// Memory lent to CUPTI.
#[derive(Debug)]
struct Buffer(*mut u8);

// SAFETY: memory of the allocator, which any thread may use and free, and to which nothing else points while this value
// exists.
unsafe impl Send for Buffer {}

impl Buffer {
    fn layout() -> std::alloc::Layout {
        // Both are powers of two, so this is always a valid layout; the other is never used.
        std::alloc::Layout::from_size_align(BUFFER_BYTES, ALIGNMENT)
            .unwrap_or(std::alloc::Layout::new::<u64>())
    }

    fn new() -> Option<Self> {
        // SAFETY: the layout has more than 0 bytes.
        let base = unsafe { std::alloc::alloc(Self::layout()) };
        (!base.is_null()).then_some(Self(base))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this layout, and dropped once.
        unsafe { std::alloc::dealloc(self.0, Self::layout()) };
    }
}

/// A buffer with records.
#[derive(Debug)]
struct Filled {
    buffer: Buffer,
    valid: usize,
}

/// What the callbacks and the worker share.
#[derive(Debug)]
pub(crate) struct BufferDecoder {
    functions: Functions,
    calls: Arc<Calls>,
    /// Bytes of decoded records at most.
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
    records: Mutex<Records>,
    /// Records that CUPTI says it dropped.
    dropped: AtomicU64,
    /// Times that no buffer could be lent.
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Filled>,
    is_closed: bool,
}

static RUNNING: Mutex<Option<Arc<BufferDecoder>>> = Mutex::new(None);
static KEPT: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
/// Buffers that CUPTI or a queue has.
static LENT: AtomicUsize = AtomicUsize::new(0);

/// `CUpti_BuffersCallbackRequestFunc`. Lending nothing makes CUPTI drop records and count them.
pub(crate) extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let running = lock(&RUNNING).clone();
    let is_free = LENT.load(Ordering::Relaxed) < MOST_BUFFERS;
    let lent = if running.is_some() && is_free { lock(&KEPT).pop().or_else(Buffer::new) } else { None };
    if let (None, Some(decoder)) = (&lent, &running) {
        decoder.refused.fetch_add(1, Ordering::Relaxed);
    }
    let (base, bytes) = match lent {
        Some(lent) => {
            LENT.fetch_add(1, Ordering::Relaxed);
            let base = lent.0;
            std::mem::forget(lent);
            (base, BUFFER_BYTES)
        }
        None => (std::ptr::null_mut(), 0),
    };
    // SAFETY: CUPTI passes three pointers to variables of its own, which it reads when this returns.
    unsafe {
        buffer.write(base);
        size.write(bytes);
        max_records.write(0); // as many as fit
    }
}

/// `CUpti_BuffersCallbackCompleteFunc`.
pub(crate) extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    size: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    if size != BUFFER_BYTES {
        return; // not one of ours: another tool registered its own functions in between
    }
    let buffer = Buffer(buffer);
    match lock(&RUNNING).clone() {
        Some(decoder) => {
            decoder.count_dropped(context, stream);
            lock(&decoder.state).waiting.push(Filled { buffer, valid });
            decoder.changed.notify_all();
        }
        None => put_away(buffer),
    }
}

fn put_away(buffer: Buffer) {
    let _ = LENT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |lent| lent.checked_sub(1));
    let mut kept = lock(&KEPT);
    if kept.len() < KEPT_BUFFERS {
        kept.push(buffer);
    }
}

/// Has a buffer ready before CUPTI asks, with memory behind it: it asks in the middle of a launch.
fn make_ready() {
    if !lock(&KEPT).is_empty() {
        return;
    }
    if let Some(buffer) = Buffer::new() {
        // SAFETY: `new` allocated this many bytes, and nobody else has the buffer yet.
        unsafe { buffer.0.write_bytes(0, BUFFER_BYTES) };
        lock(&KEPT).push(buffer);
    }
}

impl BufferDecoder {
    /// Begins to lend buffers and to read those that come back.
    pub(crate) fn start(
        functions: Functions,
        calls: Arc<Calls>,
        limit: usize,
    ) -> Result<(Arc<Self>, JoinHandle<()>), std::io::Error> {
        let decoder = Arc::new(Self {
            functions,
            calls,
            limit,
            state: Mutex::default(),
            changed: Condvar::new(),
            records: Mutex::default(),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let worker = Arc::clone(&decoder);
        let thread = own_threads::spawn("hotspan-device", move || worker.read_until_closed())?;
        *lock(&RUNNING) = Some(Arc::clone(&decoder));
        Ok((decoder, thread))
    }

    fn read_until_closed(&self) {
        make_ready();
        loop {
            let mut state = lock(&self.state);
            while state.waiting.is_empty() && !state.is_closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.waiting.is_empty() {
                return;
            }
            let filled = std::mem::take(&mut state.waiting);
            drop(state);
            for Filled { buffer, valid } in filled {
                let valid = valid.min(BUFFER_BYTES);
                let mut records = lock(&self.records);
                // SAFETY: `completed` had this buffer back from CUPTI, which writes to it no more, with that many bytes
                // of records; `valid` is within it.
                unsafe { records.read(&self.functions, &self.calls, buffer.0, valid, self.limit) };
                drop(records);
                put_away(buffer);
            }
        }
    }

    /// Adds calls that were watched, and how many there was no room for.
    pub(crate) fn add_calls(&self, (calls, beyond_limit): (Vec<Call>, u64)) {
        let mut records = lock(&self.records);
        records.calls.extend(calls);
        records.beyond_limit += beyond_limit;
    }

    /// Hands out what has settled: see [`Records::take_settled`].
    pub(crate) fn take(&self, newest: &mut u32) -> Delivered {
        Delivered {
            records: lock(&self.records).take_settled(newest),
            dropped: self.dropped.swap(0, Ordering::Relaxed),
            refused: self.refused.swap(0, Ordering::Relaxed),
            outstanding: 0,
        }
    }

    /// Stops lending, waits for the worker, and hands out all that was read. Everything that CUPTI has to give must have
    /// been flushed before.
    pub(crate) fn finish(self: &Arc<Self>, thread: JoinHandle<()>) -> Delivered {
        *lock(&RUNNING) = None;
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
        // A worker that panicked has read what it could; the rest is lost, and there is no telling how much.
        let lost = u64::from(thread.join().is_err());
        let records = std::mem::take(&mut *lock(&self.records));
        Delivered {
            records,
            dropped: self.dropped.load(Ordering::Relaxed) + lost,
            refused: self.refused.load(Ordering::Relaxed),
            outstanding: LENT.load(Ordering::Relaxed) as u64,
        }
    }

    /// Asks CUPTI how many records it dropped since it was last asked.
    pub(crate) fn count_dropped(&self, context: *mut c_void, stream: u32) {
        let mut dropped = 0_usize;
        // SAFETY: `dropped` is a local that CUPTI fills; the context is the one that CUPTI passed, or null, which stands
        // for all.
        let result = unsafe { (self.functions.get_dropped)(context, stream, &raw mut dropped) };
        if result == CuptiResult::SUCCESS {
            self.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
        }
    }
}

/// What a session was given.
#[derive(Debug)]
pub(crate) struct Delivered {
    pub(crate) records: Records,
    pub(crate) dropped: u64,
    pub(crate) refused: u64,
    /// Buffers that CUPTI did not return although it was told to.
    pub(crate) outstanding: u64,
}
