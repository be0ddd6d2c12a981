//! The buffers of all threads: who writes where, and how what was written changes hands when recording stops.
//!
//! A thread gets a buffer with its first event of a session and keeps it until it ends. Stopping does not wait for
//! running threads: it takes their chunks as far as records were published. A thread that is just writing one more
//! record finishes it in memory that stays valid, and the record counts as after the end.
//!
//! A thread that ends leaves what it recorded, packed, in the registry and gives its buffer back: programs start threads by
//! the thousand.
//!
//! After a fork the child begins with an empty registry; whatever it inherited stays untouched.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::buffer::{Chunk, FIRST_CHUNK, LARGEST_CHUNK};
use crate::locks::lock;
use crate::torch::abi;

/// What a thread is called, by whom.
#[derive(Clone, Debug)]
pub(crate) struct ThreadIdentity {
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
}

/// What one thread recorded.
#[derive(Debug)]
pub(crate) struct ThreadRecording {
    pub(crate) identity: ThreadIdentity,
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

    fn count(&self) -> u64 {
        self.chunk.count_down_to(self.low) as u64
    }

    /// The same in memory of just its size. `None`: somebody else looks at it where it is, or writes there yet, or it fills
    /// most of its chunk.
    fn packed(&self) -> Option<Self> {
        if Arc::strong_count(&self.chunk) > 1 {
            return None;
        }
        let chunk = self.chunk.packed(self.blocks_end, self.low)?;
        let blocks = self.blocks_end - self.chunk.start() as usize;
        let (blocks_end, low) = (chunk.start() as usize + blocks, chunk.low());
        Some(Self { chunk: Arc::new(chunk), blocks_end, low })
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
    threads: Mutex<Threads>,
    /// Of the running session; 0 when none runs.
    session: AtomicU64,
    bytes_left: AtomicU64,
    /// Once there was no room: nobody asks again, so that losing records stays cheap.
    is_full: AtomicBool,
}

#[derive(Default)]
struct Threads {
    /// By number, so in the order in which they appeared.
    alive: BTreeMap<u64, Arc<ThreadBuffer>>,
    /// What threads left that have ended since somebody last asked, and in which session.
    ended: Vec<(u64, ThreadRecording)>,
}

impl Threads {
    fn take_ended(&mut self, session: u64) -> Vec<ThreadRecording> {
        self.ended.extract_if(.., |(of, _)| *of == session).map(|(_, recording)| recording).collect()
    }
}

/// `shared` comes first: the shim knows a buffer by its address.
#[repr(C)]
struct ThreadBuffer {
    shared: UnsafeCell<abi::Thread>,
    number: u64,
    state: Mutex<ThreadState>,
}

struct ThreadState {
    session: u64,
    identity: ThreadIdentity,
    full: Vec<Part>,
    current: Option<Arc<Chunk>>,
}

// SAFETY: its pointers lead into the chunk in `state`, which any thread may own, see `Chunk`.
unsafe impl Send for ThreadBuffer {}
// SAFETY: `state` is behind its lock. `shared` is written by its own thread: whole and with the lock of `state` held by
// `attach` and `grow`, and its four words that others read by the shim's atomic stores. Others read those words with the
// same atomics, under the lock.
unsafe impl Sync for ThreadBuffer {}

static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

pub(crate) static SINK: abi::Sink = abi::Sink { attach, grow, detach };

fn registry() -> &'static Registry {
    let mut current = REGISTRY.load(Ordering::Acquire);
    if current.is_null() {
        let new = Box::into_raw(Box::new(Registry {
            threads: Mutex::default(),
            session: AtomicU64::new(0),
            bytes_left: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }));
        current = match REGISTRY.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made above by `Box::into_raw`; the exchange failed, so that no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: made above or by another thread, whose writes the acquiring load or exchange shows; registries are never
    // freed.
    unsafe { &*current }
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
    // A thread that ends from here on finds its recording taken, or leaves it for the line after.
    let alive = registry.alive();
    let mut recordings: Vec<_> = alive.iter().filter_map(|thread| thread.take(session)).collect();
    recordings.append(&mut lock(&registry.threads).take_ended(session));
    recordings.sort_by_key(|recording| recording.identity.number);
    recordings
}

/// Takes the full chunks of a session that goes on, and shows how far the others are written. Threads that have ended are
/// told of for the last time.
pub(crate) fn drain(session: u64) -> Vec<ThreadRecording> {
    let registry = registry();
    let alive = registry.alive();
    let mut recordings: Vec<_> = alive.iter().filter_map(|thread| thread.drain(session, registry)).collect();
    // Those that ended after they were asked are told of now for the second time, with what is new.
    let ended = lock(&registry.threads).take_ended(session);
    registry.give_back(ended.iter().map(ThreadRecording::bytes).sum());
    recordings.extend(ended);
    recordings.sort_by_key(|recording| recording.identity.number);
    recordings
}

/// How many slots all threads have written in a session so far.
pub(crate) fn recorded(session: u64) -> u64 {
    let registry = registry();
    let alive: u64 = registry.alive().iter().map(|thread| thread.recorded(session)).sum();
    let threads = lock(&registry.threads);
    let ended = threads.ended.iter().filter(|(of, _)| *of == session);
    alive + ended.flat_map(|(_, recording)| &recording.parts).map(Part::count).sum::<u64>()
}

impl Registry {
    fn alive(&self) -> Vec<Arc<ThreadBuffer>> {
        lock(&self.threads).alive.values().cloned().collect()
    }

