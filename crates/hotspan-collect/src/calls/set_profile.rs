//! Events of `PyEval_SetProfile`, before Python 3.12: set on each thread.
//!
//! Threads that run when tracing begins are reached through the interpreter's list of threads. Later ones are put in that
//! list by the thread that starts them, which has the GIL until the function that does it has returned: at that event
//! they are set before they run anything. Threads whose starter is not traced (a thread of C) come through
//! `threading.setprofile`. A thread of C that enters Python is seen when the next thread is started.

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::calls::CallsError;
use crate::calls::events::{Callee, called_from, entered, left, left_code};
use crate::interpreter::{Interpreter, MethodDefinition, Owned, ProfileFunction, Ptr};
use crate::locks::lock_unless_forked as lock;

const CALL: c_int = 0;
const RETURN: c_int = 3;
const C_CALL: c_int = 4;
const C_EXCEPTION: c_int = 5;
const C_RETURN: c_int = 6;

/// Set on every new thread by `threading`; its first event replaces it by [`on_event`].
static HOOK: MethodDefinition = MethodDefinition::fast(c"hotspan_hook", hook);

/// The definitions of the functions that start threads.
static STARTERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The number of the newest thread that was set.
static NEWEST: AtomicU64 = AtomicU64::new(0);

/// Whether functions of C are wanted.
static BUILTINS: AtomicBool = AtomicBool::new(true);

/// What there was before: our references.
struct Previous {
    /// What `threading` set on new threads.
    of_threads: Ptr,
    /// The profile function of the thread that began to trace, and that thread.
    of_this: Ptr,
    thread: u64,
}
// SAFETY: its objects are used by `start` and `stop` only, whose callers hold the GIL, on whichever thread.
unsafe impl Send for Previous {}

static PREVIOUS: Mutex<Option<Previous>> = Mutex::new(None);

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn start(python: &'static Interpreter, builtins: bool) -> Result<(), CallsError> {
    BUILTINS.store(builtins, Ordering::Relaxed);
    // SAFETY: the caller holds the GIL; what `attribute` returns is owned until its definition is read.
    unsafe {
        if python.set_profile.is_none() {
            return Err(CallsError::NoEvents);
        }
        set_on_new_threads(python);
        for (name, starter) in [c"start_new_thread", c"start_new"].into_iter().zip(&STARTERS) {
            let function =
                attribute(python, c"_thread", name).filter(|function| python.is_c_function(function.0));
            starter.store(function.map_or(0, |function| python.definition(function.0)), Ordering::Relaxed);
        }
        NEWEST.store(0, Ordering::Relaxed);
        set_on_all(python, Some(on_event));
    }
    Ok(())
}

/// Lets `sys.getprofile()` return an object on this thread, which keeps a reference to it until the end.
///
/// # Safety
/// The GIL is held, events are on, and `object` is alive.
pub(crate) unsafe fn show_as(python: &'static Interpreter, object: Ptr) {
    if let Some(set) = python.set_profile {
        // SAFETY: the caller holds the GIL; the function takes a reference of its own, and `on_event` does not use it.
        unsafe { set(Some(on_event), object) };
    }
}

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn stop(python: &'static Interpreter) {
    // SAFETY: the caller holds the GIL; the references in `Previous` are ours and pass to the calls or are given back.
    unsafe {
        NEWEST.store(0, Ordering::Relaxed);
        set_on_all(python, None);
        python.aside(|| {
            let Some(previous) = lock(&PREVIOUS).and_then(|mut previous| previous.take()) else { return };
            if let Some(set) = attribute(python, c"threading", c"setprofile") {
                python.call(set.0, &[previous.of_threads]);
            }
            // Only functions of Python: what C put there cannot be put back from here.
            let of_this = Owned::new(python, previous.of_this);
            if let Some(function) = of_this
                && previous.thread == libc::pthread_self() as u64
                && python.is_python_function(function.0)
                && let Some(set) = attribute(python, c"sys", c"setprofile")
            {
                python.call(set.0, &[function.into_raw()]);
            }
        });
    }
}

/// Sets the profile function of all threads that are newer than those it was set on before.
unsafe fn set_on_all(python: &'static Interpreter, function: Option<ProfileFunction>) {
    // SAFETY: with the GIL held threads leave the list only after they have run, and `_PyEval_SetProfile` is made for other
    // threads. None of the calls returns a reference.
    unsafe {
        if let (Some(set), Some(interpreter), Some(first), Some(next), Some(number)) = (
            python.set_profile_of,
            python.this_interpreter,
            python.first_thread,
            python.next_thread,
            python.thread_number,
        ) {
            // The newest is the first.
            let mut thread = first(interpreter());
            let before = NEWEST.load(Ordering::Relaxed);
            let newest = if thread.is_null() { before } else { number(thread) };
            while !thread.is_null() && number(thread) > before {
                if set(thread, function, null_mut()) < 0 {
                    (python.clear_error)();
                }
                thread = next(thread);
            }
            NEWEST.store(newest, Ordering::Relaxed);
        } else if let Some(set) = python.set_profile {
            set(function, null_mut());
        }
    }
}

