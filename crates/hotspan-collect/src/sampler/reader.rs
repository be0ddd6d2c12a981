//! The reader: all threads of a process with their Python stacks, from outside or from a thread of its own.
//!
//! Most of a process is where it was a moment ago. So one system call fetches the thread states and those stretches of
//! memory where the frames lay last time; what has moved is then read piece by piece. Code objects are read once.

use std::time::{Duration, Instant};

use hashbrown::HashMap;

use super::code::{Codes, Function, FunctionId};
use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::layout::{FrameRoot, GilPlace, Layout};
use super::memory::{Address, Memory, Piece, half_at, word_at};
use super::names::thread_names;
use super::spans::{Span, View, cover};
use super::state::{StateFiles, ThreadNumber, system_name, thread_seen_from_here};
use super::{Frame, Look, ThreadSample, ThreadState, Walker};
use crate::process_tree::ProcessNumber;

/// How often code objects are compared with what was read of them.
const EPOCH: Duration = Duration::from_millis(100);
/// How long the state of a thread whose stack does not move is believed.
const STATE_BELIEVED: Duration = Duration::from_millis(50);
/// How often names of threads are read again when one without a name appears.
const NAMES_AGAIN: Duration = Duration::from_millis(200);
const MOST_THREADS: usize = 1 << 14;
const MOST_INTERPRETERS: usize = 64;
const MOST_ROOTS: usize = 512;
const DEEPEST: usize = 1 << 16;
const ATTEMPTS: usize = 3;
/// Threads whose files under `/proc` stay open between two looks.
const FILES_KEPT: usize = 128;
/// Owners of frames from here on are the interpreter itself.
const FIRST_INNER_OWNER: u8 = 3;

/// A frame before its function is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RawFrame {
    address: Address,
    code: Address,
    instruction: u64,
}

/// A thread met in the walk before.
#[derive(Debug, Default)]
struct Known {
    address: Address,
    number: Option<ThreadNumber>,
    ident: u64,
    /// The thread's number as Python has it; a new thread may get the memory of an old one.
    python_number: u64,
    name: String,
    /// Whether the name is that of `threading`, which may not be loaded yet when a thread is first met.
    named: bool,
    raw: Vec<RawFrame>,
    frames: Vec<Frame>,
    spans: Vec<Span>,
    files: StateFiles,
    state: ThreadState,
    looked: Option<Instant>,
    /// Where its pieces begin in this walk, the thread's own state first, and how many there are.
    pieces: (usize, usize),
}

/// Reads one process.
#[derive(Debug)]
pub struct Reader {
    memory: Memory,
    interpreter: Interpreter,
    codes: Codes,
    epoch: Instant,
    threads: Vec<Known>,
    names: HashMap<u64, String>,
    named: Option<Instant>,
    /// Small pieces that every walk needs: the heads of lists, the interpreter's lock.
    roots: Vec<Span>,
    /// How many of `pieces` are those.
    root_pieces: usize,
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    scratch: Scratch,
}

/// Memory used again and again.
#[derive(Debug, Default)]
struct Scratch {
    raw: Vec<RawFrame>,
    places: Vec<Address>,
    spans: Vec<Span>,
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    order: Vec<(usize, bool)>,
}

