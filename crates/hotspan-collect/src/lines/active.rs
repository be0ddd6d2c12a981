//! The watched frames that each thread is in, and what an event means for them.
//!
//! A line's time runs from its event to the next event of the same frame, so it includes what the line calls. When a
//! function calls itself, its time goes to the innermost call alone: the sum over its lines is the time that was spent in
//! it, counted once. A generator or coroutine is in the list while it runs, not while it waits.

use std::cell::UnsafeCell;
use std::sync::Arc;

use super::quiet::quiet_ticks;
use super::recorder::Measure;
use super::resident::{last_resident_bytes, resident_bytes};
use super::tables::{REGISTRY, Registry, Switch, Watched};
use crate::clock;
use crate::interpreter::{Interpreter, Object};

struct Active {
    code: *mut Object,
    /// Null where the interpreter does not tell.
    frame: *mut Object,
    watched: Arc<Watched>,
    /// The line the frame is on.
    line: u32,
    /// Since when, for the purpose of counting time.
    start: u64,
    /// Whether time goes to `line`: not before the first line of a call.
    timed: bool,
    /// Another call of the same function runs inside this one.
    paused: bool,
    /// When the memory of the process was last read at an event of this frame; 0: never.
    measured: u64,
}

/// The frames of a thread, innermost last.
struct Frames {
    list: Vec<Active>,
    epoch: u64,
}

thread_local! {
    static FRAMES: UnsafeCell<Frames> = const { UnsafeCell::new(Frames { list: Vec::new(), epoch: 0 }) };
}

/// How a frame begins to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A call.
    Start,
    /// A generator or coroutine goes on, at this line.
    Resume(u32),
}

/// Whether threads run Python code side by side.
#[inline]
fn is_parallel() -> bool {
    Interpreter::get().is_some_and(|python| python.is_parallel)
}

/// Runs `act` with the frames of this thread, which forget what an earlier recording left.
///
/// # Safety
/// The GIL is held.
#[inline]
unsafe fn with_frames(act: impl FnOnce(&mut Frames, &Registry)) {
    let act = |registry: &Registry| {
        // A thread that is ending has no frames any more.
        let _ = FRAMES.try_with(|frames| {
            // SAFETY: only this thread has them, and callbacks do not nest: they call no Python.
            let frames = unsafe { &mut *frames.get() };
            if frames.epoch != registry.epoch {
                frames.clear();
                frames.epoch = registry.epoch;
            }
            act(frames, registry);
        });
    };
    // SAFETY: the caller's promise; nothing in here calls Python.
    unsafe { with_registry(act) };
}

/// Runs `act` with what is watched, when anything is.
///
/// # Safety
/// The GIL is held; `act` calls no Python.
#[inline]
unsafe fn with_registry<T>(act: impl FnOnce(&Registry) -> T) -> Option<T> {
    let is_parallel = Interpreter::get()?.is_parallel;
    // SAFETY: the caller's promise.
    unsafe { REGISTRY.read(is_parallel, |registry| registry.as_ref().map(act)) }.flatten()
}

impl Frames {
    fn clear(&mut self) {
        for active in self.list.drain(..) {
            active.watched.running.add(-1, is_parallel());
        }
    }

    /// Where the frame is in the list.
    #[inline]
    fn find(&self, code: *mut Object, frame: *mut Object) -> Option<usize> {
        let same = |active: &Active| active.code == code && active.frame == frame;
        // Nearly always the innermost one; not with greenlets, which change stacks behind our back.
        self.list.iter().rposition(same)
    }

    #[cold]
    fn push(
        &mut self,
        code: *mut Object,
        frame: *mut Object,
        watched: &Arc<Watched>,
        entry: Entry,
        now: u64,
    ) {
        if watched.running.get() > 0
            && let Some(outer) =
                self.list.iter_mut().rev().find(|active| active.code == code && !active.paused)
        {
            outer.settle(now);
            outer.paused = true;
        }
        watched.running.add(1, is_parallel());
        let (line, timed) = match entry {
            Entry::Start => (watched.first_line, false),
            Entry::Resume(line) => (line, true),
        };
        self.list.push(Active {
            code,
            frame,
            watched: Arc::clone(watched),
            line,
            start: now,
            timed,
            paused: false,
            measured: 0,
        });
    }
}