    /// Makes room for others.
    fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.bytes_left.fetch_add(bytes, Ordering::Relaxed);
            self.is_full.store(false, Ordering::Relaxed);
        }
    }
}

impl ThreadRecording {
    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.chunk.size() as u64).sum()
    }
}

/// Called in a forked child, where the locks of the parent may be held for ever: forget everything.
pub(crate) fn forget_parent() {
    REGISTRY.store(std::ptr::null_mut(), Ordering::Release);
}

impl ThreadBuffer {
    fn new(torch_thread: u64) -> Self {
        let identity = ThreadIdentity::of_this_thread(torch_thread);
        let number = identity.number;
        let state = ThreadState { session: 0, identity, full: Vec::new(), current: None };
        Self { shared: UnsafeCell::new(abi::Thread::EMPTY), number, state: Mutex::new(state) }
    }

    /// Gives up the chunks of an earlier session. Called by the thread that owns the buffer.
    fn leave_chunks(&self, state: &mut ThreadState) {
        if let Some(chunk) = state.current.take() {
            // SAFETY: the calling thread alone writes to `shared`.
            chunk.set_low(unsafe { (*self.shared.get()).records } as usize);
        }
        state.full.clear();
    }

    /// Makes the buffer, which has no chunks, one of this session. Called by the thread that owns it.
    fn begin(&self, state: &mut ThreadState, session: u64) {
        state.session = session;
        let shared = self.shared.get();
        // SAFETY: the calling thread alone writes to `shared`, and readers in other threads need the lock of `state`, which
        // the caller holds.
        unsafe {
            shared.write(abi::Thread::EMPTY);
            (*shared).session = session;
        }
        // Without a chunk every record of this thread is lost, and counted.
        self.add_chunk(state, 0);
    }

    fn take(&self, session: u64) -> Option<ThreadRecording> {
        let mut state = lock(&self.state);
        if state.session != session {
            return None;
        }
        state.session = 0;
        let mut recording = self.read(&mut state);
        recording.identity.read_name();
        Some(recording)
    }

    fn drain(&self, session: u64, registry: &Registry) -> Option<ThreadRecording> {
        let mut state = lock(&self.state);
        if state.session != session {
            return None;
        }
        registry.give_back(state.full.iter().map(|part| part.chunk.size() as u64).sum());
        Some(self.read(&mut state))
    }

    /// What the calling thread, which ends, leaves behind: packed, for chunks have room for much more than most threads
    /// record. `None`: nobody asks for it.
    fn leave(&self, registry: &Registry) -> Option<(u64, ThreadRecording)> {
        let mut state = lock(&self.state);
        let session = std::mem::take(&mut state.session);
        if session == 0 {
            self.leave_chunks(&mut state);
            return None;
        }
        let mut recording = self.read(&mut state);
        recording.has_ended = true;
        recording.identity.name_of_this_thread();
        state.current = None;
        if let Some(last) = recording.parts.last_mut() {
            last.chunk.set_low(last.low);
            let before = last.chunk.size();
            if let Some(packed) = last.packed() {
                *last = packed;
                registry.give_back((before - last.chunk.size()) as u64);
            }
        }
        Some((session, recording))
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
        let identity = state.identity.clone();
        ThreadRecording { identity, parts, dropped, inputs_dropped, has_ended: false }
    }

