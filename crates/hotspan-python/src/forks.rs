//! `os.fork` and `os.forkpty` in a recorded program. Our threads rest during a fork, and go on when it has returned, not in a hook
//! after it: CPython 3.13 and the first of 3.14 count threads only after those hooks, to warn of them.

use std::cell::{Cell, RefCell};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use crate::stand_in::{answer, kept, stand_in};

thread_local! {
    static IS_FORKING: Cell<bool> = const { Cell::new(false) };
    /// What goes on when the fork returns.
    static RESTING: RefCell<Vec<Resume>> = const { RefCell::new(Vec::new()) };
}

/// Starts threads again that rest.
type Resume = Box<dyn FnOnce() + Send>;

static FORK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static FORKPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Puts ours in place of the interpreter's, once, where it warns of threads.
pub(crate) fn guard(py: Python<'_>) -> PyResult<()> {
    if py.version_info() < (3, 12) {
        return Ok(());
    }
    let (posix, os) = (PyModule::import(py, "posix")?, PyModule::import(py, "os")?);
    let functions: [(&str, &PyOnceLock<Py<PyAny>>, ffi::PyCFunction); 2] =
        [("fork", &FORK, fork), ("forkpty", &FORKPTY, forkpty)];
    for (name, kept, function) in functions {
        if kept.get(py).is_some() {
            continue;
        }
        let original = posix.getattr(name)?;
        // SAFETY: both functions take a module and a tuple.
        let ours = unsafe { stand_in(&posix, &original, function)? };
        if kept.set(py, original.unbind()).is_ok() {
            posix.setattr(name, &ours)?;
            os.setattr(name, ours)?;
        }
    }
    Ok(())
}

/// Lets threads go on: at once, or when the fork of this thread has returned.
pub(crate) fn resume(py: Python<'_>, go_on: impl FnOnce() + Send + 'static) {
    if IS_FORKING.get() {
        RESTING.with_borrow_mut(|resting| resting.push(Box::new(go_on)));
    } else {
        py.detach(go_on);
    }
}

unsafe extern "C" fn fork(_module: *mut ffi::PyObject, arguments: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, with a tuple.
    unsafe { call(&FORK, arguments) }
}

unsafe extern "C" fn forkpty(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, with a tuple.
    unsafe { call(&FORKPTY, arguments) }
}

/// # Safety
/// The interpreter waits for the answer, and the arguments are a tuple.
unsafe fn call(original: &PyOnceLock<Py<PyAny>>, arguments: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        answer(arguments, |py, arguments| {
            let original = kept(py, original)?.bind(py);
            let was_forking = IS_FORKING.replace(true);
            let result = original.call1(arguments);
            IS_FORKING.set(was_forking);
            // Nothing rests in the child, where other hooks have run.
            let resting = RESTING.take();
            py.detach(|| resting.into_iter().for_each(|go_on| go_on()));
            result
        })
    }
}
