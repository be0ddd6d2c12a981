//! Events of `sys.monitoring`, from Python 3.12 on: for all threads at once, those that begin later among them.

use std::ffi::{CStr, c_long};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::calls::CallsError;
use crate::calls::events::{Callee, called_from, entered, left};
use crate::interpreter::{Interpreter, Owned, Ptr, VectorFunction};
use crate::locks::lock_unless_forked as lock;

/// Tool ids to try: first those that are nobody's by custom.
const TOOL_IDS: [c_long; 6] = [3, 4, 2, 1, 0, 5];

struct Event {
    name: &'static CStr,
    function: VectorFunction,
    of_builtins: bool,
}

static EVENTS: [Event; 9] = [
    Event { name: c"PY_START", function: python_entered, of_builtins: false },
    Event { name: c"PY_RESUME", function: python_entered, of_builtins: false },
    Event { name: c"PY_THROW", function: python_entered, of_builtins: false },
    Event { name: c"PY_RETURN", function: python_left, of_builtins: false },
    Event { name: c"PY_YIELD", function: python_left, of_builtins: false },
    Event { name: c"PY_UNWIND", function: python_left, of_builtins: false },
    Event { name: c"CALL", function: c_entered, of_builtins: true },
    Event { name: c"C_RETURN", function: c_left, of_builtins: true },
    Event { name: c"C_RAISE", function: c_left, of_builtins: true },
];

/// What the interpreter calls for each of them: made once, since each is an object with a type of its own.
static CALLBACKS: [AtomicUsize; EVENTS.len()] = [const { AtomicUsize::new(0) }; EVENTS.len()];

/// A new reference to the callback of an event.
unsafe fn callback(python: &'static Interpreter, event: &Event, kept: &AtomicUsize) -> Option<Ptr> {
    // SAFETY: the caller holds the GIL, and one thread at a time starts; the reference that is kept is never given back, so
    // that the address stays valid.
    unsafe {
        if kept.load(Ordering::Acquire) == 0 {
            kept.store(python.callback(event.function)?.into_raw() as usize, Ordering::Release);
        }
        Some(python.new_reference(kept.load(Ordering::Acquire) as Ptr))
    }
}

/// The bits of an argument count that count; the first says that the slot before the arguments is free.
const COUNT: usize = usize::MAX >> 1;

/// What is passed for a first argument that there is not.
static MISSING: AtomicUsize = AtomicUsize::new(0);

/// The tool id in use.
static TOOL: Mutex<Option<c_long>> = Mutex::new(None);

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn start(python: &'static Interpreter, builtins: bool) -> Result<(), CallsError> {
    // SAFETY: the caller holds the GIL; references that `call` is given pass to it.
    unsafe {
        // A forked child may have inherited callbacks that record nothing.
        stop(python);
        let monitoring = module(python).ok_or(CallsError::NoEvents)?;
        let use_id = monitoring.attribute(c"use_tool_id").ok_or(CallsError::NoEvents)?;
        let name = || (python.new_text)(c"hotspan".as_ptr());
        let tool = TOOL_IDS
            .into_iter()
            .find(|&tool| python.call(use_id.0, &[(python.new_long)(tool), name()]).is_some());
        let tool = tool.ok_or(CallsError::NoToolId)?;
        if let Some(mut kept) = lock(&TOOL) {
            *kept = Some(tool);
        }
        if listen(python, &monitoring, tool, builtins).is_none() {
            stop(python);
            return Err(CallsError::NoEvents);
        }
    }
    Ok(())
}

unsafe fn module(python: &'static Interpreter) -> Option<Owned> {
    // SAFETY: all callers hold the GIL; importing returns a new reference or null, which is what `Owned` takes.
    unsafe { Owned::new(python, (python.import)(c"sys".as_ptr()))?.attribute(c"monitoring") }
}

