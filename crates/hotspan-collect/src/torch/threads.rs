//! The buffers of all threads: who writes where, and how what was written changes hands when recording stops.
//!
//! A thread gets a buffer with its first event of a session and keeps it until it ends. Stopping does not wait for
//! running threads: it takes their chunks as far as records were published. A thread that is just writing one more
//! record finishes it in memory that stays valid, and the record counts as after the end.
//!
//! After a fork the child begins with an empty registry; whatever it inherited stays untouched.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::{Chunk, FIRST_CHUNK, LARGEST_CHUNK};
use crate::torch::abi;

/// What one thread recorded.
#[derive(Debug)]
pub(crate) struct ThreadRecording {
    /// Tells threads apart, also those that had the same number of the operating system one after the other.
    pub(crate) number: u64,
    /// The operating system's number.
    pub(crate) os_thread: i64,
    /// What the C library calls it, as far as an old CUPTI tells: the low half of `pthread_self`.
    pub(crate) posix_thread: u32,
    /// torch's own number, which backward operators name their forward thread by.
    pub(crate) torch_thread: u64,
    /// The name the operating system shows.
    pub(crate) name: String,
    /// In the order written.
    pub(crate) parts: Vec<Part>,
    pub(crate) dropped: u64,
    pub(crate) inputs_dropped: u64,
    /// Nothing will follow.
    pub(crate) has_ended: bool,
}

/// A chunk as far as it was written.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    chunk: Arc<Chunk>,
    /// The address after its last block.
    blocks_end: usize,
    /// The address of its last slot.
    low: usize,
}

impl Part {
    /// The slots of records, oldest first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = *mut u8> + use<> {
        self.chunk.slots_down_to(self.low)
    }

    /// The memory it is in.
    pub(crate) fn chunk(&self) -> &Arc<Chunk> {
        &self.chunk
    }

    /// The blocks, as words.
    pub(crate) fn blocks(&self) -> &[u64] {
        let start = self.chunk.start();
        let words = self.blocks_end.saturating_sub(start as usize) / 8;
        // SAFETY: blocks were published up to `blocks_end`, never change after, and the chunk lives as long as this part.
        unsafe { std::slice::from_raw_parts(start.cast::<u64>(), words) }
    }
}

struct Registry {
    threads: Mutex<Vec<Arc<ThreadBuffer>>>,
    /// Of the running session; 0 when none runs.
    session: AtomicU64,
    bytes_left: AtomicU64,
    /// Once there was no room: nobody asks again, so that losing records stays cheap.
    is_full: AtomicBool,
}

/// `shared` comes first: the shim knows a buffer by its address.
#[repr(C)]
struct ThreadBuffer {
    shared: UnsafeCell<abi::Thread>,
    state: Mutex<ThreadState>,
}

struct ThreadState {
    session: u64,
    number: u64,
    os_thread: i64,
    posix_thread: u32,
    torch_thread: u64,
    name: String,
    full: Vec<Part>,
    current: Option<Arc<Chunk>>,
    has_ended: bool,
}

// SAFETY: `shared` is written by its own thread only; others read it through the raw atomics in `stop`.
unsafe impl Send for ThreadBuffer {}
// SAFETY: as above.
unsafe impl Sync for ThreadBuffer {}

static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

pub(crate) static SINK: abi::Sink = abi::Sink { attach, grow, detach };

fn registry() -> &'static Registry {
    let mut known = REGISTRY.load(Ordering::Acquire);
    if known.is_null() {
        let new = Box::into_raw(Box::new(Registry {
            threads: Mutex::new(Vec::new()),
            session: AtomicU64::new(0),
            bytes_left: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }));
        known = match REGISTRY.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made above and shown to nobody.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: registries are never freed.
    unsafe { &*known }
}

/// A lock that a panic elsewhere does not take away: the data is consistent after every statement that changes it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a session with room for `max_bytes`; returns its number.
pub(crate) fn start(max_bytes: u64) -> u64 {
    let registry = registry();
    let session = NEXT_SESSION.fetch_add(1, Ordering::Relaxed);
    registry.bytes_left.store(max_bytes, Ordering::Relaxed);
    registry.is_full.store(false, Ordering::Relaxed);
    registry.session.store(session, Ordering::Release);
    session
}

