//! From what was copied to stacks with names: native frames, Python frames, both merged. What was resolved is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hashbrown::HashMap;

use super::handler;
use super::memory::Subject;
use super::merge::{Role, merge};
use super::python::{CodeCopies, Codes, Interpreter, MemoryWindow};
use super::rows::{Frame, FrameNumber, Rows, StackNumber};
use super::slots::{Copied, PYTHON_FRAMES, Registers};
use super::unwind::{NativeFunction, NativeStack, Unwinder};
use crate::cpython::{Address, RawFrame};
use crate::syscalls::Blocked;

/// Turns samples into stacks. Belongs to the collector thread.
pub(crate) struct Resolver {
    native: bool,
    names_later: bool,
    unwinder: Option<Unwinder>,
    interpreter: Option<&'static Interpreter>,
    codes: Codes,
    /// Native frames by address, while the list of libraries stays as it is.
    functions: HashMap<u64, (FrameNumber, Role)>,
    changes: u64,
    /// Python's threads by number, as last listed.
    python_threads: HashMap<i32, Address>,
    listed: bool,
    entries: Vec<RawFrame>,
    page: Box<[u8; 4096]>,
    pub(crate) losses: StackLosses,
}

/// What was lost of stacks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackLosses {
    /// Native stacks that could not be followed to their beginning.
    pub(crate) broken: u64,
    /// Python frames whose code was gone.
    pub(crate) unreadable: u64,
}

impl Resolver {
    pub(crate) fn new(native: bool, names_later: bool) -> Self {
        // SAFETY: null, or a leaked box.
        let interpreter = unsafe { handler::INTERPRETER.load(Ordering::Acquire).as_ref() };
        Self {
            native,
            names_later,
            unwinder: native.then(|| Unwinder::new(Subject::Own)),
            interpreter,
            codes: Codes::new(),
            functions: HashMap::new(),
            changes: 0,
            python_threads: HashMap::new(),
            listed: false,
            entries: vec![RawFrame::default(); PYTHON_FRAMES],
            page: Box::new([0; 4096]),
            losses: StackLosses::default(),
        }
    }