impl Active {
    /// Gives the time since the last event to the line.
    #[inline]
    fn settle(&mut self, now: u64) {
        if self.timed && !self.paused {
            for table in self.watched.tables_of(Measure::Time) {
                table.add_time(self.line, self.start, now);
            }
        }
        self.start = now;
    }

    /// The line is over, at `now`: measures what it left behind.
    #[inline]
    fn measure_memory(&mut self, now: u64) {
        if self.watched.wants_memory() {
            self.measure_memory_now(now);
        }
    }

    #[inline(never)]
    fn measure_memory_now(&mut self, now: u64) {
        let is_quiet = self.measured != 0 && now.wrapping_sub(self.measured) < quiet_ticks();
        let resident = if is_quiet { last_resident_bytes() } else { resident_bytes() };
        let Some(memory) = resident else { return };
        for table in self.watched.tables_of(Measure::Memory) {
            table.add_memory(self.line, memory);
        }
        // Reading takes longer than what counts as quiet, and changes nothing.
        self.measured = if is_quiet { now } else { clock::now().0 };
    }
}

/// A watched frame begins or goes on.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn enter(code: *mut Object, frame: *mut Object, entry: Entry) {
    // SAFETY: the caller's promise.
    unsafe {
        with_frames(|frames, registry| {
            if let Some(watched) = registry.find(code) {
                frames.push(code, frame, watched, entry, clock::now().0);
            }
        });
    }
}

/// A line begins.
///
/// # Safety
/// The GIL is held.
#[inline]
pub(crate) unsafe fn line(code: *mut Object, frame: *mut Object, line: u32) {
    let now = clock::now().0;
    // SAFETY: the caller's promise.
    unsafe {
        with_frames(|frames, registry| {
            let index = match frames.list.last() {
                Some(last) if last.code == code && last.frame == frame => frames.list.len() - 1,
                _ => {
                    let Some(watched) = registry.find(code) else { return };
                    match frames.find(code, frame) {
                        Some(index) => index,
                        None => {
                            // Recording began while the frame ran.
                            frames.push(code, frame, watched, Entry::Start, now);
                            frames.list.len() - 1
                        }
                    }
                }
            };
            let Some(active) = frames.list.get_mut(index) else { return };
            active.settle(now);
            active.measure_memory(now);
            let previous = active.timed.then_some(active.line);
            for table in active.watched.tables_of(Measure::Time) {
                table.add_hit(line, previous);
            }
            active.line = line;
            active.timed = true;
        });
    }
}

/// A frame returns, yields or is left by an exception.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn leave(code: *mut Object, frame: *mut Object) {
    // SAFETY: the caller's promise.
    unsafe {
        with_frames(|frames, _| {
            let Some(index) = frames.find(code, frame) else { return };
            let now = clock::now().0;
            let mut active = frames.list.remove(index);
            active.settle(now);
            active.measure_memory(now);
            active.watched.running.add(-1, is_parallel());
            if active.watched.running.get() > 0
                && let Some(outer) = frames.list[..index].iter_mut().rev().find(|outer| outer.code == code)
            {
                outer.paused = false;
                outer.start = now;
            }
        });
    }
}

/// The code objects that a recorder records on this thread at the moment, outermost first, each with its line.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn running(switch: &Arc<Switch>) -> Vec<(*mut Object, u32)> {
    let mut found = Vec::new();
    // SAFETY: the caller's promise.
    unsafe {
        with_frames(|frames, _| {
            let is_recorded = |active: &&Active| {
                active.timed && active.watched.tables.iter().any(|table| Arc::ptr_eq(&table.switch, switch))
            };
            found.extend(frames.list.iter().filter(is_recorded).map(|active| (active.code, active.line)));
        });
    }
    found
}

/// This thread is no longer watched: forgets the frames it is in.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn forget_thread() {
    // SAFETY: the caller's promise.
    unsafe { with_frames(|frames, _| frames.clear()) }
}

/// Whether anyone watches a code object.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn is_watched(code: *mut Object) -> bool {
    // SAFETY: the caller's promise.
    unsafe { with_registry(|registry| registry.find(code).is_some()) }.unwrap_or(false)
}

/// The line a watched code object begins at.
///
/// # Safety
/// The GIL is held.
pub(crate) unsafe fn first_line(code: *mut Object) -> Option<u32> {
    // SAFETY: the caller's promise.
    unsafe { with_registry(|registry| registry.find(code).map(|watched| watched.first_line)) }.flatten()
}
