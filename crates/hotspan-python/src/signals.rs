//! `signal.signal` and `signal.pthread_sigmask` in a sampled program. Both stay what they are, but nothing is sent while a program
//! installs its own handler for the sampler's signal or blocks it: it shall get no signal that it did not send, neither in
//! that handler nor when it waits for any signal.

use hotspan_collect::native::Lent;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyList, PyModule, PyTuple};

use crate::stand_in::{answer, kept, stand_in};

static SET_HANDLER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static SET_MASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Puts ours in place of the interpreter's, once. `signal`, the module, looks them up each time.
pub(crate) fn guard(py: Python<'_>) -> PyResult<()> {
    let module = PyModule::import(py, "_signal")?;
    let functions: [(&str, &PyOnceLock<Py<PyAny>>, ffi::PyCFunction); 2] =
        [("signal", &SET_HANDLER, set_handler), ("pthread_sigmask", &SET_MASK, set_mask)];
    for (name, kept, function) in functions {
        if kept.get(py).is_some() {
            continue;
        }
        let original = module.getattr(name)?;
        // SAFETY: both functions take a module and a tuple.
        let ours = unsafe { stand_in(&module, &original, function)? };
        if kept.set(py, original.unbind()).is_ok() {
            module.setattr(name, ours)?;
        }
    }
    Ok(())
}

/// # Safety
/// The interpreter calls it, with a tuple.
unsafe extern "C" fn set_handler(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        answer(arguments, |py, arguments| {
            let is_ours = arguments.get_item(0).is_ok_and(|number| is_signal(&number));
            let has_handler = arguments.get_item(1).is_ok_and(|handler| handler.is_callable());
            let _lent = (is_ours && has_handler).then(|| py.detach(Lent::new));
            kept(py, &SET_HANDLER)?.bind(py).call1(arguments)
        })
    }
}

/// # Safety
/// The interpreter calls it, with a tuple.
unsafe extern "C" fn set_mask(
    _module: *mut ffi::PyObject,
    arguments: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as the caller promises.
    unsafe {
        answer(arguments, |py, mut arguments| {
            let (how, mask) = (arguments.get_item(0), arguments.get_item(1));
            let mut blocks = false;
            if let (Ok(how), Ok(mut mask), 2) = (how, mask, arguments.len()) {
                // What gives its items only once is asked once.
                if mask.cast::<PyIterator>().is_ok() {
                    mask = py.get_type::<PyList>().call1((mask,))?;
                    arguments = PyTuple::new(py, [&how, &mask])?;
                }
                let unblocks = how.extract::<i32>().is_ok_and(|how| how == Lent::UNBLOCKS);
                blocks = !unblocks && !Lent::is_blocked() && mask.contains(Lent::SIGNAL).unwrap_or(false);
            }
            let _lent = blocks.then(|| py.detach(Lent::new));
            kept(py, &SET_MASK)?.bind(py).call1(arguments)
        })
    }
}

fn is_signal(number: &Bound<'_, PyAny>) -> bool {
    number.extract::<i32>().is_ok_and(|number| number == Lent::SIGNAL)
}