    /// Begins a batch: what may have changed is looked at again.
    pub(crate) fn next_batch(&mut self) {
        self.codes.next_batch();
        self.listed = false;
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.next_batch();
        }
    }

    /// The stack of a running thread.
    pub(crate) fn running(&mut self, rows: &mut Rows, slot: &Copied) -> Option<StackNumber> {
        let entries = slot.python.get(..slot.python_count).unwrap_or_default();
        let stack = slot.stack.get(..slot.stack_length).unwrap_or_default();
        self.stack(rows, &slot.registers, stack, (entries, Some(&slot.code)), None)
    }

    /// The stack of a waiting thread, which stays as it is while it is read.
    pub(crate) fn waiting(
        &mut self,
        rows: &mut Rows,
        python: Option<Address>,
        blocked: &Blocked,
        call: Option<&'static str>,
        buffer: &mut [u8],
    ) -> Option<StackNumber> {
        let registers = Registers {
            instruction: blocked.instruction,
            stack: blocked.stack,
            // Not told by the system; found again where a function has saved it.
            frame: 0,
            link: 0,
        };
        let length = if self.native { Subject::Own.copy(blocked.stack, buffer) } else { 0 };
        let stack = buffer.get(..length).unwrap_or_default();
        let entries = self.walk(python, stack, blocked.stack);
        let call = call.filter(|_| self.native);
        let found = self.stack(rows, &registers, stack, (&entries, None), call);
        self.entries = entries;
        found
    }

    /// The Python stack of a thread that runs and is not interrupted: what is read may be torn, so only frames that
    /// are whole count. Without any, `instead` says why.
    pub(crate) fn outside(
        &mut self,
        rows: &mut Rows,
        python: Option<Address>,
        instead: &str,
    ) -> Option<StackNumber> {
        let entries = self.walk(python, &[], 0);
        let groups = self.python(rows, &entries, None);
        self.entries = entries;
        let mut frames: Vec<FrameNumber> = groups.into_iter().flatten().collect();
        if frames.is_empty() {
            frames.push(note(rows, instead));
        }
        rows.stack(&frames)
    }

    fn walk(&mut self, python: Option<Address>, stack: &[u8], address: u64) -> Vec<RawFrame> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.resize(PYTHON_FRAMES, RawFrame::default());
        let count = match (self.interpreter, python) {
            (Some(interpreter), Some(thread)) => {
                let window = MemoryWindow::new(stack, address, &mut self.page);
                window.copy_frames(&interpreter.offsets, thread, &mut entries)
            }
            _ => 0,
        };
        entries.truncate(count);
        entries
    }

    /// Threads have come: Python's list of them is read again.
    pub(crate) fn list_again(&mut self) {
        self.listed = false;
    }

    /// A stack of one frame that says why there is none.
    pub(crate) fn note(&self, rows: &mut Rows, text: &str) -> Option<StackNumber> {
        let frame = note(rows, text);
        rows.stack(&[frame])
    }

    /// Where Python keeps the state of a thread; `known` is where it was.
    pub(crate) fn python_thread(&mut self, number: i32, known: Option<Address>) -> Option<Address> {
        let interpreter = self.interpreter?;
        if known.is_some_and(|state| interpreter.is_thread(state, number)) {
            return known;
        }
        if !self.listed {
            self.listed = true;
            self.python_threads = interpreter.threads().into_iter().collect();
        }
        self.python_threads.get(&number).copied()
    }

    fn stack(
        &mut self,
        rows: &mut Rows,
        registers: &Registers,
        stack: &[u8],
        (entries, code): (&[RawFrame], Option<&CodeCopies>),
        call: Option<&'static str>,
    ) -> Option<StackNumber> {
        let groups = self.python(rows, entries, code);
        let mut native = Vec::new();
        let mut is_whole = false;
        if self.native {
            let followed = self.follow(registers, stack);
            is_whole = followed.is_whole;
            self.losses.broken += u64::from(!is_whole);
            native.extend(call.map(|call| (kernel(rows, call), Role::Plain)));
            for address in followed.addresses {
                native.extend(self.function(rows, address));
            }
        }
        let mut merged = merge(&native, is_whole, &groups);
        if merged.is_empty() {
            merged.push(note(rows, "[native code]"));
        }
        rows.stack(&merged)
    }

    fn follow(&mut self, registers: &Registers, stack: &[u8]) -> NativeStack {
        let Some(unwinder) = &mut self.unwinder else { return NativeStack::default() };
        let followed = unwinder.follow(registers, stack);
        if unwinder.changes != self.changes {
            self.changes = unwinder.changes;
            self.functions.clear();
        }
        followed
    }

    fn function(&mut self, rows: &mut Rows, address: u64) -> Option<(FrameNumber, Role)> {
        if let Some(&known) = self.functions.get(&address) {
            return Some(known);
        }
        let unwinder = self.unwinder.as_ref()?;
        let is_interpreter = self
            .interpreter
            .is_some_and(|interpreter| unwinder.is_same_library(interpreter.evaluation as u64, address));
        let NativeFunction { name, library, role } =
            unwinder.function(address, is_interpreter, self.names_later);
        let frame = Frame { name: name.into(), file: library, line: 0, first_line: 0, is_python: false };
        let known = (rows.frame(frame), role);
        self.functions.insert(address, known);
        Some(known)
    }

    /// Python frames in groups, one for each call of the evaluation loop, innermost first.
    fn python(
        &mut self,
        rows: &mut Rows,
        entries: &[RawFrame],
        code: Option<&CodeCopies>,
    ) -> Vec<Vec<FrameNumber>> {
        let Some(interpreter) = self.interpreter else { return Vec::new() };
        let mut groups = Vec::new();
        let mut group = Vec::new();
        for entry in entries {
            if !entry.code.is_null() {
                match self.codes.frame(interpreter, entry, code) {
                    Some(frame) => group.push(rows.frame(frame)),
                    None => self.losses.unreadable += 1,
                }
            }
            if entry.is_entry {
                groups.push(std::mem::take(&mut group));
            }
        }
        if !group.is_empty() {
            groups.push(group);
        }
        groups
    }
}

fn kernel(rows: &mut Rows, call: &'static str) -> FrameNumber {
    let (name, file) = (Arc::from(call), Arc::from("[kernel]"));
    rows.frame(Frame { name, file, line: 0, first_line: 0, is_python: false })
}

/// A frame that says why there is none.
fn note(rows: &mut Rows, text: &str) -> FrameNumber {
    rows.frame(Frame { name: text.into(), file: "".into(), line: 0, first_line: 0, is_python: false })
}