impl Reader {
    /// Attaches to a process, which does not notice.
    ///
    /// # Errors
    /// When there is no such process, no Python in it, or no permission to read it.
    pub fn attach(process: ProcessNumber) -> Result<Self, SamplerError> {
        let interpreter = Interpreter::find(process)?;
        let memory = Memory { process };
        // The first read tells whether we may.
        memory.word(interpreter.runtime)?;
        Ok(Self {
            memory,
            interpreter,
            codes: Codes::default(),
            epoch: Instant::now(),
            threads: Vec::new(),
            names: HashMap::new(),
            named: None,
            roots: Vec::new(),
            root_pieces: 0,
            pieces: Vec::new(),
            buffer: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    /// The process that is read.
    #[must_use]
    pub fn process(&self) -> ProcessNumber {
        self.memory.process
    }

    /// The interpreter that was found.
    #[must_use]
    pub fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Fetches the states of all known threads and the stretches their frames lay in, at once.
    fn fetch(&mut self) -> Result<(), SamplerError> {
        let length = self.interpreter.layout.thread_length();
        self.pieces.clear();
        let mut at = 0;
        let mut add = |pieces: &mut Vec<Piece>, address, length| {
            pieces.push(Piece { address, length, at, read: false });
            at += length;
        };
        if self.roots.len() > MOST_ROOTS {
            self.roots.clear();
        }
        for root in &self.roots {
            add(&mut self.pieces, root.start, root.length);
        }
        self.root_pieces = self.roots.len();
        for thread in &mut self.threads {
            let first = self.pieces.len();
            add(&mut self.pieces, thread.address, length);
            for span in &thread.spans {
                add(&mut self.pieces, span.start, span.length);
            }
            thread.pieces = (first, self.pieces.len() - first);
        }
        if self.buffer.len() < at {
            self.buffer.resize(at, 0);
        }
        self.memory.read_pieces(&mut self.pieces, &mut self.buffer)
    }

    /// A number that every walk needs: fetched with all else from the second time on.
    fn root(&mut self, address: Address) -> Result<u64, SamplerError> {
        let view = View { pieces: &self.pieces[..self.root_pieces], buffer: &self.buffer };
        if let Some(bytes) = view.get(address, 8) {
            return Ok(word_at(bytes, 0));
        }
        self.roots.push(Span { start: address, length: 8 });
        self.memory.word(address)
    }

    /// Follows the lists of interpreters and threads; `scratch.order` then has the threads that live, and who holds the lock.
    fn follow(&mut self) -> Result<Address, SamplerError> {
        let layout = self.interpreter.layout;
        let runtime = self.interpreter.runtime;
        let known = self.threads.len();
        self.scratch.order.clear();
        let head = Address(self.root(runtime.plus(layout.interpreters as u64))?);
        let mut state = head;
        for _ in 0..MOST_INTERPRETERS {
            if state.is_null() {
                break;
            }
            let holder = self.gil_holder(layout.gil, state)?;
            let mut thread = Address(self.root(state.plus(layout.interpreter_threads as u64))?);
            while !thread.is_null() {
                if self.scratch.order.len() >= MOST_THREADS {
                    return Err(self.memory.unreadable("the list of threads"));
                }
                // Threads keep their order, so the next one is mostly the next one known.
                let guess = self.scratch.order.len();
                let index = match self.threads[..known].get(guess) {
                    Some(candidate) if candidate.address == thread => Some(guess),
                    _ => self.threads[..known].iter().position(|candidate| candidate.address == thread),
                };
                let fetched = index.and_then(|index| {
                    let piece = self.pieces[self.threads[index].pieces.0];
                    piece.read.then(|| (index, word_at(&self.buffer, piece.at + layout.thread_next)))
                });
                let (index, next) = match fetched {
                    Some((index, next)) => {
                        self.forget_if_replaced(index);
                        (index, next)
                    }
                    None => {
                        let next = self.memory.word(thread.plus(layout.thread_next as u64))?;
                        self.threads.push(Known { address: thread, ..Known::default() });
                        (self.threads.len() - 1, next)
                    }
                };
                self.scratch.order.push((index, holder == thread));
                thread = Address(next);
            }
            state = Address(self.root(state.plus(layout.interpreter_next as u64))?);
        }
        Ok(head)
    }

    /// A thread that ended may have left its place to another.
    fn forget_if_replaced(&mut self, index: usize) {
        let layout = &self.interpreter.layout;
        let thread = &mut self.threads[index];
        let at = self.pieces[thread.pieces.0].at;
        let field = |offset: usize| word_at(&self.buffer, at + offset);
        let same = thread.ident == field(layout.thread_ident)
            && layout.thread_number.is_none_or(|offset| thread.python_number == field(offset));
        if !same {
            let (address, pieces) = (thread.address, thread.pieces);
            self.names.remove(&thread.ident);
            *thread = Known { address, pieces, ..Known::default() };
        }
    }

    fn gil_holder(&mut self, gil: GilPlace, state: Address) -> Result<Address, SamplerError> {
        match gil {
            GilPlace::None => Ok(Address(0)),
            GilPlace::Runtime(offset) => self.root(self.interpreter.runtime.plus(offset as u64)).map(Address),
            GilPlace::Interpreter { lock, holder, locked } => {
                let lock = Address(self.root(state.plus(lock as u64))?);
                if lock.is_null() {
                    return Ok(Address(0));
                }
                let held = self.root(lock.plus(locked as u64))? as u32 == 1;
                Ok(Address(if held { self.root(lock.plus(holder as u64))? } else { 0 }))
            }
        }
    }

    /// Reads the stack of one thread. Whether it stood still meanwhile is the answer.
    fn read_stack(&mut self, index: usize) -> Result<bool, SamplerError> {
        let layout = self.interpreter.layout;
        let (first, count) = self.threads[index].pieces;
        let address = self.threads[index].address;
        let mut outcome = {
            let view = View { pieces: &self.pieces[first..first + count], buffer: &self.buffer };
            let raw = &mut self.scratch.raw;
            read_frames(&self.memory, &layout, address, view, raw)
        };
        for attempt in 1..=ATTEMPTS {
            match outcome {
                Ok(0) => return Ok(true),
                Ok(_) => {
                    // Some frames were read later than others: fine if the thread is still where it was.
                    let innermost = innermost_frame(&self.memory, &layout, address)?;
                    let first = self.scratch.raw.first().map_or(Address(0), |frame| frame.address);
                    if innermost == first {
                        return Ok(true);
                    }
                    if attempt == ATTEMPTS {
                        return Ok(false);
                    }
                }
                Err(error) if error.is_end() || attempt == ATTEMPTS => return Err(error),
                Err(_) => {}
            }
            // Once more, all in one call, at the places just found.
            let Scratch { raw, places, spans, pieces, buffer, .. } = &mut self.scratch;
            guess(&layout, &self.memory, address, raw, places, spans);
            pieces.clear();
            pieces.push(Piece { address, length: layout.thread_length(), at: 0, read: false });
            let mut at = layout.thread_length();
            for span in spans.iter() {
                pieces.push(Piece { address: span.start, length: span.length, at, read: false });
                at += span.length;
            }
            buffer.resize(at.max(buffer.len()), 0);
            self.memory.read_pieces(pieces, buffer)?;
            outcome = read_frames(&self.memory, &layout, address, View { pieces, buffer }, raw);
        }
        Ok(false)
    }

    /// Names a thread that was not known before.
    fn identify(&mut self, index: usize, state: Address, now: Instant) -> Result<(), SamplerError> {
        let layout = self.interpreter.layout;
        let process = self.memory.process;
        let thread = &mut self.threads[index];
        thread.ident = self.memory.word(thread.address.plus(layout.thread_ident as u64))?;
        let number = match layout.thread_number {
            Some(offset) => {
                thread.python_number = self.memory.word(thread.address.plus(offset as u64))?;
                thread.python_number as u32
            }
            None => number_of_pthread(&self.memory, Address(thread.ident)),
        };
        thread.number = thread_seen_from_here(process, ThreadNumber(number));
        self.name(index, state, now);
        Ok(())
    }

    /// Gives a thread the name it has in `threading`, or else in the operating system.
    fn name(&mut self, index: usize, state: Address, now: Instant) {
        let process = self.memory.process;
        let thread = &mut self.threads[index];
        if !self.names.contains_key(&thread.ident)
            && self.named.is_none_or(|named| now.duration_since(named) > NAMES_AGAIN)
        {
            self.named = Some(now);
            // Names are a kindness: without them there are still numbers.
            self.names = thread_names(&self.memory, &self.interpreter, state).unwrap_or_default();
        }
        match self.names.get(&thread.ident) {
            Some(name) => {
                thread.name.clone_from(name);
                thread.named = true;
            }
            None if thread.name.is_empty() => {
                thread.name =
                    thread.number.and_then(|number| system_name(process, number)).unwrap_or_default();
            }
            None => {}
        }
    }

    fn sample(
        &mut self,
        index: usize,
        gil: bool,
        now: Instant,
        new_epoch: bool,
        into: &mut ThreadSample,
    ) -> Result<(), SamplerError> {
        let steady = self.read_stack(index)?;
        let keep_files = self.threads.len() <= FILES_KEPT;
        let layout = self.interpreter.layout;
        let thread = &mut self.threads[index];
        let raw = &mut self.scratch.raw;
        let changed = thread.raw != *raw;
        if changed || new_epoch {
            thread.frames.clear();
            for frame in raw.iter() {
                let (function, line) =
                    self.codes.resolve(&self.memory, &self.interpreter, frame.code, frame.instruction)?;
                thread.frames.push(Frame { function, line, address: frame.address });
            }
        }
        if changed {
            let same_places = thread.raw.len() == raw.len()
                && thread.raw.iter().zip(raw.iter()).all(|(old, new)| old.address == new.address);
            std::mem::swap(&mut thread.raw, raw);
            if !same_places {
                let places = &mut self.scratch.places;
                guess(&layout, &self.memory, thread.address, &thread.raw, places, &mut thread.spans);
            }
        }
        let believed = thread.looked.is_some_and(|looked| now.duration_since(looked) < STATE_BELIEVED);
        if let Some(number) = thread.number
            && (changed || gil || !believed)
        {
            thread.state = ThreadState(thread.files.look(self.memory.process, number, keep_files));
            thread.looked = Some(now);
        }
        into.number = thread.number;
        into.ident = thread.ident;
        into.name.clone_from(&thread.name);
        into.state = thread.state;
        into.gil = gil;
        into.unsteady = !steady;
        into.changed = changed;
        into.frames.clone_from(&thread.frames);
        Ok(())
    }
}

impl Walker for Reader {
    fn walk(&mut self, threads: &mut Vec<ThreadSample>) -> Result<Look, SamplerError> {
        let now = Instant::now();
        let new_epoch = now.duration_since(self.epoch) >= EPOCH;
        if new_epoch {
            self.epoch = now;
            self.codes.next_epoch();
        }
        self.fetch()?;
        let state = self.follow()?;
        let order = std::mem::take(&mut self.scratch.order);
        let mut look = Look::default();
        let mut filled = 0;
        let mut failure = None;
        for &(index, gil) in &order {
            if filled == threads.len() {
                threads.push(ThreadSample::default());
            }
            let thread = &self.threads[index];
            let outcome = match thread.ident {
                0 => self.identify(index, state, now),
                _ => {
                    if new_epoch && !thread.named {
                        self.name(index, state, now);
                    }
                    Ok(())
                }
            }
            .and_then(|()| self.sample(index, gil, now, new_epoch, &mut threads[filled]));
            match outcome {
                Ok(()) if threads[filled].frames.is_empty() => {}
                Ok(()) => filled += 1,
                Err(error) if error.is_end() => {
                    failure = Some(error);
                    break;
                }
                Err(_) => look.failed += 1,
            }
        }
        threads.truncate(filled);
        // Threads that ended are forgotten, and the others put in the order of the list.
        if order.len() != self.threads.len()
            || order.iter().enumerate().any(|(place, &(index, _))| place != index)
        {
            let mut old: Vec<Option<Known>> =
                std::mem::take(&mut self.threads).into_iter().map(Some).collect();
            self.threads = order.iter().filter_map(|&(index, _)| old[index].take()).collect();
        }
        self.scratch.order = order;
        failure.map_or(Ok(look), Err)
    }

    fn function(&self, id: FunctionId) -> &Function {
        self.codes.function(id)
    }
}

/// Where the frames may lie next time.
fn guess(
    layout: &Layout,
    memory: &Memory,
    thread: Address,
    raw: &[RawFrame],
    places: &mut Vec<Address>,
    spans: &mut Vec<Span>,
) {
    places.clear();
    places.extend(raw.iter().map(|frame| frame.address));
    cover(places, layout.frame_length(), layout.frame_owner.is_some(), spans);
    if let FrameRoot::Indirect(offset) = layout.frame_root
        && let Ok(root) = memory.pointer(thread.plus(layout.thread_frame as u64))
    {
        spans.push(Span { start: root, length: offset + 8 });
    }
}

/// The innermost Python frame of a thread, read now.
fn innermost_frame(memory: &Memory, layout: &Layout, thread: Address) -> Result<Address, SamplerError> {
    let mut frame = memory.pointer(thread.plus(layout.thread_frame as u64))?;
    if let FrameRoot::Indirect(offset) = layout.frame_root {
        frame = memory.pointer(frame.plus(offset as u64))?;
    }
    // Frames of the interpreter itself are passed over, as everywhere.
    while let (Some(owner), false) = (layout.frame_owner, frame.is_null()) {
        let mut byte = [0];
        memory.read(frame.plus(owner as u64), &mut byte)?;
        if byte[0] < FIRST_INNER_OWNER {
            break;
        }
        frame = memory.pointer(frame.plus(layout.frame_previous as u64))?;
    }
    Ok(frame)
}

/// Follows the frames of a thread, innermost first. What the view does not hold is read; how often is the answer.
fn read_frames(
    memory: &Memory,
    layout: &Layout,
    thread: Address,
    view: View<'_>,
    raw: &mut Vec<RawFrame>,
) -> Result<usize, SamplerError> {
    const LONGEST_FRAME: usize = 256;
    raw.clear();
    let mut misses = 0;
    let mut word = |place: Address| match view.get(place, 8) {
        Some(bytes) => Ok(Address(word_at(bytes, 0))),
        None => {
            misses += 1;
            memory.pointer(place)
        }
    };
    let mut frame = word(thread.plus(layout.thread_frame as u64))?;
    if let FrameRoot::Indirect(offset) = layout.frame_root
        && !frame.is_null()
    {
        frame = word(frame.plus(offset as u64))?;
    }
    let length = layout.frame_length().min(LONGEST_FRAME);
    let mut steps = 0;
    while !frame.is_null() {
        steps += 1;
        if steps > DEEPEST {
            return Err(memory.unreadable("a stack without end"));
        }
        let mut fresh = [0; LONGEST_FRAME];
        let bytes = match view.get(frame, length) {
            Some(bytes) => bytes,
            None => {
                misses += 1;
                memory.read(frame, &mut fresh[..length])?;
                &fresh[..length]
            }
        };
        let inner = layout.frame_owner.is_some_and(|owner| bytes[owner] >= FIRST_INNER_OWNER);
        // The lowest bits of a pointer hold marks from 3.14 on.
        let code = Address(word_at(bytes, layout.frame_code) & !7);
        if !inner && !code.is_null() {
            let instruction = match layout.frame_owner {
                Some(_) => word_at(bytes, layout.frame_instruction),
                None => u64::from(half_at(bytes, layout.frame_instruction)),
            };
            raw.push(RawFrame { address: frame, code, instruction });
        }
        frame = Address(word_at(bytes, layout.frame_previous));
    }
    Ok(misses)
}

/// The operating system's number of a thread that Python knows by the address of its `struct pthread` only, as glibc lays it
/// out; 0 where it cannot be told.
fn number_of_pthread(memory: &Memory, pthread: Address) -> u32 {
    let offset = if cfg!(target_arch = "aarch64") { 0xd0 } else { 0x2d0 };
    let mut bytes = [0; 4];
    memory.read(pthread.plus(offset), &mut bytes).map_or(0, |()| u32::from_le_bytes(bytes))
}