/// Ends the session and takes what was recorded, in the order in which threads appeared.
pub(crate) fn stop(session: u64) -> Vec<ThreadRecording> {
    let registry = registry();
    registry.session.store(0, Ordering::Release);
    let threads = lock(&registry.threads).clone();
    let recordings = threads.iter().filter_map(|thread| thread.take(session)).collect();
    lock(&registry.threads).retain(|thread| {
        let mut state = lock(&thread.state);
        if state.has_ended {
            thread.leave_chunks(&mut state);
        }
        !state.has_ended
    });
    recordings
}

/// Takes the full chunks of a session that goes on, and shows how far the others are written. Threads that have ended are
/// told of for the last time.
pub(crate) fn drain(session: u64) -> Vec<ThreadRecording> {
    let registry = registry();
    let threads = lock(&registry.threads).clone();
    let mut recordings = Vec::new();
    for thread in &threads {
        let mut state = lock(&thread.state);
        if state.session != session {
            continue;
        }
        let room: usize = state.full.iter().map(|part| part.chunk.size()).sum();
        if room > 0 {
            registry.bytes_left.fetch_add(room as u64, Ordering::Relaxed);
            registry.is_full.store(false, Ordering::Relaxed);
        }
        recordings.push(thread.read(&mut state));
        if state.has_ended {
            state.session = 0;
            thread.leave_chunks(&mut state);
        }
    }
    let ended = |thread: &Arc<ThreadBuffer>| {
        let state = lock(&thread.state);
        state.has_ended && state.session == 0
    };
    lock(&registry.threads).retain(|thread| !ended(thread));
    recordings
}

/// How many slots all threads have written in a session so far.
pub(crate) fn recorded(session: u64) -> u64 {
    let threads = lock(&registry().threads).clone();
    threads.iter().map(|thread| thread.recorded(session)).sum()
}

/// Called in a forked child, where the locks of the parent may be held for ever: forget everything.
pub(crate) fn forget_parent() {
    REGISTRY.store(std::ptr::null_mut(), Ordering::Release);
}

impl ThreadBuffer {
    fn take(&self, session: u64) -> Option<ThreadRecording> {
        let mut state = lock(&self.state);
        if state.session != session {
            return None;
        }
        state.session = 0;
        let mut recording = self.read(&mut state);
        if let Some(name) = thread_name(recording.os_thread) {
            recording.name = name;
        }
        Some(recording)
    }

    /// Takes the full chunks, and the current one as far as it is written.
    fn read(&self, state: &mut ThreadState) -> ThreadRecording {
        let mut parts = std::mem::take(&mut state.full);
        // SAFETY: these are only ever written by the shim's atomic stores and by `add_chunk`, which runs under the lock
        // held here.
        let (low, blocks_end, dropped, inputs_dropped) = unsafe {
            let shared = self.shared.get();
            (
                AtomicPtr::from_ptr(&raw mut (*shared).records).load(Ordering::Acquire) as usize,
                AtomicPtr::from_ptr(&raw mut (*shared).blocks).load(Ordering::Acquire) as usize,
                AtomicU64::from_ptr(&raw mut (*shared).dropped).load(Ordering::Relaxed),
                AtomicU64::from_ptr(&raw mut (*shared).inputs_dropped).load(Ordering::Relaxed),
            )
        };
        // The thread keeps its share of the last chunk until its next event: it may be writing there now.
        parts.extend(state.current.clone().map(|chunk| Part { chunk, blocks_end, low }));
        let name = state.name.clone();
        let ThreadState { number, os_thread, posix_thread, torch_thread, has_ended, .. } = *state;
        ThreadRecording {
            number,
            os_thread,
            posix_thread,
            torch_thread,
            name,
            parts,
            dropped,
            inputs_dropped,
            has_ended,
        }
    }

