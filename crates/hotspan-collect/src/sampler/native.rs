//! Native frames of another process, merged with its Python frames.
//!
//! A thread that waits stands still by itself, and the kernel tells where. One that runs is [`Stopped`] while its
//! registers, its stack and its Python frames are copied; unwinding is done on the copy, after it has gone on.

use hashbrown::HashMap;

use super::Frame;
use super::code::{FunctionId, Functions};
use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::memory::ProcessMemory;
use super::state::ThreadNumber;
use super::stopped::{Late, Stopped};
use crate::cpython::{Address, RawFrame, walk};
use crate::native::{NativeFunction, Registers, Role, STACK_BYTES, Subject, Unwinder, merge};
use crate::process_tree::ProcessNumber;
use crate::syscalls::Blocked;

/// Finds native frames. Its threads are stopped and let go by the thread that calls.
pub(super) struct NativeFrames {
    subject: Subject,
    unwinder: Unwinder,
    /// By address, while the list of libraries stays as it is.
    functions: HashMap<u64, (Frame, Role)>,
    changes: u64,
    stack: Vec<u8>,
    raw: Vec<RawFrame>,
    late: Late,
}

impl std::fmt::Debug for NativeFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeFrames").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// The thread whose frames are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedThread {
    pub(super) number: ThreadNumber,
    /// Python's state of it.
    pub(super) state: Address,
}

/// A thread at one moment; its stack and its Python frames are copied.
struct Moment {
    registers: Registers,
    /// How much there is of the stack.
    length: usize,
    /// The system call that it waits in.
    call: Option<&'static str>,
}

impl NativeFrames {
    pub(super) fn of(process: ProcessNumber) -> Self {
        let subject = Subject::Other(process);
        Self {
            subject,
            unwinder: Unwinder::new(subject),
            functions: HashMap::new(),
            changes: 0,
            stack: vec![0; STACK_BYTES],
            raw: Vec::new(),
            late: Late::default(),
        }
    }

    /// Begins a walk over all threads.
    pub(super) fn next_walk(&mut self) {
        self.unwinder.next_batch();
        self.late.let_go();
    }

    /// The whole stack of a thread, innermost frame first. None where the thread could not be looked at in a moment when
    /// it stood still.
    pub(super) fn stack(
        &mut self,
        thread: WantedThread,
        memory: &ProcessMemory,
        interpreter: &Interpreter,
        functions: &mut Functions,
    ) -> Result<Option<Vec<Frame>>, SamplerError> {
        let Some(Moment { registers, length, call }) = self.copy(thread, memory, interpreter)? else {
            return Ok(None);
        };
        let followed = self.unwinder.follow(&registers, self.stack.get(..length).unwrap_or_default());
        if self.unwinder.changes != self.changes {
            self.changes = self.unwinder.changes;
            self.functions.clear();
        }
        let mut native = Vec::with_capacity(followed.addresses.len() + 1);
        native.extend(call.map(|call| {
            let function = functions.native(call.to_owned(), "[kernel]");
            (frame(function), Role::Plain)
        }));
        for address in followed.addresses {
            native.push(self.function(address, interpreter, functions));
        }
        let groups = self.python(memory, interpreter, functions)?;
        Ok(Some(merge(&native, followed.is_whole, &groups)))
    }

    /// Copies registers, stack and Python frames at one moment.
    fn copy(
        &mut self,
        thread: WantedThread,
        memory: &ProcessMemory,
        interpreter: &Interpreter,
    ) -> Result<Option<Moment>, SamplerError> {
        let file = format!("/proc/{}/task/{}/syscall", memory.process, thread.number);
        let look = || Blocked::parse(&std::fs::read_to_string(&file).unwrap_or_default());
        let blocked = look();
        let (held, registers, call) = match blocked {
            Some(blocked) => {
                // The kernel does not tell the frame pointer; it is found where a function has saved it.
                let registers = Registers {
                    instruction: blocked.instruction,
                    stack: blocked.stack,
                    ..Registers::default()
                };
                (None, registers, blocked.reason().1)
            }
            None => {
                let Some(stopped) = Stopped::stop(thread.number, &mut self.late) else { return Ok(None) };
                let Some(registers) = stopped.registers() else { return Ok(None) };
                (Some(stopped), registers, None)
            }
        };
        let length = self.subject.copy(registers.stack, &mut self.stack);
        self.raw.clear();
        let read = walk(&interpreter.offsets, memory, thread.state, |frame| {
            self.raw.push(frame);
            true
        });
        let stood_still = held.is_some() || look() == blocked;
        drop(held);
        read.map(|()| stood_still.then_some(Moment { registers, length, call }))
    }

    fn function(
        &mut self,
        address: u64,
        interpreter: &Interpreter,
        functions: &mut Functions,
    ) -> (Frame, Role) {
        *self.functions.entry(address).or_insert_with(|| {
            let is_interpreter = self.unwinder.is_in_library(address, &interpreter.file);
            let NativeFunction { name, library, role } =
                self.unwinder.function(address, is_interpreter, false);
            (frame(functions.native(name, &library)), role)
        })
    }

    /// Python frames in groups, one for each call of the evaluation loop, innermost first.
    fn python(
        &self,
        memory: &ProcessMemory,
        interpreter: &Interpreter,
        functions: &mut Functions,
    ) -> Result<Vec<Vec<Frame>>, SamplerError> {
        let mut groups = Vec::new();
        let mut group = Vec::new();
        for raw in &self.raw {
            if !raw.code.is_null() {
                let (function, line) = functions.resolve(memory, interpreter, raw)?;
                group.push(Frame { function, line, address: raw.address });
            }
            if raw.is_entry {
                groups.push(std::mem::take(&mut group));
            }
        }
        if !group.is_empty() {
            groups.push(group);
        }
        Ok(groups)
    }
}

fn frame(function: FunctionId) -> Frame {
    Frame { function, line: 0, address: Address(0) }
}
