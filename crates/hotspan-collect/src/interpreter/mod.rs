//! The interpreter's C functions, looked up at run time: one build serves CPython 3.10 and newer, and code that has no
//! interpreter (the tests of this crate) still links. Nothing here reads inside an object, but for its type,
//! and what [`fields`] has tested.
//!
//! "The GIL is held" stands here and in what uses this for "this thread is attached to the interpreter". In a free-threaded
//! build other threads are so at the same time: what relies on more than being attached asks [`Interpreter::is_parallel`].

mod callback;
mod fields;

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use callback::TypeSpecification;
pub(crate) use callback::VectorFunction;
use fields::CodeAt;

/// `PyObject`: what is in it differs between builds with a lock and those without.
#[derive(Debug)]
#[repr(C)]
pub struct Object {
    opaque: [u8; 0],
}

/// A borrowed or owned `PyObject *`; each function says which.
pub type Ptr = *mut Object;

/// `Py_tracefunc`.
pub(crate) type ProfileFunction = unsafe extern "C" fn(Ptr, Ptr, c_int, Ptr) -> c_int;
/// A `METH_FASTCALL` function.
pub(crate) type FastFunction = unsafe extern "C" fn(Ptr, *const Ptr, isize) -> Ptr;

const METH_FASTCALL: c_int = 0x80;

/// `PyMethodDef`, part of the stable ABI.
#[repr(C)]
pub(crate) struct MethodDefinition {
    name: *const c_char,
    function: Option<FastFunction>,
    flags: c_int,
    doc: *const c_char,
}

impl MethodDefinition {
    pub(crate) const fn fast(name: &'static CStr, function: FastFunction) -> Self {
        Self { name: name.as_ptr(), function: Some(function), flags: METH_FASTCALL, doc: std::ptr::null() }
    }
}

// SAFETY: it is written once, at compile time, and points to constants.
unsafe impl Sync for MethodDefinition {}

macro_rules! interpreter {
    (required { $($name:ident: $symbol:literal, $type:ty;)* } optional { $($maybe:ident: $maybe_symbol:literal, $maybe_type:ty;)* }
     data { $($data:ident: $data_symbol:literal;)* }) => {
        /// What is used of the interpreter.
        pub(crate) struct Interpreter {
            $(pub(crate) $name: $type,)*
            $(pub(crate) $maybe: Option<$maybe_type>,)*
            $(pub(crate) $data: Ptr,)*
            /// Whether threads run Python code at the same time: a free-threaded build, whether it uses a lock now or not.
            pub(crate) is_parallel: bool,
            /// How many bytes of an object come before what its type adds. The last word of them is the type.
            header: usize,
            /// Where in a C function object the pointer to its definition is; `None` where the test of it failed.
            definition_at: Option<usize>,
            code_at: Option<CodeAt>,
        }

        impl Interpreter {
            fn look_up() -> Option<Self> {
                Some(Self {
                    // SAFETY: these are the interpreter's own symbols, of these types in every version since 3.10.
                    $($name: unsafe { std::mem::transmute::<*mut c_void, $type>(symbol($symbol)?) },)*
                    // SAFETY: a symbol that is there has this type in every version that has it.
                    $($maybe: symbol($maybe_symbol).map(|found| unsafe { std::mem::transmute::<*mut c_void, $maybe_type>(found) }),)*
                    $($data: symbol($data_symbol)?.cast(),)*
                    is_parallel: false,
                    header: HEADER,
                    definition_at: None,
                    code_at: None,
                })
            }
        }
    };
}

