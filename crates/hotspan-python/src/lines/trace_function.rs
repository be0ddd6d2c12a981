//! Asking the interpreter to tell about lines by a trace function: CPython before 3.12, thread by thread.

use std::cell::RefCell;

use hotspan_collect::lines::tracing;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::forward::forward_if_wanted;

/// `sys.gettrace`, found once: generators ask at every step.
static GET_TRACE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// The trace function that was set when this thread began to be watched.
    static EARLIER_TRACE: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

pub(super) fn marker(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: the GIL is held; the function made is ours to own, null comes with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, tracing::marker().cast()) }
}

pub(super) fn is_marker(function: &Bound<'_, PyAny>) -> bool {
    if function.is_none() {
        return false;
    }
    let name = function.getattr("__name__").and_then(|name| name.extract::<String>());
    name.is_ok_and(|name| name == "hotspan_trace")
}

/// The trace function of this thread, if one is set.
pub(super) fn trace_function(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    // An interpreter that is ending has no `sys` any more.
    let Ok(get_trace) = GET_TRACE.import(py, "sys", "gettrace") else { return Ok(None) };
    Ok(Some(get_trace.call0()?).filter(|function| !function.is_none()))
}

/// What was set on this thread before ours.
pub(super) fn earlier(py: Python<'_>) -> Option<Py<PyAny>> {
    EARLIER_TRACE.with_borrow(|earlier| earlier.as_ref().map(|earlier| earlier.clone_ref(py)))
}

/// Has another function, or none, put back on this thread when ours is removed.
pub(super) fn set_earlier(earlier: Option<Py<PyAny>>) {
    // The one that goes may run code as it goes.
    let _gone = EARLIER_TRACE.with_borrow_mut(|slot| std::mem::replace(slot, earlier));
}

pub(super) fn begin_tracing(py: Python<'_>) -> PyResult<()> {
    if !tracing::begin() {
        return Ok(());
    }
    // An interpreter that is ending has no `sys` any more. What it still runs is not recorded, and runs.
    let Ok(get_trace) = GET_TRACE.import(py, "sys", "gettrace") else { return Ok(()) };
    let earlier = get_trace.call0()?;
    let earlier = (!earlier.is_none()).then(|| earlier.unbind());
    let marker = marker(py)?;
    let forward = forward_if_wanted(earlier.as_ref().is_some_and(|earlier| !is_marker(earlier.bind(py))));
    set_earlier(earlier);
    // SAFETY: `py` proves that the GIL is held, and the marker is what `tracing::marker` made.
    unsafe { tracing::install(marker.as_ptr().cast(), forward) };
    Ok(())
}

pub(super) fn end_tracing(py: Python<'_>) -> PyResult<()> {
    // SAFETY: `py` proves that the GIL is held.
    if !unsafe { tracing::end() } {
        return Ok(());
    }
    let Ok(get_trace) = GET_TRACE.import(py, "sys", "gettrace") else { return Ok(()) };
    let earlier = EARLIER_TRACE.with_borrow_mut(Option::take);
    // A thread that was traced before its first watched function goes on being so.
    if earlier.as_ref().is_some_and(|earlier| is_marker(earlier.bind(py))) {
        return Ok(());
    }
    // Someone may have set another trace function meanwhile: that one stays.
    if is_marker(&get_trace.call0()?) {
        // SAFETY: `py` proves that the GIL is held.
        unsafe { tracing::remove() };
        if let Some(earlier) = earlier {
            py.import("sys")?.call_method1("settrace", (earlier,))?;
        }
    }
    Ok(())
}