    fn recorded(&self, session: u64) -> u64 {
        let state = lock(&self.state);
        if state.session != session {
            return 0;
        }
        // SAFETY: the word is written by the shim's atomic stores, and otherwise by `add_chunk` and `leave_chunks`, which
        // run under the lock held here.
        let low =
            unsafe { AtomicPtr::from_ptr(&raw mut (*self.shared.get()).records) }.load(Ordering::Acquire);
        let current = state.current.iter().map(|chunk| chunk.count_down_to(low as usize) as u64);
        state.full.iter().map(Part::count).chain(current).sum()
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
        // SAFETY: the calling thread is the only writer, so that it may read plainly; others read under the lock that it
        // holds.
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
        // SAFETY: the cell is of this thread, only this function uses it, and nothing below calls it again: neither
        // allocating nor locking runs an operator.
        let mine = unsafe { &mut *mine.get() };
        match mine {
            Some((of, buffer)) if std::ptr::eq(*of, registry) => buffer.clone(),
            _ => {
                let buffer = Arc::new(ThreadBuffer::new(torch_thread));
                lock(&registry.threads).alive.insert(buffer.number, buffer.clone());
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
        buffer.begin(&mut state, session);
    }
    // The address of the whole buffer, not of its first field only: `grow` needs the rest.
    Arc::as_ptr(&buffer).cast_mut().cast()
}

extern "C" fn grow(thread: *mut abi::Thread, room: u64) -> i32 {
    let registry = registry();
    // SAFETY: the shim passes what `attach` gave to this thread, which alone writes to it.
    let session = unsafe { (*thread).session };
    if registry.is_full.load(Ordering::Relaxed) || registry.session.load(Ordering::Acquire) != session {
        return 0;
    }
    // SAFETY: `attach` made this pointer from that of a whole `ThreadBuffer`, whose first field it is; the thread's own
    // `Arc` keeps it alive until the thread has ended.
    let buffer = unsafe { &*thread.cast::<ThreadBuffer>() };
    let mut state = lock(&buffer.state);
    i32::from(state.session == session && buffer.add_chunk(&mut state, room as usize))
}

extern "C" fn detach(thread: *mut abi::Thread) {
    let registry = registry();
    // SAFETY: `attach` made this pointer from that of a whole `ThreadBuffer`, which the registry keeps alive until here, or
    // a forked child inherited it with all its memory.
    let number = unsafe { (*thread.cast::<ThreadBuffer>()).number };
    // Held to the end: whoever stops the session finds the thread alive or what it left.
    let mut threads = lock(&registry.threads);
    // A buffer that this registry does not know is a forked child's inheritance.
    if let Some(buffer) = threads.alive.remove(&number)
        && let Some(left) = buffer.leave(registry)
    {
        threads.ended.push(left);
    }
}

impl ThreadIdentity {
    fn of_this_thread(torch_thread: u64) -> Self {
        // SAFETY: both take nothing and cannot fail.
        let (os_thread, posix_thread) = unsafe { (libc::gettid(), libc::pthread_self() as u32) };
        let number = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
        let name = String::new();
        let mut identity = Self { number, os_thread: os_thread.into(), posix_thread, torch_thread, name };
        identity.name_of_this_thread();
        identity
    }

    /// Asks for the name of the calling thread, without a descriptor.
    fn name_of_this_thread(&mut self) {
        let mut name = [0_u8; 16];
        // SAFETY: the system writes at most 16 bytes, of which the last is 0.
        if unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) } == 0 {
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            self.name = String::from_utf8_lossy(name).into_owned();
        }
    }

    /// Reads the name that the thread has now; one that is gone keeps the last.
    fn read_name(&mut self) {
        if let Ok(name) = std::fs::read(format!("/proc/self/task/{}/comm", self.os_thread)) {
            self.name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
        }
    }
}

#[cfg(test)]
mod tests;
