//! Finding the interpreter in this process, and its threads. Only exported functions that read one variable are called.

use std::ffi::{CStr, c_char, c_void};

use super::layout::Layout;
use crate::native::memory;

/// The interpreter of this process.
#[derive(Debug)]
pub(crate) struct Interpreter {
    pub(crate) layout: Layout,
    /// The type that every code object has.
    pub(crate) code_type: usize,
    /// Where the evaluation loop is.
    pub(crate) evaluation: usize,
    this_thread: extern "C" fn() -> *const c_void,
    current_thread: extern "C" fn() -> *const c_void,
    main: *const c_void,
    thread_head: extern "C" fn(*const c_void) -> *const c_void,
    /// Where the C library keeps the system's number of a thread, relative to its `pthread_t`.
    number_in_pthread: Option<usize>,
}

// SAFETY: the pointers are those of the runtime, read only as data, and the functions may be called from any thread.
unsafe impl Send for Interpreter {}
// SAFETY: as above.
unsafe impl Sync for Interpreter {}

fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a valid name; asks the loader only.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

impl Interpreter {
    /// The CPython in this process: `Ok(None)` when there is none, an error with its version when it is not known here.
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
        let layout = minor.and_then(Layout::of).filter(|_| short.starts_with("3.") && !unusual);
        let found = layout.and_then(Self::with);
        let Some(found) = found else { return Err(short) };
        if found.knows_this_thread() { Ok(Some(found)) } else { Err(short) }
    }

    fn with(layout: Layout) -> Option<Self> {
        let main = symbol(c"PyInterpreterState_Main")?;
        let this_thread = symbol(c"PyGILState_GetThisThreadState")?;
        let current_thread =
            symbol(c"PyThreadState_GetUnchecked").or_else(|| symbol(c"_PyThreadState_UncheckedGet"))?;
        let thread_head = symbol(c"PyInterpreterState_ThreadHead")?;
        // SAFETY: those are the signatures of the functions, the same in all versions.
        let found = unsafe {
            let main: extern "C" fn() -> *const c_void = std::mem::transmute(main);
            Self {
                layout,
                code_type: symbol(c"PyCode_Type")? as usize,
                evaluation: symbol(c"_PyEval_EvalFrameDefault")? as usize,
                this_thread: std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_void>(
                    this_thread,
                ),
                current_thread: std::mem::transmute::<*mut c_void, extern "C" fn() -> *const c_void>(
                    current_thread,
                ),
                main: main(),
                thread_head: std::mem::transmute::<*mut c_void, extern "C" fn(*const c_void) -> *const c_void>(
                    thread_head,
                ),
                number_in_pthread: number_in_pthread(),
            }
        };
        (!found.main.is_null()).then_some(found)
    }

    /// Whether what is read agrees with what this thread knows about itself.
    fn knows_this_thread(&self) -> bool {
        // SAFETY: takes nothing.
        let number = unsafe { libc::gettid() };
        let threads = self.threads();
        self.this_thread()
            .is_none_or(|this| threads.iter().any(|&(known, state)| known == number && state == this))
    }

    /// The thread state of the calling thread, whether it holds the interpreter's lock or not. Safe in a handler: it
    /// reads one thread-local value.
    pub(crate) fn this_thread(&self) -> Option<usize> {
        let state = (self.this_thread)();
        (!state.is_null()).then_some(state as usize)
    }

    /// Whether the calling thread, of that state, holds the interpreter's lock. Safe in a handler.
    pub(crate) fn holds_gil(&self, thread: usize) -> bool {
        (self.current_thread)() as usize == thread
    }

    /// The threads of the main interpreter: the system's number and the thread state. Threads may come and go
    /// meanwhile; a list that leads nowhere ends there.
    pub(crate) fn threads(&self) -> Vec<(i32, usize)> {
        let mut found = Vec::new();
        let head = match self.layout.interpreter_threads {
            Some(offset) => memory::word(self.main as usize + offset).unwrap_or(0),
            None => (self.thread_head)(self.main) as usize,
        };
        let mut next = head;
        while next > 4096 && found.len() < 65_536 {
            let number = match self.layout.thread_native {
                Some(offset) => memory::word(next + offset),
                None => memory::word(next + self.layout.thread_pthread)
                    .zip(self.number_in_pthread)
                    .and_then(|(pthread, offset)| memory::word(pthread.checked_add(offset)?))
                    .map(|number| number & 0xffff_ffff),
            };
            let Some(number) = number else { break };
            found.push((number as i32, next));
            let Some(following) = memory::word(next + self.layout.thread_next) else { break };
            next = following;
        }
        found
    }
}

/// The C library keeps a thread's number somewhere in the block that `pthread_t` points to: found by looking for this
/// thread's own.
fn number_in_pthread() -> Option<usize> {
    // SAFETY: takes nothing.
    let (block, number) = unsafe { (libc::pthread_self() as usize, libc::gettid()) };
    let bytes = memory::bytes(block, 1024)?;
    let is_it = |four: &[u8]| four.try_into().is_ok_and(|four| i32::from_ne_bytes(four) == number);
    bytes.chunks_exact(4).position(is_it).map(|index| index * 4)
}