    fn recorded(&self, session: u64) -> u64 {
        let state = lock(&self.state);
        if state.session != session {
            return 0;
        }
        // SAFETY: written by the shim's atomic stores and by `add_chunk`, which runs under the lock held here.
        let low =
            unsafe { AtomicPtr::from_ptr(&raw mut (*self.shared.get()).records) }.load(Ordering::Acquire);
        let full = state.full.iter().map(|part| part.chunk.count_down_to(part.low));
        let current = state.current.iter().map(|chunk| chunk.count_down_to(low as usize));
        full.chain(current).sum::<usize>() as u64
    }

    /// Gives the calling thread, whose buffer this is, a new chunk.
    fn add_chunk(&self, state: &mut ThreadState, room: usize) -> bool {
        let size = match &state.current {
            Some(chunk) => (chunk.size() * 2).min(LARGEST_CHUNK),
            None => FIRST_CHUNK,
        };
        let size = size.max(room + 4 * abi::SLOT_SHAPE.size);
        let registry = registry();
        let reserve = |left: u64| left.checked_sub(size as u64);
        let reserved = registry.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        let Some(chunk) = reserved.ok().and_then(|_| Chunk::new(size, abi::SLOT_SHAPE)) else {
            registry.is_full.store(true, Ordering::Relaxed);
            return false;
        };
        let shared = self.shared.get();
        // SAFETY: the calling thread owns the buffer; readers of `records` wait for the lock it holds.
        unsafe {
            if let Some(old) = state.current.take() {
                let (low, blocks_end) = ((*shared).records as usize, (*shared).blocks as usize);
                old.set_low(low);
                state.full.push(Part { chunk: old, blocks_end, low });
            }
            AtomicPtr::from_ptr(&raw mut (*shared).blocks).store(chunk.start(), Ordering::Release);
            AtomicPtr::from_ptr(&raw mut (*shared).records).store(chunk.end(), Ordering::Release);
        }
        state.current = Some(Arc::new(chunk));
        true
    }
}

extern "C" fn attach(session: u64, torch_thread: u64) -> *mut abi::Thread {
    thread_local! {
        /// The registry tells apart what a forked child inherited.
        static MINE: UnsafeCell<Option<(*const Registry, Arc<ThreadBuffer>)>> = const { UnsafeCell::new(None) };
    }
    let registry = registry();
    if registry.session.load(Ordering::Acquire) != session {
        return std::ptr::null_mut();
    }
    let buffer = MINE.try_with(|mine| {
        // SAFETY: only this function touches the cell, on its own thread, and it does not call itself.
        let mine = unsafe { &mut *mine.get() };
        match mine {
            Some((known, buffer)) if std::ptr::eq(*known, registry) => buffer.clone(),
            _ => {
                let buffer = Arc::new(ThreadBuffer::new(torch_thread));
                lock(&registry.threads).push(buffer.clone());
                // What a forked child inherited is left alone, not freed: its locks may be held.
                std::mem::forget(mine.replace((registry, buffer.clone())));
                buffer
            }
        }
    });
    let Ok(buffer) = buffer else { return std::ptr::null_mut() };
    let mut state = lock(&buffer.state);
    // The session may have ended while this thread waited for the lock.
    if registry.session.load(Ordering::Acquire) != session {
        return std::ptr::null_mut();
    }
    if state.session != session {
        buffer.leave_chunks(&mut state);
        state.session = session;
        // Without a chunk every record of this thread is lost, and counted.
        buffer.add_chunk(&mut state, 0);
    }
    buffer.shared.get()
}

impl ThreadBuffer {
    fn new(torch_thread: u64) -> Self {
        // SAFETY: takes nothing and cannot fail.
        let os_thread = i64::from(unsafe { libc::gettid() });
        // SAFETY: takes nothing and cannot fail.
        let posix_thread = unsafe { libc::pthread_self() } as u32;
        let name = thread_name(os_thread).unwrap_or_default();
        let state = ThreadState {
            session: 0,
            number: NEXT_THREAD.fetch_add(1, Ordering::Relaxed),
            os_thread,
            posix_thread,
            torch_thread,
            name,
            full: Vec::new(),
            current: None,
            has_ended: false,
        };
        Self { shared: UnsafeCell::new(abi::Thread::EMPTY), state: Mutex::new(state) }
    }

