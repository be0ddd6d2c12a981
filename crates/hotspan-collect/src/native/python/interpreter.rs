//! Finding the interpreter in this process, and its threads. Only exported functions that read one variable are called.

use std::ffi::{CStr, c_char, c_void};

use crate::cpython::{Address, Gil, Memory, Offsets};
use crate::interpreter::symbol;
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
    this_thread: Getter,
    current_thread: Getter,
    main: Address,
    /// Where the C library keeps the system's number of a thread, relative to its `pthread_t`.
    number_in_pthread: Option<usize>,
}

/// A function that takes nothing and returns a pointer.
type Getter = extern "C" fn() -> *const c_void;

/// # Safety
/// The function of that name is a [`Getter`].
unsafe fn getter(name: &CStr) -> Option<Getter> {
    // SAFETY: the caller says so.
    symbol(name).map(|found| unsafe { std::mem::transmute::<*mut c_void, Getter>(found) })
}

impl Interpreter {
    /// The CPython in this process: `Ok(None)` when there is none, an error with its version when it is not supported.
    pub(crate) fn find() -> Result<Option<Self>, String> {
        // SAFETY: it returns a text that is never freed.
        let Some(version) = (unsafe { getter(c"Py_GetVersion") }) else { return Ok(None) };
        // SAFETY: `Py_GetVersion` returns a text with an end, in a static buffer that the interpreter never frees.
        let version = unsafe { CStr::from_ptr(version().cast::<c_char>()) }.to_string_lossy();
        let short = version.split_whitespace().next().unwrap_or_default();
        // Debug builds have other structures.
        let unusual = symbol(c"_Py_NegativeRefcount").is_some();
        let minor = short.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse().ok());
        let found = minor.filter(|_| !unusual).and_then(Self::of_version);
        found.filter(Self::finds_this_thread).map(Some).ok_or_else(|| short.to_owned())
    }

    fn of_version(minor: u8) -> Option<Self> {
        let runtime = Address(symbol(c"_PyRuntime")? as u64);
        // SAFETY: those are the signatures of these functions in all versions.
        let (main, this_thread, current_thread) = unsafe {
            (
                getter(c"PyInterpreterState_Main")?,
                getter(c"PyGILState_GetThisThreadState")?,
                getter(c"PyThreadState_GetUnchecked").or_else(|| getter(c"_PyThreadState_UncheckedGet"))?,
            )
        };
        let found = Self {
            offsets: Offsets::of(minor, runtime, &OwnMemory).ok()??,
            code_type: Address(symbol(c"PyCode_Type")? as u64),
            evaluation: symbol(c"_PyEval_EvalFrameDefault")? as usize,
            this_thread,
            current_thread,
            main: Address(main() as u64),
            number_in_pthread: number_in_pthread(),
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
        (self.current_thread)() as u64 == thread.0 && self.uses_gil()
    }

    /// Whether the interpreter uses its lock: a free-threaded build begins to when an extension asks for it.
    fn uses_gil(&self) -> bool {
        let Gil::Interpreter { lock, used: Some(used), .. } = self.offsets.gil else { return true };
        let lock = OwnMemory.pointer(self.main.field(lock));
        lock.and_then(|lock| OwnMemory.word(lock.field(used))).is_ok_and(|used| used as u32 != 0)
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
