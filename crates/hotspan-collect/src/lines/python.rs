//! The few functions of Python that the callbacks call, found in the running process.
//!
//! Some are not in the limited API, all of them are exported with the same signature by CPython 3.10 to 3.14. Objects stay
//! opaque: no layout is assumed.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::OnceLock;

/// A Python object of which only the address is known.
#[repr(C)]
#[derive(Debug)]
pub struct Object {
    _opaque: [u8; 0],
}

/// `Py_tracefunc`.
pub(crate) type TraceFunction = unsafe extern "C" fn(*mut Object, *mut Object, c_int, *mut Object) -> c_int;
/// What a method of kind `METH_FASTCALL` is.
pub(crate) type FastFunction = unsafe extern "C" fn(*mut Object, *const *mut Object, isize) -> *mut Object;

/// `PyMethodDef`, which is part of the stable ABI.
#[repr(C)]
pub(crate) struct MethodDefinition {
    pub(crate) name: *const c_char,
    pub(crate) function: Option<FastFunction>,
    pub(crate) flags: c_int,
    pub(crate) documentation: *const c_char,
}

// SAFETY: definitions are constants whose pointers refer to constants.
unsafe impl Sync for MethodDefinition {}

pub(crate) const METH_FASTCALL: c_int = 0x80;

/// Python's functions.
#[derive(Clone, Copy)]
pub(crate) struct Python {
    pub(crate) none: *mut Object,
    pub(crate) increase: unsafe extern "C" fn(*mut Object),
    pub(crate) decrease: unsafe extern "C" fn(*mut Object),
    pub(crate) long_value: unsafe extern "C" fn(*mut Object) -> c_long,
    pub(crate) frame_code: unsafe extern "C" fn(*mut Object) -> *mut Object,
    pub(crate) frame_line: unsafe extern "C" fn(*mut Object) -> c_int,
    pub(crate) code_line: unsafe extern "C" fn(*mut Object, c_int) -> c_int,
    pub(crate) set_trace: unsafe extern "C" fn(Option<TraceFunction>, *mut Object),
    pub(crate) new_function:
        unsafe extern "C" fn(*const MethodDefinition, *mut Object, *mut Object) -> *mut Object,
}

// SAFETY: addresses of functions and of an immortal object, the same for all threads.
unsafe impl Send for Python {}
// SAFETY: as above.
unsafe impl Sync for Python {}

/// Why lines cannot be recorded in this process.
#[derive(Clone, Debug, thiserror::Error)]
#[error("this Python does not export {0}, which recording lines needs; use CPython 3.10 or newer")]
pub struct PythonApiError(&'static str);

/// Finds Python's functions; callbacks do nothing before this has succeeded once.
///
/// # Errors
/// When this process is not a CPython that hotspan knows.
pub fn check() -> Result<(), PythonApiError> {
    load().as_ref().map(|_| ()).map_err(Clone::clone)
}

/// Python's functions, if [`check`] found them.
#[inline]
pub(crate) fn python() -> Option<&'static Python> {
    load().as_ref().ok()
}

fn load() -> &'static Result<Python, PythonApiError> {
    static PYTHON: OnceLock<Result<Python, PythonApiError>> = OnceLock::new();
    PYTHON.get_or_init(|| {
        // SAFETY: each symbol is CPython's, and has this type in every version from 3.10 on.
        unsafe {
            Ok(Python {
                none: symbol(c"_Py_NoneStruct", "_Py_NoneStruct")?.cast(),
                increase: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Object)>(symbol(
                    c"Py_IncRef",
                    "Py_IncRef",
                )?),
                decrease: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Object)>(symbol(
                    c"Py_DecRef",
                    "Py_DecRef",
                )?),
                long_value: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Object) -> c_long>(
                    symbol(c"PyLong_AsLong", "PyLong_AsLong")?,
                ),
                frame_code: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut Object) -> *mut Object,
                >(symbol(c"PyFrame_GetCode", "PyFrame_GetCode")?),
                frame_line: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Object) -> c_int>(
                    symbol(c"PyFrame_GetLineNumber", "PyFrame_GetLineNumber")?,
                ),
                code_line: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut Object, c_int) -> c_int,
                >(symbol(c"PyCode_Addr2Line", "PyCode_Addr2Line")?),
                set_trace: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(Option<TraceFunction>, *mut Object),
                >(symbol(c"PyEval_SetTrace", "PyEval_SetTrace")?),
                new_function: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const MethodDefinition, *mut Object, *mut Object) -> *mut Object,
                >(symbol(c"PyCFunction_NewEx", "PyCFunction_NewEx")?),
            })
        }
    })
}

fn symbol(name: &CStr, text: &'static str) -> Result<*mut c_void, PythonApiError> {
    // SAFETY: the name ends in a zero byte; looking a symbol up changes nothing.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if found.is_null() { Err(PythonApiError(text)) } else { Ok(found) }
}