interpreter! {
    required {
        inc_ref: c"Py_IncRef", unsafe extern "C" fn(Ptr);
        dec_ref: c"Py_DecRef", unsafe extern "C" fn(Ptr);
        get_attribute: c"PyObject_GetAttrString", unsafe extern "C" fn(Ptr, *const c_char) -> Ptr;
        call_object: c"PyObject_CallObject", unsafe extern "C" fn(Ptr, Ptr) -> Ptr;
        repr: c"PyObject_Repr", unsafe extern "C" fn(Ptr) -> Ptr;
        import: c"PyImport_ImportModule", unsafe extern "C" fn(*const c_char) -> Ptr;
        text_and_size: c"PyUnicode_AsUTF8AndSize", unsafe extern "C" fn(Ptr, *mut isize) -> *const c_char;
        new_text: c"PyUnicode_FromString", unsafe extern "C" fn(*const c_char) -> Ptr;
        as_long: c"PyLong_AsLong", unsafe extern "C" fn(Ptr) -> c_long;
        new_long: c"PyLong_FromLong", unsafe extern "C" fn(c_long) -> Ptr;
        as_double: c"PyFloat_AsDouble", unsafe extern "C" fn(Ptr) -> f64;
        new_tuple: c"PyTuple_New", unsafe extern "C" fn(isize) -> Ptr;
        set_tuple_item: c"PyTuple_SetItem", unsafe extern "C" fn(Ptr, isize, Ptr) -> c_int;
        next_pair: c"PyDict_Next", unsafe extern "C" fn(Ptr, *mut isize, *mut Ptr, *mut Ptr) -> c_int;
        clear_error: c"PyErr_Clear", unsafe extern "C" fn();
        fetch_error: c"PyErr_Fetch", unsafe extern "C" fn(*mut Ptr, *mut Ptr, *mut Ptr);
        restore_error: c"PyErr_Restore", unsafe extern "C" fn(Ptr, Ptr, Ptr);
        new_function: c"PyCFunction_NewEx", unsafe extern "C" fn(*const MethodDefinition, Ptr, Ptr) -> Ptr;
        c_function: c"PyCFunction_GetFunction", unsafe extern "C" fn(Ptr) -> *mut c_void;
        c_self: c"PyCFunction_GetSelf", unsafe extern "C" fn(Ptr) -> Ptr;
        frame_code: c"PyFrame_GetCode", unsafe extern "C" fn(Ptr) -> Ptr;
        frame_line: c"PyFrame_GetLineNumber", unsafe extern "C" fn(Ptr) -> c_int;
        code_line: c"PyCode_Addr2Line", unsafe extern "C" fn(Ptr, c_int) -> c_int;
        set_trace: c"PyEval_SetTrace", unsafe extern "C" fn(Option<ProfileFunction>, Ptr);
        current_frame: c"PyEval_GetFrame", unsafe extern "C" fn() -> Ptr;
        type_from: c"PyType_FromSpec", unsafe extern "C" fn(*mut TypeSpecification) -> Ptr;
        allocate: c"PyType_GenericAlloc", unsafe extern "C" fn(Ptr, isize) -> Ptr;
        vectorcall: c"PyVectorcall_Call", unsafe extern "C" fn(Ptr, Ptr, Ptr) -> Ptr;
        version: c"Py_GetVersion", unsafe extern "C" fn() -> *const c_char;
    }
    optional {
        frame_back: c"PyFrame_GetBack", unsafe extern "C" fn(Ptr) -> Ptr;
        set_profile: c"PyEval_SetProfile", unsafe extern "C" fn(Option<ProfileFunction>, Ptr);
        set_profile_of: c"_PyEval_SetProfile", unsafe extern "C" fn(*mut c_void, Option<ProfileFunction>, Ptr) -> c_int;
        this_interpreter: c"PyInterpreterState_Get", unsafe extern "C" fn() -> *mut c_void;
        first_thread: c"PyInterpreterState_ThreadHead", unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        thread_number: c"PyThreadState_GetID", unsafe extern "C" fn(*mut c_void) -> u64;
        next_thread: c"PyThreadState_Next", unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    }
    data {
        none: c"_Py_NoneStruct";
        function_type: c"PyCFunction_Type";
        method_type: c"PyCMethod_Type";
        descriptor_type: c"PyMethodDescr_Type";
        python_function_type: c"PyFunction_Type";
        module_type: c"PyModule_Type";
        text_type: c"PyUnicode_Type";
        type_type: c"PyType_Type";
    }
}

