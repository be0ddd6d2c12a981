//! Events of `PyEval_SetProfile`, before Python 3.12: set on each thread.
//!
//! Threads that run when tracing begins are reached through the interpreter's list of threads, those that `threading` starts
//! later through `threading.setprofile`. A thread that C code or `_thread` starts later is not seen.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::calls::CallsError;
use crate::calls::events::{Callee, called_from, entered, left, left_code};
use crate::calls::python::{Interpreter, MethodDefinition, Owned, ProfileFunction, Ptr};
use crate::calls::tracer::lock;

const CALL: c_int = 0;
const RETURN: c_int = 3;
const C_CALL: c_int = 4;
const C_EXCEPTION: c_int = 5;
const C_RETURN: c_int = 6;

/// Set on every new thread by `threading`; its first event puts [`on_event`] in its place.
static HOOK: MethodDefinition = MethodDefinition::fast(c"hotspan_hook", hook);

/// Whether functions of C are wanted.
static BUILTINS: AtomicBool = AtomicBool::new(true);

struct Previous(Ptr);
// SAFETY: used with the GIL only.
unsafe impl Send for Previous {}

/// What `threading` set on new threads before; our reference.
static PREVIOUS: Mutex<Option<Previous>> = Mutex::new(None);

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn start(python: &'static Interpreter, builtins: bool) -> Result<(), CallsError> {
    BUILTINS.store(builtins, Ordering::Relaxed);
    // SAFETY: the GIL is held.
    unsafe {
        if python.set_profile.is_none() {
            return Err(CallsError::NoEvents);
        }
        set_on_new_threads(python);
        set_on_all(python, Some(on_event));
    }
    Ok(())
}

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn stop(python: &'static Interpreter) {
    // SAFETY: the GIL is held.
    unsafe {
        set_on_all(python, None);
        python.aside(|| {
            let previous = lock(&PREVIOUS).and_then(|mut previous| previous.take());
            if let (Some(previous), Some(set)) = (previous, threading(python, c"setprofile")) {
                python.call(set.0, &[previous.0]);
            }
        });
    }
}

unsafe fn set_on_all(python: &'static Interpreter, function: Option<ProfileFunction>) {
    // SAFETY: with the GIL held the list of threads does not change, and `_PyEval_SetProfile` is made for other threads.
    // None of the calls returns a reference.
    unsafe {
        if let (Some(set), Some(interpreter), Some(first), Some(next)) =
            (python.set_profile_of, python.this_interpreter, python.first_thread, python.next_thread)
        {
            let mut thread = first(interpreter());
            while !thread.is_null() {
                if set(thread, function, null_mut()) < 0 {
                    (python.clear_error)();
                }
                thread = next(thread);
            }
        } else if let Some(set) = python.set_profile {
            set(function, null_mut());
        }
    }
}

unsafe fn threading(python: &'static Interpreter, name: &std::ffi::CStr) -> Option<Owned> {
    // SAFETY: the GIL is held.
    unsafe { Owned::new(python, (python.import)(c"threading".as_ptr()))?.attribute(name) }
}

unsafe fn set_on_new_threads(python: &'static Interpreter) {
    // SAFETY: the GIL is held; references pass to the calls or are kept.
    unsafe {
        // A forked child inherits the hook with all else.
        if lock(&PREVIOUS).is_none_or(|previous| previous.is_some()) {
            return;
        }
        let Some(previous) = threading(python, c"getprofile").and_then(|get| python.call(get.0, &[])) else {
            return;
        };
        let Some(set) = threading(python, c"setprofile") else { return };
        let hook = (python.new_function)(&raw const HOOK, null_mut(), null_mut());
        if hook.is_null() {
            (python.clear_error)();
            return;
        }
        python.call(set.0, &[hook]);
        if let Some(mut kept) = lock(&PREVIOUS) {
            *kept = Some(Previous(previous.into_raw()));
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
        if is_tracing && count == 3 && python.text(*arguments.add(1)).as_deref() == Some("call") {
            on_event(null_mut(), *arguments, CALL, python.none);
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
                called_from(|| line_of_caller(python, frame));
                let code = (python.frame_code)(frame);
                entered(python, Callee::Code(code, Some(frame)));
                (python.dec_ref)(code);
            }
            RETURN => left_code(),
            C_CALL | C_EXCEPTION | C_RETURN
                if BUILTINS.load(Ordering::Relaxed) && python.is_c_function(argument) =>
            {
                if what == C_CALL {
                    called_from(|| (python.frame_line)(frame));
                    entered(python, Callee::Builtin(argument));
                } else {
                    left(python, Callee::Builtin(argument));
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