unsafe fn listen(
    python: &'static Interpreter,
    monitoring: &Owned,
    tool: c_long,
    builtins: bool,
) -> Option<()> {
    // SAFETY: the caller holds the GIL; `monitoring` is a live module, and references that `call` is given pass to it.
    unsafe {
        let missing = monitoring.attribute(c"MISSING")?;
        MISSING.store(missing.0 as usize, Ordering::Relaxed);
        let events = monitoring.attribute(c"events")?;
        let register = monitoring.attribute(c"register_callback")?;
        let mut all = 0;
        // An event without a callback would still cost, so that only those that are wanted are asked for.
        let wanted = EVENTS.iter().zip(&CALLBACKS).filter(|(event, _)| builtins || !event.of_builtins);
        for (event, kept) in wanted {
            let number = events.attribute(event.name)?;
            let bit = (python.as_long)(number.0);
            let callback = callback(python, event, kept)?;
            python.call(register.0, &[(python.new_long)(tool), number.into_raw(), callback])?;
            all |= bit;
        }
        let set = monitoring.attribute(c"set_events")?;
        python.call(set.0, &[(python.new_long)(tool), (python.new_long)(all)])?;
    }
    Some(())
}

/// # Safety
/// The GIL is held.
pub(crate) unsafe fn stop(python: &'static Interpreter) {
    let Some(tool) = lock(&TOOL).and_then(|mut tool| tool.take()) else { return };
    // SAFETY: the caller holds the GIL, and every reference is owned or passes to a call. What fails leaves callbacks
    // that record nothing.
    unsafe {
        python.aside(|| {
            let Some(monitoring) = module(python) else { return };
            if let Some(set) = monitoring.attribute(c"set_events") {
                python.call(set.0, &[(python.new_long)(tool), (python.new_long)(0)]);
            }
            if let (Some(register), Some(events)) =
                (monitoring.attribute(c"register_callback"), monitoring.attribute(c"events"))
            {
                for event in &EVENTS {
                    if let Some(number) = events.attribute(event.name) {
                        let none = python.new_reference(python.none);
                        python.call(register.0, &[(python.new_long)(tool), number.into_raw(), none]);
                    }
                }
            }
            if let Some(free) = monitoring.attribute(c"free_tool_id") {
                python.call(free.0, &[(python.new_long)(tool)]);
            }
        });
    }
}

/// The answer to every event: `None`, which lives for ever in the versions that have these events.
#[inline]
fn answer(python: &Interpreter) -> Ptr {
    python.none
}

unsafe extern "C" fn python_entered(_: Ptr, arguments: *const Ptr, count: usize, _: Ptr) -> Ptr {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    if count & COUNT >= 1 {
        // SAFETY: the interpreter holds the GIL and passes the code object, alive, as the first of `count` arguments.
        unsafe { entered(python, Callee::Code(*arguments, None)) };
    }
    answer(python)
}

unsafe extern "C" fn python_left(_: Ptr, arguments: *const Ptr, count: usize, _: Ptr) -> Ptr {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    if count & COUNT >= 1 {
        // SAFETY: the interpreter holds the GIL and passes the code object, alive, as the first of `count` arguments.
        unsafe { left(python, Callee::Code(*arguments, None)) };
    }
    answer(python)
}

/// The function of C that an event is about, if it is about one.
#[inline]
unsafe fn callee(python: &Interpreter, arguments: *const Ptr, count: usize) -> Option<Callee> {
    if count & COUNT < 4 {
        return None;
    }
    // SAFETY: there are four arguments, all alive during the callback: code, offset, callable and first argument, or a
    // mark that there is none.
    unsafe {
        let callable = *arguments.add(2);
        if python.is_c_function(callable) {
            return Some(Callee::Builtin(callable));
        }
        let object = *arguments.add(3);
        // A method without an object fails before anything is called.
        if python.type_of(callable) == python.descriptor_type
            && object as usize != MISSING.load(Ordering::Relaxed)
        {
            return Some(Callee::Method(callable, object));
        }
    }
    None
}

unsafe extern "C" fn c_entered(_: Ptr, arguments: *const Ptr, count: usize, _: Ptr) -> Ptr {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    // SAFETY: the interpreter holds the GIL and passes `count` live arguments, the second of them the offset. This event
    // comes for functions of Python too, before they are entered.
    unsafe {
        if count & COUNT >= 2 {
            called_from(python, || !((python.as_long)(*arguments.add(1)) as i32));
        }
        if let Some(callee) = callee(python, arguments, count) {
            entered(python, callee);
        }
    }
    answer(python)
}

unsafe extern "C" fn c_left(_: Ptr, arguments: *const Ptr, count: usize, _: Ptr) -> Ptr {
    let Some(python) = Interpreter::get() else { return std::ptr::null_mut() };
    // SAFETY: the interpreter holds the GIL and passes `count` live arguments.
    unsafe {
        if let Some(callee) = callee(python, arguments, count) {
            left(python, callee);
        }
    }
    answer(python)
}