// SAFETY: function pointers and addresses of static objects, written once.
unsafe impl Send for Interpreter {}
// SAFETY: nothing changes after it was looked up, so that threads read it side by side.
unsafe impl Sync for Interpreter {}

impl std::fmt::Debug for Interpreter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreter").field("definition_at", &self.definition_at).finish_non_exhaustive()
    }
}

/// The interpreter of this process, once it was found.
static FOUND: AtomicPtr<Interpreter> = AtomicPtr::new(null_mut());

/// A symbol of this process.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: searches the libraries of the process for a name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The header of an object: a count of references and the type; in a free-threaded build the thread that owns it, flags, a
/// lock and a second count too.
const HEADER: usize = 16;
const PARALLEL_HEADER: usize = 32;

impl Interpreter {
    /// The interpreter of this process; `None` when there is none. The GIL is held.
    #[inline]
    pub(crate) fn get() -> Option<&'static Self> {
        // SAFETY: null, or what `find_and_keep` has kept, which is never freed.
        let found = unsafe { FOUND.load(Ordering::Acquire).as_ref() };
        if found.is_some() { found } else { Self::find_and_keep() }
    }

    /// Threads may come here at the same time: none waits for another that is in the interpreter, and the first one's stays.
    #[cold]
    fn find_and_keep() -> Option<&'static Self> {
        let found = Box::into_raw(Box::new(Self::find()?));
        match FOUND.compare_exchange(null_mut(), found, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: nobody frees it any more.
            Ok(_) => unsafe { found.as_ref() },
            Err(first) => {
                // SAFETY: it was made above and never shown to anyone; the other one is never freed.
                unsafe {
                    drop(Box::from_raw(found));
                    first.as_ref()
                }
            }
        }
    }

    fn find() -> Option<Self> {
        let mut found = Self::look_up()?;
        found.is_parallel = found.version_text().contains("free-threading");
        found.header = if found.is_parallel { PARALLEL_HEADER } else { HEADER };
        // SAFETY: types are objects, larger than both headers.
        if unsafe { found.type_of(found.text_type) } != found.type_type {
            return None;
        }
        // SAFETY: the caller holds the GIL, as everyone who gets here from Python does.
        unsafe {
            found.definition_at = found.find_definition();
            found.code_at = found.find_code();
        }
        Some(found)
    }

    /// The type of an object.
    ///
    /// # Safety
    /// `object` is a live object.
    #[inline]
    pub(crate) unsafe fn type_of(&self, object: Ptr) -> Ptr {
        // SAFETY: the caller says so; the type is the last word of the header.
        unsafe { object.byte_add(self.header - size_of::<Ptr>()).cast::<Ptr>().read() }
    }

    fn version_text(&self) -> std::borrow::Cow<'static, str> {
        // SAFETY: a constant text.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy()
    }

    /// Minor version of Python 3; 0 for what is not Python 3.
    pub(crate) fn minor_version(&self) -> u32 {
        let text = self.version_text();
        let minor = text.strip_prefix("3.").and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        minor.and_then(|minor| minor.parse().ok()).unwrap_or(0)
    }

    /// Whether an object is a function of C, bound to something or not.
    ///
    /// # Safety
    /// `object` is a live object.
    #[inline]
    pub(crate) unsafe fn is_c_function(&self, object: Ptr) -> bool {
        // SAFETY: the caller says so.
        let kind = unsafe { self.type_of(object) };
        kind == self.function_type || kind == self.method_type
    }

    /// Whether an object is a function of Python.
    ///
    /// # Safety
    /// `object` is a live object.
    pub(crate) unsafe fn is_python_function(&self, object: Ptr) -> bool {
        // SAFETY: the caller says so.
        unsafe { self.type_of(object) == self.python_function_type }
    }

    /// Calls `function` with these arguments, whose references pass to the call.
    ///
    /// # Safety
    /// The GIL is held and `function` is a live object.
    pub(crate) unsafe fn call(&'static self, function: Ptr, arguments: &[Ptr]) -> Option<Owned> {
        // SAFETY: a new tuple takes the references.
        unsafe {
            let tuple = Owned::new(self, (self.new_tuple)(arguments.len() as isize))?;
            for (index, &argument) in arguments.iter().enumerate() {
                (self.set_tuple_item)(tuple.0, index as isize, argument);
            }
            Owned::new(self, (self.call_object)(function, tuple.0))
        }
    }

    /// A new reference to an object.
    ///
    /// # Safety
    /// The GIL is held and the object is live.
    pub(crate) unsafe fn new_reference(&self, object: Ptr) -> Ptr {
        // SAFETY: the caller says so.
        unsafe { (self.inc_ref)(object) };
        object
    }

    /// The text of a `str`, bytes that are no text replaced.
    ///
    /// # Safety
    /// The GIL is held and the object is live.
    pub(crate) unsafe fn text(&self, object: Ptr) -> Option<String> {
        let mut size = 0;
        // SAFETY: fails with an error set when the object is no text.
        unsafe {
            if self.type_of(object) != self.text_type {
                return None;
            }
            let start = (self.text_and_size)(object, &raw mut size);
            if start.is_null() {
                (self.clear_error)();
                return None;
            }
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), size as usize);
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    /// Runs `act` with the thread's current exception put aside.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
        // SAFETY: what is fetched is restored.
        unsafe {
            (self.fetch_error)(&raw mut kind, &raw mut value, &raw mut trace);
            let result = act();
            (self.restore_error)(kind, value, trace);
            result
        }
    }
}

