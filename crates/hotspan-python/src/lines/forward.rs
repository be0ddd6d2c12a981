//! Lets the trace function that a thread had go on while its lines are recorded: `wrap_trace`, CPython before 3.12.
//!
//! The interpreter tells one trace function of a thread. Ours passes on what it is told, in the way that `sys.settrace` does:
//! calls to the function itself, everything else to what it returned for the frame.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use hotspan_collect::lines::{Object, tracing};
use pyo3::prelude::*;

use super::trace_function::{earlier, is_marker, marker, set_earlier, trace_function};

/// Whether earlier trace functions go on. One switch for all profilers, as in line_profiler.
static WRAPS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Frames whose lines the earlier function does not want to hear of (`f_trace_lines`); we do.
    static QUIET: RefCell<Vec<*mut Object>> = const { RefCell::new(Vec::new()) };
}

const CALL: c_int = 0;
const LINE: c_int = 2;
const RETURN: c_int = 3;
/// What `sys.settrace` calls events, by their numbers.
const EVENTS: [&str; 8] =
    ["call", "exception", "line", "return", "c_call", "c_exception", "c_return", "opcode"];

/// Sets the switch, if told to, and returns what it was set to before.
pub(super) fn switch(wraps: Option<bool>) -> bool {
    match wraps {
        Some(wraps) => WRAPS.swap(wraps, Ordering::Relaxed),
        None => WRAPS.load(Ordering::Relaxed),
    }
}

/// What tells an earlier trace function, where there is one and it is to go on.
pub(super) fn forward_if_wanted(has_earlier: bool) -> Option<tracing::Forward> {
    (has_earlier && WRAPS.load(Ordering::Relaxed)).then_some(forward as tracing::Forward)
}

unsafe extern "C" fn forward(frame: *mut Object, event: c_int, argument: *mut Object) -> c_int {
    // SAFETY: Python calls trace functions with the GIL held, with a frame that is alive, and a value or null.
    let (py, told) = unsafe {
        let py = Python::assume_attached();
        let frame_object = Bound::from_borrowed_ptr(py, frame.cast());
        let argument = Bound::from_borrowed_ptr_or_opt(py, argument.cast());
        (py, tell(py, &frame_object, event, argument))
    };
    if event == RETURN {
        QUIET.with_borrow_mut(|frames| frames.retain(|&quiet| quiet != frame));
    }
    match told {
        Ok(()) => 0,
        Err(error) => {
            // As `sys.settrace` does with a function that fails: it is not called again, and the program gets the error.
            set_earlier(None);
            error.restore(py);
            -1
        }
    }
}

fn tell(
    py: Python<'_>,
    frame: &Bound<'_, PyAny>,
    event: c_int,
    argument: Option<Bound<'_, PyAny>>,
) -> PyResult<()> {
    let Some(earlier) = earlier(py) else { return Ok(()) };
    let Some(name) = usize::try_from(event).ok().and_then(|event| EVENTS.get(event)) else { return Ok(()) };
    let pointer: *mut Object = frame.as_ptr().cast();
    if event == LINE && QUIET.with_borrow(|frames| frames.contains(&pointer)) {
        return Ok(());
    }
    let called = if event == CALL { earlier.into_bound(py) } else { frame.getattr("f_trace")? };
    if called.is_none() {
        return Ok(());
    }
    let local = called.call1((frame, *name, argument))?;
    if !local.is_none() {
        frame.setattr("f_trace", local)?;
    }
    if !frame.getattr("f_trace_lines")?.is_truthy()? {
        frame.setattr("f_trace_lines", true)?;
        QUIET.with_borrow_mut(|frames| frames.push(pointer));
    }
    // It may have set another, or none: that is the one to tell from now on, and ours stays.
    let now = trace_function(py)?;
    if now.as_ref().is_none_or(|now| !is_marker(now)) {
        set_earlier(now.map(Bound::unbind));
        let marker = marker(py)?;
        // SAFETY: `py` proves that the GIL is held, and the marker is what `tracing::marker` made.
        unsafe { tracing::install(marker.as_ptr().cast(), Some(forward)) };
    }
    Ok(())
}
