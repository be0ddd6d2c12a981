//! The reader: all threads of a process with their Python stacks, from outside or from a thread of its own.
//!
//! Most of a process is where it was a moment ago. So one system call fetches the thread states and those stretches of
//! memory where the frames lay last time; what has moved is then read piece by piece. Code objects are read once.
//! [`stack`] reads the frames of a thread, [`identity`] says which thread it is.

mod identity;
mod stack;
mod thread_cache;

use std::time::{Duration, Instant};

use hashbrown::HashMap;
use hotspan_store::FrameKind;

use super::code::{FunctionId, Functions};
use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::memory::{Piece, ProcessMemory};
use super::native::{NativeFrames, WantedThread};
use super::spans::{Span, View};
use super::{Frame, ThreadSample, ThreadState};
use crate::cpython::{Address, Function, Gil, Memory, Objects, RawFrame, word_at};
use crate::process_tree::ProcessNumber;
use stack::guess;
use thread_cache::ThreadCache;

/// How often code objects are compared with what was read of them.
const EPOCH: Duration = Duration::from_millis(100);
/// How long the state of a thread whose stack does not move is believed.
const STATE_BELIEVED: Duration = Duration::from_millis(50);
const MOST_THREADS: usize = 1 << 14;
const MOST_INTERPRETERS: usize = 64;
const MOST_ROOTS: usize = 512;
/// Threads whose files under `/proc` stay open between two looks.
const FILES_KEPT: usize = 128;

/// Reads one process.
#[derive(Debug)]
pub struct ProcessReader {
    memory: ProcessMemory,
    interpreter: Interpreter,
    functions: Functions,
    epoch: Instant,
    threads: Vec<ThreadCache>,
    names: HashMap<u64, String>,
    named: Option<Instant>,
    /// Small pieces that every walk needs: the heads of lists, the interpreter's lock.
    roots: Vec<Span>,
    /// How many of `pieces` are those.
    root_pieces: usize,
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    scratch: Scratch,
    native: Option<(Box<NativeFrames>, WantedFrames)>,
}

/// Which threads are shown with native frames.
#[derive(Clone, Copy, Debug)]
pub struct WantedFrames {
    /// Threads that wait, too.
    pub idle: bool,
    /// Only the thread that holds the interpreter's lock.
    pub gil_only: bool,
}

/// Memory used again and again.
#[derive(Debug, Default)]
struct Scratch {
    raw: Vec<RawFrame>,
    addresses: Vec<Address>,
    spans: Vec<Span>,
    pieces: Vec<Piece>,
    buffer: Vec<u8>,
    order: Vec<(usize, bool)>,
}

impl ProcessReader {
    /// Attaches to a process, which does not notice.
    ///
    /// # Errors
    /// When there is no such process, no Python in it, or no permission to read it.
    pub fn attach(process: ProcessNumber) -> Result<Self, SamplerError> {
        let interpreter = Interpreter::find(process)?;
        let memory = ProcessMemory { process };
        // The first read tells whether we may.
        memory.word(interpreter.runtime)?;
        Ok(Self {
            memory,
            interpreter,
            functions: Functions::default(),
            epoch: Instant::now(),
            threads: Vec::new(),
            names: HashMap::new(),
            named: None,
            roots: Vec::new(),
            root_pieces: 0,
            pieces: Vec::new(),
            buffer: Vec::new(),
            scratch: Scratch::default(),
            native: None,
        })
    }

    /// Shows native frames from now on. Threads that run are held for the moment in which they are copied.
    #[must_use]
    pub fn with_native(mut self, wanted: WantedFrames) -> Self {
        self.native = Some((Box::new(NativeFrames::of(self.memory.process)), wanted));
        self
    }