/// A reference that is given back. Lives and dies with the GIL held.
pub struct Owned(pub(crate) Ptr, &'static Interpreter);

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Owned").field(&self.0).finish()
    }
}

impl Owned {
    /// Takes over a reference; `None` and no error set when there is none.
    ///
    /// # Safety
    /// The GIL is held; `object` is null or a reference that nobody else gives back.
    pub(crate) unsafe fn new(python: &Interpreter, object: Ptr) -> Option<Self> {
        if object.is_null() {
            // SAFETY: the GIL is held.
            unsafe { (python.clear_error)() };
            return None;
        }
        // SAFETY: the one interpreter lives in a static, or is about to.
        let python = unsafe { &*std::ptr::from_ref(python) };
        Some(Self(object, python))
    }

    /// An attribute.
    ///
    /// # Safety
    /// The GIL is held.
    pub(crate) unsafe fn attribute(&self, name: &CStr) -> Option<Self> {
        // SAFETY: the object is live as long as `self`.
        unsafe { Self::new(self.1, (self.1.get_attribute)(self.0, name.as_ptr())) }
    }

    /// The object, borrowed.
    #[must_use]
    pub fn as_ptr(&self) -> Ptr {
        self.0
    }

    /// Hands the reference to someone who gives it back.
    pub(crate) fn into_raw(self) -> Ptr {
        let object = self.0;
        std::mem::forget(self);
        object
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the GIL is held by contract.
        unsafe { (self.1.dec_ref)(self.0) };
    }
}

/// An attribute as text.
///
/// # Safety
/// The GIL is held and the object is live.
pub(crate) unsafe fn text_attribute(
    python: &'static Interpreter,
    object: Ptr,
    name: &CStr,
) -> Option<String> {
    // SAFETY: the caller says so.
    unsafe {
        let value = Owned::new(python, (python.get_attribute)(object, name.as_ptr()))?;
        python.text(value.0)
    }
}

/// A text for the interpreter; what is after a NUL is lost.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}