unsafe fn attribute(python: &'static Interpreter, module: &CStr, name: &CStr) -> Option<Owned> {
    // SAFETY: all callers hold the GIL; importing returns a new reference or null, which is what `Owned` takes.
    unsafe { Owned::new(python, (python.import)(module.as_ptr()))?.attribute(name) }
}

unsafe fn set_on_new_threads(python: &'static Interpreter) {
    // SAFETY: the caller holds the GIL; references are owned and pass to the calls or into `PREVIOUS`.
    unsafe {
        // A forked child inherits the hook with all else.
        if lock(&PREVIOUS).is_none_or(|previous| previous.is_some()) {
            return;
        }
        let value = |module, name| attribute(python, module, name).and_then(|get| python.call(get.0, &[]));
        let Some(of_threads) = value(c"threading", c"getprofile") else { return };
        let Some(of_this) = value(c"sys", c"getprofile") else { return };
        let Some(set) = attribute(python, c"threading", c"setprofile") else { return };
        let hook = (python.new_function)(&raw const HOOK, null_mut(), null_mut());
        if hook.is_null() {
            (python.clear_error)();
            return;
        }
        python.call(set.0, &[hook]);
        if let Some(mut kept) = lock(&PREVIOUS) {
            let thread = libc::pthread_self() as u64;
            *kept = Some(Previous { of_threads: of_threads.into_raw(), of_this: of_this.into_raw(), thread });
        }
    }
}

unsafe extern "C" fn hook(_: Ptr, arguments: *const Ptr, count: isize) -> Ptr {
    let Some(python) = Interpreter::get() else { return null_mut() };
    // SAFETY: called by the interpreter on the new thread, with the GIL held, as (frame, event, arg).
    unsafe {
        let is_tracing = lock(&PREVIOUS).is_some_and(|previous| previous.is_some());
        if let Some(set) = python.set_profile {
            set(if is_tracing { Some(on_event) } else { None }, null_mut());
        }
        if is_tracing && count == 3 {
            let what = match python.text(*arguments.add(1)).as_deref() {
                Some("call") => CALL,
                Some("return") => RETURN,
                Some("c_call") => C_CALL,
                Some("c_return") => C_RETURN,
                _ => C_EXCEPTION,
            };
            on_event(null_mut(), *arguments, what, *arguments.add(2));
        }
        python.new_reference(python.none)
    }
}

unsafe extern "C" fn on_event(_: Ptr, frame: Ptr, what: c_int, argument: Ptr) -> c_int {
    let Some(python) = Interpreter::get() else { return 0 };
    // SAFETY: called by the interpreter with the GIL held; frame and argument are live. The registry keeps the code.
    unsafe {
        match what {
            CALL => {
                called_from(python, || line_of_caller(python, frame));
                entered(python, Callee::Code(python.code_of(frame), Some(frame)));
            }
            RETURN => left_code(python),
            C_CALL | C_EXCEPTION | C_RETURN if python.is_c_function(argument) => {
                let wanted = BUILTINS.load(Ordering::Relaxed);
                if what == C_CALL && wanted {
                    called_from(python, || (python.frame_line)(frame));
                    entered(python, Callee::Builtin(argument));
                } else if what != C_CALL {
                    let definition = python.definition(argument);
                    if STARTERS.iter().any(|starter| starter.load(Ordering::Relaxed) == definition) {
                        set_on_all(python, Some(on_event));
                    }
                    if wanted {
                        left(python, Callee::Builtin(argument));
                    }
                }
            }
            _ => {}
        }
    }
    0
}

/// The line that a frame was called from; 0 where nobody called it, or that cannot be told.
unsafe fn line_of_caller(python: &Interpreter, frame: Ptr) -> c_int {
    let Some(frame_back) = python.frame_back else { return 0 };
    // SAFETY: the GIL is held and the frame is live; the reference to its caller is given back.
    unsafe {
        let caller = frame_back(frame);
        if caller.is_null() {
            return 0;
        }
        let line = (python.frame_line)(caller);
        (python.dec_ref)(caller);
        line
    }
}