    /// The interpreter that was found.
    #[must_use]
    pub fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    pub(super) fn objects(&self) -> Objects<'_, ProcessMemory> {
        Objects { memory: &self.memory, offsets: &self.interpreter.offsets }
    }

    /// Fetches the states of all threads met before and the stretches their frames lay in, at once.
    fn fetch(&mut self) -> Result<(), SamplerError> {
        let length = self.interpreter.offsets.thread_length();
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
        let offsets = self.interpreter.offsets;
        let runtime = self.interpreter.runtime;
        let met = self.threads.len();
        self.scratch.order.clear();
        let head = Address(self.root(runtime.field(offsets.interpreters))?);
        let mut state = head;
        for _ in 0..MOST_INTERPRETERS {
            if state.is_null() {
                break;
            }
            let holder = self.gil_holder(offsets.gil, state)?;
            let mut thread = Address(self.root(state.field(offsets.interpreter_threads))?);
            while !thread.is_null() {
                if self.scratch.order.len() >= MOST_THREADS {
                    return Err(self.memory.malformed("the list of threads"));
                }
                // Threads keep their order, so the next one is mostly the one that was next before.
                let guess = self.scratch.order.len();
                let index = match self.threads[..met].get(guess) {
                    Some(candidate) if candidate.address == thread => Some(guess),
                    _ => self.threads[..met].iter().position(|candidate| candidate.address == thread),
                };
                let fetched = index.and_then(|index| {
                    let piece = self.pieces[self.threads[index].pieces.0];
                    piece.read.then(|| (index, word_at(&self.buffer, piece.at + offsets.thread_next)))
                });
                let (index, next) = match fetched {
                    Some((index, next)) => {
                        self.forget_if_replaced(index);
                        (index, next)
                    }
                    None => {
                        let next = self.memory.word(thread.field(offsets.thread_next))?;
                        self.threads.push(ThreadCache { address: thread, ..ThreadCache::default() });
                        (self.threads.len() - 1, next)
                    }
                };
                self.scratch.order.push((index, holder == thread));
                thread = Address(next);
            }
            state = Address(self.root(state.field(offsets.interpreter_next))?);
        }
        Ok(head)
    }

    /// A new thread may have got the memory of one that ended.
    fn forget_if_replaced(&mut self, index: usize) {
        let offsets = &self.interpreter.offsets;
        let thread = &mut self.threads[index];
        let at = self.pieces[thread.pieces.0].at;
        let field = |offset: usize| word_at(&self.buffer, at + offset);
        let same = thread.ident == field(offsets.thread_ident)
            && offsets.thread_number.is_none_or(|offset| thread.python_number == field(offset));
        if !same {
            let (address, pieces) = (thread.address, thread.pieces);
            self.names.remove(&thread.ident);
            *thread = ThreadCache { address, pieces, ..ThreadCache::default() };
        }
    }

    fn gil_holder(&mut self, gil: Gil, state: Address) -> Result<Address, SamplerError> {
        match gil {
            Gil::Runtime(offset) => self.root(self.interpreter.runtime.field(offset)).map(Address),
            Gil::Interpreter { lock, holder, locked, used } => {
                let lock = Address(self.root(state.field(lock))?);
                if lock.is_null() {
                    return Ok(Address(0));
                }
                if let Some(used) = used
                    && self.root(lock.field(used))? as u32 == 0
                {
                    return Ok(Address(0));
                }
                let held = self.root(lock.field(locked))? as u32 == 1;
                Ok(Address(if held { self.root(lock.field(holder))? } else { 0 }))
            }
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
        let offsets = self.interpreter.offsets;
        let root = self.frame_root(index);
        let thread = &mut self.threads[index];
        let raw = &mut self.scratch.raw;
        let changed = thread.raw != *raw;
        if changed || new_epoch {
            thread.frames.clear();
            for frame in raw.iter() {
                let (function, line) = self.functions.resolve(&self.memory, &self.interpreter, frame)?;
                thread.frames.push(Frame { function, line, address: frame.address });
            }
        }
        if changed {
            let same_addresses = thread.raw.len() == raw.len()
                && thread.raw.iter().zip(raw.iter()).all(|(old, new)| old.address == new.address);
            std::mem::swap(&mut thread.raw, raw);
            if !same_addresses {
                let addresses = &mut self.scratch.addresses;
                guess(&offsets, root, &thread.raw, addresses, &mut thread.spans);
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
        self.add_native(index, into)
    }

    /// Replaces the Python stack of a sample by the whole one, where it is wanted. A thread that did not stand still keeps
    /// what it has, and is marked.
    fn add_native(&mut self, index: usize, into: &mut ThreadSample) -> Result<(), SamplerError> {
        let Some((native, wanted)) = &mut self.native else { return Ok(()) };
        let is_wanted = (wanted.idle || !into.state.is_idle()) && (!wanted.gil_only || into.gil);
        let Some(number) = into.number.filter(|_| is_wanted && !into.frames.is_empty()) else {
            return Ok(());
        };
        let thread = WantedThread { number, state: self.threads[index].address };
        match native.stack(thread, &self.memory, &self.interpreter, &mut self.functions)? {
            Some(frames) => {
                into.frames = frames;
                into.unsteady = false;
            }
            None => into.unsteady = true,
        }
        into.changed = true;
        Ok(())
    }

    /// Reads all threads with their stacks. `threads` is filled anew; its memory is used again. How many threads could not
    /// be read, because their stacks changed too fast or were torn, is the answer.
    ///
    /// # Errors
    /// When the process has ended, or its memory could not be read this time.
    pub fn walk(&mut self, threads: &mut Vec<ThreadSample>) -> Result<u32, SamplerError> {
        let now = Instant::now();
        let new_epoch = now.duration_since(self.epoch) >= EPOCH;
        if new_epoch {
            self.epoch = now;
            self.functions.next_epoch();
        }
        if let Some((native, _)) = &mut self.native {
            native.next_walk();
        }
        self.fetch()?;
        let state = self.follow()?;
        let order = std::mem::take(&mut self.scratch.order);
        let mut failed = 0;
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
                Err(_) => failed += 1,
            }
        }
        threads.truncate(filled);
        // Threads that ended are forgotten, and the others put in the order of the list.
        if order.len() != self.threads.len()
            || order.iter().enumerate().any(|(position, &(index, _))| position != index)
        {
            let mut old: Vec<Option<ThreadCache>> =
                std::mem::take(&mut self.threads).into_iter().map(Some).collect();
            self.threads = order.iter().filter_map(|&(index, _)| old[index].take()).collect();
        }
        self.scratch.order = order;
        failure.map_or(Ok(failed), Err)
    }

    /// A function that was met.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        self.functions.get(id).0
    }

    /// Whether a function that was met is Python or native.
    #[must_use]
    pub fn kind(&self, id: FunctionId) -> FrameKind {
        self.functions.get(id).1
    }
}
