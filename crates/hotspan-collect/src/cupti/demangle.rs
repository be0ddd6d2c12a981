//! Readable names of kernels, as Kineto prints them: through the C++ library that torch has loaded.

use std::ffi::{CStr, c_char, c_int};

use crate::dynamic_library::{function, open_library};

type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// Turns mangled names into readable ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demangler(Option<Demangle>);

/// Longer names are left as they are: undoing them can take minutes.
const LONGEST: usize = 4096;

impl Demangler {
    /// The C++ library of this process; without one names stay as they are.
    pub(crate) fn new() -> Self {
        let library = open_library("libstdc++.so.6", libc::RTLD_NOLOAD);
        // SAFETY: the C++ ABI gives the function this type.
        Self(library.ok().and_then(|library| unsafe { function(library, "__cxa_demangle") }))
    }

    /// A readable name. What is not mangled stays as it is.
    pub(crate) fn demangle(self, name: &CStr) -> String {
        let plain = || name.to_string_lossy().into_owned();
        let Some(demangle) = self.0.filter(|_| name.to_bytes().starts_with(b"_Z")) else { return plain() };
        if name.to_bytes().len() > LONGEST {
            return plain();
        }
        let mut status = 0;
        // SAFETY: a zero-terminated name; null asks for memory of the function's own, which is freed below.
        let text =
            unsafe { demangle(name.as_ptr(), std::ptr::null_mut(), std::ptr::null_mut(), &raw mut status) };
        if text.is_null() {
            return plain();
        }
        // SAFETY: not null, so it is zero-terminated text that malloc gave.
        unsafe {
            let shown = CStr::from_ptr(text).to_string_lossy().into_owned();
            libc::free(text.cast());
            shown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mangled_stays() {
        assert_eq!(Demangler::new().demangle(c"nvjet_tst_128x64"), "nvjet_tst_128x64");
        assert_eq!(Demangler(None).demangle(c"_Z3addPf"), "_Z3addPf");
    }

    #[test]
    fn mangled_names_become_readable() {
        let Ok(library) = open_library("libstdc++.so.6", 0) else { return };
        // SAFETY: the C++ ABI gives the function this type.
        let demangler = Demangler(unsafe { function(library, "__cxa_demangle") });
        assert_eq!(demangler.demangle(c"_Z3addPfi"), "add(float*, int)");
        assert_eq!(demangler.demangle(c"_Znot a name"), "_Znot a name");
    }
}
