//! The trace function for Python 3.10 and 3.11, which have no `sys.monitoring`.
//!
//! The interpreter calls it for every line of a thread while it is set, so it is set while a thread is inside a watched
//! function; for frames that are not watched it returns at once.

use std::cell::Cell;
use std::ffi::c_int;

use super::active::{self, Entry};
use super::recorder::any_enabled;
use crate::interpreter::{Interpreter, MethodDefinition, Object};

const CALL: c_int = 0;
const LINE: c_int = 2;
const RETURN: c_int = 3;

thread_local! {
    /// How many enclosing calls have asked for tracing on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Who else is told, where [`install`] was asked for that.
    static FORWARD: Cell<Option<Forward>> = const { Cell::new(None) };
}

static MARKER: MethodDefinition = MethodDefinition::fast(c"hotspan_trace", on_python_trace);

/// Tells another trace function too: of a frame, the event by its number, and its value or null. -1 with an exception set when
/// that fails.
pub type Forward = unsafe extern "C" fn(frame: *mut Object, event: c_int, value: *mut Object) -> c_int;

/// A new Python function that stands for the trace function: `sys.gettrace` shows it, and given to `sys.settrace` or
/// `threading.settrace` it replaces itself by the fast one. Null, with an exception set, when there is no memory.
///
/// # Safety
/// The GIL is held.
#[must_use]
pub unsafe fn marker() -> *mut Object {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    // SAFETY: the definition is a constant; the GIL is held. The function carries itself in no place.
    unsafe { (python.new_function)(&raw const MARKER, std::ptr::null_mut(), std::ptr::null_mut()) }
}

/// Counts a request for tracing on this thread; true for the first, which must [`install`].
#[must_use]
pub fn begin() -> bool {
    DEPTH.try_with(|depth| depth.replace(depth.get() + 1) == 0).unwrap_or(false)
}

/// Takes a request back; true for the last, which must remove the trace function. The frames are forgotten then.
///
/// # Safety
/// The GIL is held.
#[must_use]
pub unsafe fn end() -> bool {
    let last = DEPTH.try_with(|depth| {
        let before = depth.get();
        depth.set(before.saturating_sub(1));
        before == 1
    });
    let last = last.unwrap_or(false);
    if last {
        // SAFETY: the caller's promise.
        unsafe { active::forget_thread() };
    }
    last
}

/// Sets the trace function of this thread; `forward` is told what it is told.
///
/// # Safety
/// The GIL is held; `marker` is what [`marker`] made.
pub unsafe fn install(marker: *mut Object, forward: Option<Forward>) {
    let _ = FORWARD.try_with(|slot| slot.set(forward));
    if let Some(python) = Interpreter::get() {
        let function = if forward.is_some() { on_forwarded_event } else { on_event };
        // SAFETY: the GIL is held, and the function has the type that Python expects.
        unsafe { (python.set_trace)(Some(function), marker) };
    }
}

/// Removes the trace function of this thread.
///
/// # Safety
/// The GIL is held.
pub unsafe fn remove() {
    if let Some(python) = Interpreter::get() {
        // SAFETY: the GIL is held.
        unsafe { (python.set_trace)(None, std::ptr::null_mut()) };
    }
}

/// A function of its own, so that whoever forwards nothing pays nothing.
unsafe extern "C" fn on_forwarded_event(
    marker: *mut Object,
    frame: *mut Object,
    event: c_int,
    value: *mut Object,
) -> c_int {
    // SAFETY: all is passed on as Python gave it.
    unsafe {
        on_event(marker, frame, event, value);
        match FORWARD.try_with(Cell::get) {
            Ok(Some(forward)) => forward(frame, event, value),
            _ => 0,
        }
    }
}

unsafe extern "C" fn on_event(_: *mut Object, frame: *mut Object, event: c_int, _: *mut Object) -> c_int {
    let Some(python) = Interpreter::get() else { return 0 };
    // SAFETY: called by Python with the GIL held and a frame that is alive; its code lives as long as the frame.
    unsafe {
        // Recording ended while this thread ran: it is set free at its next call.
        if event == CALL && !any_enabled() && DEPTH.try_with(Cell::get).unwrap_or(0) == 0 {
            active::forget_thread();
            (python.set_trace)(None, std::ptr::null_mut());
            return 0;
        }
        let code = python.code_of(frame);
        if active::is_watched(code) {
            match event {
                LINE => active::line(code, frame, (python.frame_line)(frame).max(0) as u32),
                RETURN => active::leave(code, frame),
                CALL => active::enter(code, frame, entry(code, (python.frame_line)(frame).max(0) as u32)),
                _ => {}
            }
        }
    }
    0
}

/// A call begins at the function's first line; a generator goes on at a later one.
unsafe fn entry(code: *mut Object, line: u32) -> Entry {
    // SAFETY: the caller holds the GIL.
    match unsafe { active::first_line(code) } {
        Some(first) if first != line => Entry::Resume(line),
        _ => Entry::Start,
    }
}

/// `sys.settrace` was called with the marker: someone put back what they found, or a thread begins.
unsafe extern "C" fn on_python_trace(_: *mut Object, given: *const *mut Object, count: isize) -> *mut Object {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    // SAFETY: called by Python with the GIL held and with a frame, a text and a value.
    unsafe {
        if count >= 3 && any_enabled() {
            let frame = *given;
            let marker = marker();
            if marker.is_null() {
                return marker;
            }
            install(marker, None);
            (python.dec_ref)(marker);
            let code = python.code_of(frame);
            let line = (python.frame_line)(frame).max(0) as u32;
            active::enter(code, frame, entry(code, line));
        }
        (python.inc_ref)(python.none);
        python.none
    }
}
