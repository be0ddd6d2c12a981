//! A core file: where the threads of a Python program were when it died.
//!
//! [`memory`] reads the file as the memory of the program, and takes what the kernel left out from the files that were mapped.

mod memory;

use std::path::Path;

use super::code::{FunctionId, Functions};
use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::locals::{Variable, of_frame_in};
use super::{Frame, ThreadNumber, ThreadSample};
use crate::cpython::{Address, Function, Gil, Memory, Objects, thread_names, walk};
use crate::process_tree::ProcessNumber;
use memory::CoreMemory;

/// A damaged file may have lists without end.
const MOST_THREADS: usize = 1 << 14;
const MOST_INTERPRETERS: usize = 64;

/// A core file that was read.
#[derive(Debug)]
pub struct CoreFile {
    memory: CoreMemory,
    interpreter: Interpreter,
    functions: Functions,
    threads: Vec<ThreadSample>,
}

impl CoreFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is no core file, or that of a program without a Python that hotspan knows.
    pub fn open(path: &Path) -> Result<Self, SamplerError> {
        let memory = CoreMemory::open(path)?;
        let here = |file: &str| Path::new(file).to_owned();
        let interpreter = Interpreter::search(memory.process, &memory, &memory.loaded(), here)?;
        let mut core = Self { memory, interpreter, functions: Functions::default(), threads: Vec::new() };
        core.read()?;
        Ok(core)
    }

    /// The process that died.
    #[must_use]
    pub fn process(&self) -> ProcessNumber {
        self.memory.process
    }

    /// The beginning of its command line.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.memory.command
    }

    /// The interpreter that was found.
    #[must_use]
    pub fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    /// A function that was met.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        self.functions.get(id).0
    }

    /// Where its threads were. What they waited for is not in the file.
    #[must_use]
    pub fn threads(&self) -> &[ThreadSample] {
        &self.threads
    }

    /// The local variables of a frame, as those of a running program.
    ///
    /// # Errors
    /// When they are not in the file.
    pub fn variables(&self, frame: &Frame, detail: u8) -> Result<Vec<Variable>, SamplerError> {
        of_frame_in(&self.objects(), frame, detail)
    }

    fn objects(&self) -> Objects<'_, CoreMemory> {
        Objects { memory: &self.memory, offsets: &self.interpreter.offsets }
    }

    fn read(&mut self) -> Result<(), SamplerError> {
        let offsets = self.interpreter.offsets;
        let mut state = self.memory.pointer(self.interpreter.runtime.field(offsets.interpreters))?;
        for _ in 0..MOST_INTERPRETERS {
            if state.is_null() {
                break;
            }
            let names = thread_names(&self.objects(), state).unwrap_or_default();
            let holder = self.gil_holder(state).unwrap_or_default();
            let mut thread = self.memory.pointer(state.field(offsets.interpreter_threads))?;
            for _ in 0..MOST_THREADS {
                if thread.is_null() {
                    break;
                }
                let ident = self.memory.word(thread.field(offsets.thread_ident))?;
                let number = offsets.thread_number.map(|offset| self.memory.word(thread.field(offset)));
                let number = number.transpose()?.and_then(|number| u32::try_from(number).ok());
                let frames = self.frames(thread)?;
                if !frames.is_empty() {
                    self.threads.push(ThreadSample {
                        number: number.map(ThreadNumber),
                        ident,
                        name: names.get(&ident).cloned().unwrap_or_default(),
                        gil: holder == thread,
                        frames,
                        ..ThreadSample::default()
                    });
                }
                thread = self.memory.pointer(thread.field(offsets.thread_next))?;
            }
            state = self.memory.pointer(state.field(offsets.interpreter_next))?;
        }
        Ok(())
    }

    fn frames(&mut self, thread: Address) -> Result<Vec<Frame>, SamplerError> {
        let mut raw = Vec::new();
        walk(&self.interpreter.offsets, &self.memory, thread, |frame| {
            if !frame.code.is_null() {
                raw.push(frame);
            }
            true
        })?;
        let resolve = |frame| {
            let (function, line) = self.functions.resolve(&self.memory, &self.interpreter, frame)?;
            Ok(Frame { function, line, address: frame.address })
        };
        raw.iter().map(resolve).collect()
    }

    fn gil_holder(&self, state: Address) -> Result<Address, SamplerError> {
        let (memory, runtime) = (&self.memory, self.interpreter.runtime);
        match self.interpreter.offsets.gil {
            Gil::Runtime(offset) => memory.pointer(runtime.field(offset)),
            Gil::Interpreter { lock, holder, locked, .. } => {
                let lock = memory.pointer(state.field(lock))?;
                let is_held = memory.word(lock.field(locked))? as u32 == 1;
                if is_held { memory.pointer(lock.field(holder)) } else { Ok(Address(0)) }
            }
        }
    }
}