    /// Gives up the chunks of an earlier session and clears everything that points into them.
    fn leave_chunks(&self, state: &mut ThreadState) {
        let shared = self.shared.get();
        if let Some(chunk) = state.current.take() {
            // SAFETY: called by the thread that owns the buffer, or when that thread has ended.
            chunk.set_low(unsafe { (*shared).records } as usize);
        }
        state.full.clear();
        // SAFETY: as above; nobody reads the counters before `session` is set.
        unsafe {
            shared.write(abi::Thread::EMPTY);
            (*shared).session = registry().session.load(Ordering::Relaxed);
        }
    }
}

extern "C" fn grow(thread: *mut abi::Thread, room: u64) -> i32 {
    let registry = registry();
    // SAFETY: the calling thread owns the buffer.
    let session = unsafe { (*thread).session };
    if registry.is_full.load(Ordering::Relaxed) || registry.session.load(Ordering::Acquire) != session {
        return 0;
    }
    // SAFETY: `shared` is the first field of a `ThreadBuffer` that the registry keeps alive.
    let buffer = unsafe { &*thread.cast::<ThreadBuffer>() };
    let mut state = lock(&buffer.state);
    i32::from(state.session == session && buffer.add_chunk(&mut state, room as usize))
}

extern "C" fn detach(thread: *mut abi::Thread) {
    let registry = registry();
    // A buffer that this registry does not know is a forked child's inheritance.
    let mut threads = lock(&registry.threads);
    let Some(index) = threads.iter().position(|known| std::ptr::eq(known.shared.get(), thread)) else {
        return;
    };
    let buffer = threads[index].clone();
    let mut state = lock(&buffer.state);
    if state.session == 0 || state.session != registry.session.load(Ordering::Acquire) {
        threads.remove(index);
        drop(threads);
        buffer.leave_chunks(&mut state);
        return;
    }
    // Its recording is still wanted: the last chance to ask for its name.
    state.has_ended = true;
    if let Some(name) = thread_name(state.os_thread) {
        state.name = name;
    }
}

