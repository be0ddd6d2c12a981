//! Two words inside objects of the interpreter that no function gives as quickly: the definition of a function of C, and the code
//! of a frame. Each is tested on real objects before it is used; where the test fails, the interpreter's functions are called.

use std::ffi::{CStr, c_void};

use crate::cpython::{PYTHON_3_10, PYTHON_3_11};
use crate::interpreter::{Interpreter, MethodDefinition, Owned, Ptr};

/// Where a frame object has its code; only where the test of it succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeAt {
    /// In the frame object.
    Frame(usize),
    /// In the interpreter's frame, to which the frame object has a pointer.
    Inner(usize, usize),
}

impl CodeAt {
    #[inline]
    unsafe fn read(self, frame: Ptr) -> Ptr {
        // SAFETY: the caller has a live frame of a version with these offsets.
        unsafe {
            match self {
                Self::Frame(at) => frame.byte_add(at).cast::<Ptr>().read(),
                Self::Inner(at, inner) => {
                    frame.byte_add(at).cast::<Ptr>().read().byte_add(inner).cast::<Ptr>().read()
                }
            }
        }
    }
}

impl Interpreter {
    /// All versions since 3.0 put the pointer to the definition after the header of the object. That is tried on
    /// functions whose C function and name are found otherwise, and not used when it does not hold.
    pub(super) unsafe fn find_definition(&self) -> Option<usize> {
        let at = self.header;
        // SAFETY: the GIL is held; all objects read are live and larger than the word read.
        unsafe {
            let builtins = Owned::new(self, (self.import)(c"builtins".as_ptr()))?;
            for name in [c"len", c"print", c"isinstance", c"compile"] {
                let function = builtins.attribute(name)?;
                if self.type_of(function.0) != self.function_type {
                    return None;
                }
                let definition = function.0.byte_add(at).cast::<*const MethodDefinition>().read();
                if definition.is_null() || !definition.is_aligned() {
                    return None;
                }
                let same = (*definition)
                    .function
                    .is_some_and(|defined| defined as *mut c_void == (self.c_function)(function.0));
                if !same || CStr::from_ptr((*definition).name) != name {
                    return None;
                }
            }
        }
        Some(at)
    }

    /// The versions that report calls with a frame object keep its code each at an offset of its own, which is tried on the
    /// frames that run, and not used when it does not hold.
    pub(super) unsafe fn find_code(&self) -> Option<CodeAt> {
        let code_at = match self.minor_version() {
            10 => CodeAt::Frame(PYTHON_3_10.frame_code),
            // The interpreter's frame comes after the frame object of the caller.
            11 => CodeAt::Inner(self.header + size_of::<Ptr>(), PYTHON_3_11.frame_code),
            _ => return None,
        };
        // SAFETY: the GIL is held; the frame is live, and larger than what is read of it in these versions.
        unsafe {
            let frame = (self.current_frame)();
            if frame.is_null() {
                return None;
            }
            let code = Owned::new(self, (self.frame_code)(frame))?;
            (code_at.read(frame) == code.0).then_some(code_at)
        }
    }

    /// The code that runs in a frame, borrowed from it.
    ///
    /// # Safety
    /// The GIL is held and `frame` is a live frame object.
    #[inline]
    pub(crate) unsafe fn code_of(&self, frame: Ptr) -> Ptr {
        // SAFETY: the caller says so; that the offset is right was tested. The frame keeps its code.
        unsafe {
            if let Some(code_at) = self.code_at {
                return code_at.read(frame);
            }
            let code = (self.frame_code)(frame);
            (self.dec_ref)(code);
            code
        }
    }

    /// What tells a function of C from all others, however it is bound.
    ///
    /// # Safety
    /// `function` is a live object that [`Self::is_c_function`].
    #[inline]
    pub(crate) unsafe fn definition(&self, function: Ptr) -> usize {
        match self.definition_at {
            // SAFETY: that the word is there was tested.
            Some(at) => unsafe { function.byte_add(at).cast::<usize>().read() },
            // SAFETY: the object is a C function.
            None => unsafe { (self.c_function)(function) as usize },
        }
    }
}
