//! Finding the interpreter in this process, and its threads. Only exported functions that read one variable are called.

use std::ffi::{CStr, c_char, c_void};

use crate::cpython::{Address, Memory, Offsets};
use crate::native::memory::OwnMemory;

const MOST_THREADS: usize = 1 << 16;

/// The interpreter of this process.
#[derive(Debug)]
pub(crate) struct Interpreter {
    pub(crate) offsets: Offsets,
    /// The type that every code object has.
    pub(crate) code_type: Address,
    /// Where the evaluation loop is.
    pub(crate) evaluation: usize,
    this_thread: extern "C" fn() -> *const c_void,
    current_thread: extern "C" fn() -> *const c_void,
    main: Address,
    /// Where the C library keeps the system's number of a thread, relative to its `pthread_t`.
    number_in_pthread: Option<usize>,
}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a valid name; asks the loader only.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Interpreter {
    /// The CPython in this process: `Ok(None)` when there is none, an error with its version when it has no table.
    pub(crate) fn find() -> Result<Option<Self>, String> {
        let Some(version) = symbol(c"Py_GetVersion") else { return Ok(None) };
        // SAFETY: that is the signature of the function, which returns a text that is never freed.
        let version = unsafe {
            let version: extern "C" fn() -> *const c_char = std::mem::transmute(version);
            CStr::from_ptr(version())
        };
        let version = version.to_string_lossy();
        let short = version.split_whitespace().next().unwrap_or_default().to_owned();
        let minor = short.split('.').nth(1).and_then(|minor| minor.parse().ok());
        let unusual = version.contains("free-threading") || symbol(c"_Py_NegativeRefcount").is_some();
        let runtime = Address(symbol(c"_PyRuntime").map_or(0, |runtime| runtime as u64));
        let offsets = minor.filter(|_| short.starts_with("3.") && !unusual);
        let offsets = offsets.and_then(|minor| Offsets::of(minor, runtime, &OwnMemory).ok().flatten());
        let found = offsets.and_then(Self::with);
        let Some(found) = found else { return Err(short) };
        if found.finds_this_thread() { Ok(Some(found)) } else { Err(short) }
    }

    fn with(offsets: Offsets) -> Option<Self> {
        let main = symbol(c"PyInterpreterState_Main")?;
        let this_thread = symbol(c"PyGILState_GetThisThreadState")?;
        let current_thread =
            symbol(c"PyThreadState_GetUnchecked").or_else(|| symbol(c"_PyThreadState_UncheckedGet"))?;
        // SAFETY: those are the signatures of the functions, the same in all versions.
        let found = unsafe {
            let main: extern "C" fn() -> *const c_void = std::mem::transmute(main);
            Self {
                offsets,
                code_type: Address(symbol(c"PyCode_Type")? as u64),
                evaluation: symbol(c"_PyEval_EvalFrameDefault")? as usize,
                this_thread: std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_void>(
                    this_thread,
                ),
                current_thread: std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_void>(
                    current_thread,
                ),
                main: Address(main() as u64),
                number_in_pthread: number_in_pthread(),
            }
        };
        (!found.main.is_null()).then_some(found)
    }

    /// Whether what is read agrees with what this thread is.
    fn finds_this_thread(&self) -> bool {
        // SAFETY: takes nothing.
        let number = unsafe { libc::gettid() };
        self.this_thread().is_none_or(|this| self.threads().contains(&(number, this)))
    }

    /// The thread state of the calling thread, whether it holds the interpreter's lock or not. Safe in a handler: it
    /// reads one thread-local value.
    pub(crate) fn this_thread(&self) -> Option<Address> {
        let state = (self.this_thread)();
        (!state.is_null()).then_some(Address(state as u64))
    }

    /// Whether the calling thread, of that state, holds the interpreter's lock. Safe in a handler.
    pub(crate) fn holds_gil(&self, thread: Address) -> bool {
        (self.current_thread)() as u64 == thread.0
    }

    /// The threads of the main interpreter: the system's number and the thread state. Threads may come and go
    /// meanwhile; a list that leads nowhere ends there.
    pub(crate) fn threads(&self) -> Vec<(i32, Address)> {
        let mut found = Vec::new();
        let mut next = OwnMemory.pointer(self.main.field(self.offsets.interpreter_threads));
        while let Ok(thread) = next
            && !thread.is_null()
            && found.len() < MOST_THREADS
            && let Some(number) = self.number_of(thread)
        {
            found.push((number, thread));
            next = OwnMemory.pointer(thread.field(self.offsets.thread_next));
        }
        found
    }

    /// The system's number of a thread.
    fn number_of(&self, thread: Address) -> Option<i32> {
        let field = match self.offsets.thread_number {
            Some(offset) => thread.field(offset),
            None => OwnMemory
                .pointer(thread.field(self.offsets.thread_ident))
                .ok()?
                .field(self.number_in_pthread?),
        };
        OwnMemory.word(field).ok().map(|number| number as i32)
    }

    /// Whether a thread state is still that of the thread with this number.
    pub(crate) fn is_thread(&self, thread: Address, number: i32) -> bool {
        self.offsets.thread_number.is_some() && self.number_of(thread) == Some(number)
    }
}

/// The C library keeps a thread's number somewhere in the block that `pthread_t` points to: found by looking for this
/// thread's own.
fn number_in_pthread() -> Option<usize> {
    // SAFETY: takes nothing.
    let (block, number) = unsafe { (Address(libc::pthread_self() as u64), libc::gettid()) };
    let bytes = OwnMemory.bytes(block, 1024).ok()?;
    let is_it = |four: &[u8]| four.try_into().is_ok_and(|four| i32::from_ne_bytes(four) == number);
    bytes.chunks_exact(4).position(is_it).map(|index| index * 4)
}