fn thread_name(os_thread: i64) -> Option<String> {
    let name = std::fs::read(format!("/proc/self/task/{os_thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torch::abi::{Block, Record};

    /// Sessions are one at a time, tests are not.
    static ONE_SESSION: Mutex<()> = Mutex::new(());

    /// Writes an operator as the shim does; `false`: there was no room.
    fn write(thread: *mut abi::Thread, start: u64, end: u64) -> bool {
        // SAFETY: the test's thread owns the buffer, and slots of `records` are free down to `blocks`.
        unsafe {
            if ((*thread).records as usize) < (*thread).blocks as usize + 64 && grow(thread, 0) == 0 {
                (*thread).dropped += 1;
                return false;
            }
            let slot = (*thread).records.sub(abi::SLOT_SHAPE.size);
            slot.cast::<[u64; 4]>().write([start, end, 1, 0]);
            AtomicPtr::from_ptr(&raw mut (*thread).records).store(slot, Ordering::Release);
        }
        true
    }

    fn write_name(thread: *mut abi::Thread, name: &[u8; 8]) {
        // SAFETY: as above; three words fit a fresh chunk.
        unsafe {
            let at = (*thread).blocks.cast::<u64>();
            at.write(3 | 1 << 32);
            at.add(1).write(8);
            at.add(2).write(u64::from_ne_bytes(*name));
            AtomicPtr::from_ptr(&raw mut (*thread).blocks).store(at.add(3).cast(), Ordering::Release);
        }
    }

    fn starts(recording: &ThreadRecording) -> Vec<u64> {
        let mut all = Vec::new();
        for part in &recording.parts {
            let mut slots = part.slots();
            // SAFETY: written by `write`.
            while let Some(Record::Operator(operator)) = unsafe { Record::read(&mut slots) } {
                all.push(operator.start);
            }
        }
        all
    }

    #[test]
    fn records_of_all_threads_arrive_in_order() {
        let _one = lock(&ONE_SESSION);
        let session = start(u64::MAX);
        let workers: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(move || {
                    let thread = attach(session, 9);
                    write_name(thread, b"aten::ab");
                    assert!((1..=100_000).all(|time| write(thread, time, time)));
                    detach(thread);
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let recordings = stop(session);
        assert_eq!(recordings.len(), 4);
        for recording in &recordings {
            assert_eq!(starts(recording), (1..=100_000).collect::<Vec<_>>());
            let (block, rest) = Block::read(recording.parts[0].blocks()).unwrap();
            assert!(matches!(block, Block::Name(b"aten::ab", b"")) && rest.is_empty());
        }
        assert!(lock(&registry().threads).is_empty(), "threads that ended are forgotten");
    }

    #[test]
    fn what_is_drained_makes_room_and_comes_once() {
        let _one = lock(&ONE_SESSION);
        let session = start(4 * LARGEST_CHUNK as u64);
        std::thread::spawn(move || {
            let thread = attach(session, 1);
            let mut read: Vec<u64> = Vec::new();
            let mut seen = 0;
            for round in 0..50_u64 {
                // Fifty times half a chunk: more than there is room for at once.
                let count = LARGEST_CHUNK as u64 / 64;
                assert!((1..=count).all(|time| write(thread, round * count + time, 1)));
                let drained = drain(session).remove(0);
                let all = starts(&drained);
                // The chunk that was not full is shown again, from its beginning.
                read.truncate(read.len() - seen);
                read.extend(&all);
                let last =
                    ThreadRecording { parts: drained.parts[drained.parts.len() - 1..].to_vec(), ..drained };
                seen = starts(&last).len();
            }
            assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>());
            assert_eq!(read.len(), 50 * LARGEST_CHUNK / 64);
            detach(thread);
            assert!(drain(session).remove(0).has_ended);
            assert!(drain(session).is_empty(), "a thread that ended is told of once");
            stop(session);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let _one = lock(&ONE_SESSION);
        let session = start(FIRST_CHUNK as u64);
        let recording = std::thread::spawn(move || {
            let thread = attach(session, 1);
            let written = (1..=10_000).filter(|&time| write(thread, time, time)).count();
            let recording = stop(session).remove(0);
            detach(thread);
            assert_eq!(written as u64 + recording.dropped, 10_000);
            recording
        });
        let recording = recording.join().unwrap();
        assert!(recording.dropped > 9_000);
        assert_eq!(starts(&recording).len() as u64 + recording.dropped, 10_000);
    }

    #[test]
    fn a_late_thread_writes_to_memory_that_is_still_there() {
        let _one = lock(&ONE_SESSION);
        let session = start(u64::MAX);
        std::thread::spawn(move || {
            let thread = attach(session, 1);
            write(thread, 1, 1);
            let recordings = stop(session);
            assert_eq!(starts(&recordings[0]), [1]);
            drop(recordings);
            assert!(write(thread, 2, 2), "the chunk still has room");
            assert_eq!(grow(thread, 1 << 20), 0, "but there is no other one");
            assert!(attach(session, 1).is_null(), "and no coming back");
            let next = start(u64::MAX);
            assert_eq!(attach(next, 1), thread, "a thread keeps its buffer");
            write(thread, 3, 3);
            assert_eq!(starts(&stop(next)[0]), [3]);
            detach(thread);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn stopping_while_threads_write_loses_nothing_published() {
        let _one = lock(&ONE_SESSION);
        for _ in 0..200 {
            let session = start(u64::MAX);
            let writer = std::thread::spawn(move || {
                let thread = attach(session, 1);
                let mut time = 0;
                if !thread.is_null() {
                    while registry().session.load(Ordering::Relaxed) == session && write(thread, time + 1, 1)
                    {
                        time += 1;
                    }
                    detach(thread);
                }
                time
            });
            std::thread::sleep(std::time::Duration::from_micros(200));
            let recordings = stop(session);
            let written = writer.join().unwrap();
            let read = recordings.first().map(starts).unwrap_or_default();
            assert!(read.len() as u64 <= written + 1, "{} of {written}", read.len());
            assert_eq!(read, (1..=read.len() as u64).collect::<Vec<_>>());
        }
    }
}
