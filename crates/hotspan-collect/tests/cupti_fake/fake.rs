//! A libcupti of our own, compiled for the tests: opening it, driving it, and reading what was recorded of it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hotspan_collect::cupti::{CuptiError, Library, Options, Session};
use hotspan_store::{SpanId, Trace};

pub(crate) const RUNTIME: u32 = 5;
pub(crate) const DRIVER: u32 = 4;
pub(crate) const GRAPH_LAUNCH: u32 = 6;

/// Compiles the fake; `flags` make variants of it.
pub(crate) fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let library =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.so", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cupti.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).args(flags).arg("-lpthread");
    assert!(command.status().unwrap().success(), "{command:?}");
    library
}

/// The fake and its controls.
pub(crate) struct Fake {
    pub(crate) library: Library,
    pub(crate) path: PathBuf,
    pub(crate) handle: *mut c_void,
}

// SAFETY: the handle of a library that is never closed.
unsafe impl Send for Fake {}

/// Calls a control of the fake.
macro_rules! control {
    ($fake:expr, $name:literal ( $($type:ty : $value:expr),* ) $(-> $result:ty)?) => {{
        let name = std::ffi::CString::new($name).unwrap();
        // SAFETY: the library is open.
        let address = unsafe { libc::dlsym($fake.handle, name.as_ptr()) };
        assert!(!address.is_null(), $name);
        // SAFETY: the types are those of fake_cupti.c.
        let function: unsafe extern "C" fn($($type),*) $(-> $result)? = unsafe { std::mem::transmute(address) };
        // SAFETY: the function of this name takes these arguments, as the types above say.
        unsafe { function($($value),*) }
    }};
}

pub(crate) use control;

impl Fake {
    pub(crate) fn open(path: PathBuf) -> Self {
        let library = Library::at(&path).unwrap();
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a library of our own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self { library, path, handle }
    }

    pub(crate) fn start(&self) -> Result<Session, CuptiError> {
        Session::start(&self.library, Options { counters: false, waits: true, ..Options::default() })
    }

    pub(crate) fn launch(&self, name: &'static std::ffi::CStr, stream: u32, duration: u64) -> u32 {
        control!(self, "fake_launch"(*const c_char: name.as_ptr(), u32: stream, u64: duration) -> u32)
    }

    pub(crate) fn call(&self, kind: u32, function: u32) -> u32 {
        control!(self, "fake_call"(u32: kind, u32: function) -> u32)
    }

    pub(crate) fn fail(&self, function: &std::ffi::CStr, kind: u32, code: c_int) {
        control!(self, "fake_fail"(*const c_char: function.as_ptr(), u32: kind, c_int: code));
    }

    pub(crate) fn enabled(&self) -> c_int {
        control!(self, "fake_enabled"() -> c_int)
    }
}

/// The fake, for one test at a time: a process has one CUPTI.
pub(crate) fn fake() -> MutexGuard<'static, Fake> {
    static FAKE: OnceLock<Mutex<Fake>> = OnceLock::new();
    let fake = FAKE.get_or_init(|| Mutex::new(Fake::open(compile("fake_cupti", &[]))));
    let fake = fake.lock().unwrap_or_else(PoisonError::into_inner);
    control!(fake, "fake_reset"());
    fake
}

pub(crate) fn trace(session: Session) -> Trace {
    session.stop().expect("the session is this process's").into_builder().finish()
}

/// The spans of a category, in the order of the trace.
fn of_category(trace: &Trace, category: &str) -> impl Iterator<Item = SpanId> {
    let wanted = move |span: &SpanId| trace.category_name(trace.spans().category(*span)) == category;
    trace.spans().ids().filter(wanted)
}

/// Names of the spans of a category.
pub(crate) fn names(trace: &Trace, category: &str) -> Vec<String> {
    of_category(trace, category).map(|span| trace.span_name(span).to_owned()).collect()
}

/// What the spans of a category have under a key.
pub(crate) fn int(trace: &Trace, category: &str, key: &str) -> Vec<Option<i64>> {
    let reader = trace.arg(key);
    of_category(trace, category).map(|span| reader.int(trace.spans().args(span))).collect()
}
