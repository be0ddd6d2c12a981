//! Functions of ours in place of the interpreter's, which they call: with their name, module, signature and documentation.

use std::ffi::CString;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyModule, PyTuple};

/// Makes such a function.
///
/// # Safety
/// The function is sound to call for the interpreter, with the module and a tuple of arguments.
pub(crate) unsafe fn stand_in<'py>(
    module: &Bound<'py, PyModule>,
    original: &Bound<'py, PyAny>,
    function: ffi::PyCFunction,
) -> PyResult<Bound<'py, PyAny>> {
    let text = |name| original.getattr(name)?.extract::<String>();
    let name = text("__name__")?;
    let about = format!("{name}{}\n--\n\n{}", text("__text_signature__")?, text("__doc__")?);
    let definition = ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: ffi::METH_VARARGS,
        ml_doc: CString::new(about)?.into_raw(),
    };
    let definition = Box::leak(Box::new(definition));
    // SAFETY: the definition and its texts are leaked, as the interpreter asks; the function is what the caller promises.
    unsafe {
        let made = ffi::PyCFunction_NewEx(definition, module.as_ptr(), module.name()?.as_ptr());
        Bound::from_owned_ptr_or_err(module.py(), made)
    }
}

/// Answers a call of the interpreter.
///
/// # Safety
/// The interpreter waits for the answer, and the arguments are a tuple.
pub(crate) unsafe fn answer(
    arguments: *mut ffi::PyObject,
    act: impl for<'py> FnOnce(Python<'py>, Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: whoever the interpreter calls may use it.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: a tuple that the interpreter keeps until the call returns.
    let arguments = unsafe { Bound::from_borrowed_ptr(py, arguments).cast_into_unchecked::<PyTuple>() };
    match act(py, arguments) {
        Ok(value) => value.into_ptr(),
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

/// What a stand-in needs, which is set before anyone can call it.
pub(crate) fn kept<'a, T>(py: Python<'_>, original: &'a pyo3::sync::PyOnceLock<T>) -> PyResult<&'a T> {
    original.get(py).ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("not available"))
}
