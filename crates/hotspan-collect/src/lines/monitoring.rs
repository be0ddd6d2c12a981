//! Callbacks for `sys.monitoring`, Python 3.12 and newer. They raise nothing and ask for nothing to be disabled.
//!
//! The Python module registers them. Lines, starts, resumes, returns and yields are asked for by code object, so only those
//! watched pay. The interpreter has exceptions that leave a frame or enter one only for all code together; these look the
//! code up and go.

use std::ffi::c_int;

use super::active::{self, Entry};
use crate::interpreter::{Interpreter, MethodDefinition, Object};

/// The events of `sys.monitoring` that have a callback here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A line begins.
    Line,
    /// A call begins.
    Start,
    /// A generator or coroutine goes on.
    Resume,
    /// An exception is thrown into a generator or coroutine.
    Throw,
    /// A call returns.
    Return,
    /// A generator or coroutine waits.
    Yield,
    /// An exception leaves a frame.
    Unwind,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Line, Self::Start, Self::Resume, Self::Throw, Self::Return, Self::Yield, Self::Unwind];

    /// Its name in `sys.monitoring.events`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "LINE",
            Self::Start => "PY_START",
            Self::Resume => "PY_RESUME",
            Self::Throw => "PY_THROW",
            Self::Return => "PY_RETURN",
            Self::Yield => "PY_YIELD",
            Self::Unwind => "PY_UNWIND",
        }
    }

    /// Whether it can be asked for by code object.
    #[must_use]
    pub fn is_local(self) -> bool {
        !matches!(self, Self::Throw | Self::Unwind)
    }

    /// A new Python function that handles it; null, with an exception set, when there is no memory.
    ///
    /// # Safety
    /// The GIL is held.
    #[must_use]
    pub unsafe fn callback(self) -> *mut Object {
        let definition = match self {
            Self::Line => &LINE,
            Self::Start => &START,
            Self::Resume | Self::Throw => &RESUME,
            Self::Return | Self::Yield | Self::Unwind => &LEAVE,
        };
        let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
        // SAFETY: the definition is a constant; the GIL is held.
        unsafe { (python.new_function)(definition, std::ptr::null_mut(), std::ptr::null_mut()) }
    }
}

static LINE: MethodDefinition = MethodDefinition::fast(c"hotspan_line", on_line);
static START: MethodDefinition = MethodDefinition::fast(c"hotspan_start", on_start);
static RESUME: MethodDefinition = MethodDefinition::fast(c"hotspan_resume", on_resume);
static LEAVE: MethodDefinition = MethodDefinition::fast(c"hotspan_leave", on_leave);

/// Two arguments: the code object and a number.
#[inline]
unsafe fn arguments(arguments: *const *mut Object, count: isize) -> Option<(*mut Object, *mut Object)> {
    // SAFETY: Python promises `count` arguments.
    (count >= 2).then(|| unsafe { (*arguments, *arguments.add(1)) })
}

#[inline]
fn none() -> *mut Object {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    // SAFETY: the object is None; callers hold the GIL.
    unsafe { (python.inc_ref)(python.none) };
    python.none
}

unsafe extern "C" fn on_line(_: *mut Object, given: *const *mut Object, count: isize) -> *mut Object {
    // SAFETY: called by Python with the GIL held, with a code object and a line number.
    unsafe {
        if let (Some((code, line)), Some(python)) = (arguments(given, count), Interpreter::get()) {
            active::line(code, std::ptr::null_mut(), (python.as_long)(line) as u32);
        }
    }
    none()
}

unsafe extern "C" fn on_start(_: *mut Object, given: *const *mut Object, count: isize) -> *mut Object {
    // SAFETY: called by Python with the GIL held, with a code object and an offset.
    unsafe {
        if let Some((code, _)) = arguments(given, count) {
            active::enter(code, std::ptr::null_mut(), Entry::Start);
        }
    }
    none()
}

unsafe extern "C" fn on_resume(_: *mut Object, given: *const *mut Object, count: isize) -> *mut Object {
    // SAFETY: called by Python with the GIL held, with a code object and an offset in it.
    unsafe {
        if let (Some((code, offset)), Some(python)) = (arguments(given, count), Interpreter::get())
            && active::is_watched(code)
        {
            let line = (python.code_line)(code, (python.as_long)(offset) as c_int);
            active::enter(code, std::ptr::null_mut(), Entry::Resume(line.max(0) as u32));
        }
    }
    none()
}

unsafe extern "C" fn on_leave(_: *mut Object, given: *const *mut Object, count: isize) -> *mut Object {
    // SAFETY: called by Python with the GIL held, with a code object first.
    unsafe {
        if let Some((code, _)) = arguments(given, count) {
            active::leave(code, std::ptr::null_mut());
        }
    }
    none()
}
