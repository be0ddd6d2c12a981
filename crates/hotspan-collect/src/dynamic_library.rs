//! Libraries of C that are opened in this process, for good: none is ever closed, so that their functions can be kept.

use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;

/// Opens a library; why it cannot be opened otherwise. With `RTLD_NOLOAD` in `flags` only one that is there already.
pub(crate) fn open_library(path: impl AsRef<OsStr>, flags: i32) -> Result<*mut c_void, String> {
    let name = CString::new(path.as_ref().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the name ends in a zero. Libraries opened here are our shim and those of CUDA and of C++, whose initialisers set
    // up their own globals.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
    if !library.is_null() {
        return Ok(library);
    }
    // SAFETY: the function takes nothing; the text stays until the next call of the loader on this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(format!("{} is not loaded", path.as_ref().display()));
    }
    // SAFETY: not null, so it is the loader's text, which ends in a zero.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The address of a function of a library that [`open_library`] opened.
pub(crate) fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: callers pass what `open_library` returned, which is never closed; the name ends in a zero.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// A function of such a library, of a type that the headers give it.
///
/// # Safety
/// `T` is the type of a function pointer, that of the function `name` in the library.
pub(crate) unsafe fn function<T: Copy>(library: *mut c_void, name: &str) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    let address = symbol(library, name)?;
    // SAFETY: both have the same size, and the caller promises that the address is that of a function of this type.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, T>(&address) })
}
