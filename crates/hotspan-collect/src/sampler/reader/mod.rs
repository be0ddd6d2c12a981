//! The reader: all threads of a process with their Python stacks, from outside or from a thread of its own.
//!
//! Most of a process is where it was a moment ago. So one system call fetches the thread states and those stretches of
//! memory where the frames lay last time; what has moved is then read piece by piece. Code objects are read once.
//! [`frames`] follows the frames of a thread, [`identity`] says which thread it is.

mod frames;
mod identity;
mod known;

use std::time::{Duration, Instant};

use hashbrown::HashMap;

use super::code::{Codes, Function, FunctionId};
use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::layout::GilPlace;
use super::memory::{Address, Memory, Piece, word_at};
use super::spans::{Span, View};
use super::{Frame, Look, ThreadSample, ThreadState, Walker};
use crate::process_tree::ProcessNumber;
use frames::{RawFrame, guess, innermost_frame, read_frames};
use known::Known;

/// How often code objects are compared with what was read of them.
const EPOCH: Duration = Duration::from_millis(100);
/// How long the state of a thread whose stack does not move is believed.
const STATE_BELIEVED: Duration = Duration::from_millis(50);
const MOST_THREADS: usize = 1 << 14;
const MOST_INTERPRETERS: usize = 64;
const MOST_ROOTS: usize = 512;
const ATTEMPTS: usize = 3;
/// Threads whose files under `/proc` stay open between two looks.
const FILES_KEPT: usize = 128;

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

    /// Where a thread keeps the pointer to its innermost frame, as it was fetched; null where it was not.
    fn frame_root(&self, index: usize) -> Address {
        let (first, count) = self.threads[index].pieces;
        let piece = self.pieces.get(first).filter(|piece| count > 0 && piece.read);
        let at = |piece: &Piece| piece.at + self.interpreter.layout.thread_frame;
        piece.map_or(Address(0), |piece| Address(word_at(&self.buffer, at(piece))))
    }

    /// Reads the stack of one thread. Whether it stood still meanwhile is the answer.
    fn read_stack(&mut self, index: usize) -> Result<bool, SamplerError> {
        let layout = self.interpreter.layout;
        let (first, count) = self.threads[index].pieces;
        let address = self.threads[index].address;
        let root = self.frame_root(index);
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
            guess(&layout, root, raw, places, spans);
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
        let root = self.frame_root(index);
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
                guess(&layout, root, &thread.raw, places, &mut thread.spans);
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
