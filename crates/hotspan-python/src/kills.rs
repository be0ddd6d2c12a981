//! `os.kill`, `os.killpg` and `signal.raise_signal` in a recorded program: a signal that a process sends itself may be its
//! last, so that what was recorded is written before. In C, like the originals: nothing of it shows in a traceback.

use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use crate::stand_in::{answer, kept, stand_in};

/// What is called with the same arguments, before each.
struct Watched {
    original: Py<PyAny>,
    before: Py<PyAny>,
}

static KILL: PyOnceLock<Watched> = PyOnceLock::new();
static KILLPG: PyOnceLock<Watched> = PyOnceLock::new();
static RAISE: PyOnceLock<Watched> = PyOnceLock::new();

/// Puts ours in place of the interpreter's, once. Each of these is called before, with the arguments of the call.
#[pyfunction]
pub(crate) fn watch_kills(
    py: Python<'_>,
    kill: Py<PyAny>,
    killpg: Py<PyAny>,
    raise_signal: Py<PyAny>,
) -> PyResult<()> {
    watch(py, &["posix", "os"], "kill", &KILL, kill, on_kill)?;
    watch(py, &["posix", "os"], "killpg", &KILLPG, killpg, on_killpg)?;
    watch(py, &["_signal", "signal"], "raise_signal", &RAISE, raise_signal, on_raise)
}

fn watch(
    py: Python<'_>,
    modules: &[&str],
    name: &str,
    watched: &PyOnceLock<Watched>,
    before: Py<PyAny>,
    function: ffi::PyCFunction,
) -> PyResult<()> {
    let module = PyModule::import(py, modules[0])?;
    let original = module.getattr(name)?;
    // SAFETY: the functions below take a module and a tuple.
    let ours = unsafe { stand_in(&module, &original, function)? };
    if watched.set(py, Watched { original: original.unbind(), before }).is_err() {
        return Ok(());
    }
    // Those that are not imported yet take it from the first.
    let loaded = py.import("sys")?.getattr("modules")?;
    for name_of_module in modules {
        if let Ok(module) = loaded.get_item(name_of_module) {
            module.setattr(name, &ours)?;
        }
    }
    Ok(())
}

unsafe extern "C" fn on_kill(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, with a tuple.
    unsafe { call(&KILL, arguments) }
}

unsafe extern "C" fn on_killpg(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, with a tuple.
    unsafe { call(&KILLPG, arguments) }
}

unsafe extern "C" fn on_raise(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, with a tuple.
    unsafe { call(&RAISE, arguments) }
}

/// # Safety
/// The interpreter waits for the answer, and the arguments are a tuple.
unsafe fn call(watched: &PyOnceLock<Watched>, arguments: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        answer(arguments, |py, arguments| {
            let watched = kept(py, watched)?;
            match watched.before.bind(py).call1(&arguments) {
                // What is wrong with the arguments, the original will say. A Ctrl-C is the program's.
                Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
                _ => {}
            }
            watched.original.bind(py).call1(arguments)
        })
    }
}
