//! What happens at an event, whichever way the interpreter reports it: a function is entered or left.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::calls::functions::{Kind, describe_builtin};
use crate::calls::thread::{FunctionId, Key, Open, Site, ThreadCalls};
use crate::calls::threads::{Mine, last_thread, own_calls, this_thread};
use crate::calls::tracer::{Tracer, running};
use crate::clock::{self, Ticks};
use crate::interpreter::{Interpreter, Owned, Ptr, text_attribute};
use crate::locks::lock_unless_forked as lock;

/// What the callee of an event is.
#[derive(Clone, Copy)]
pub(crate) enum Callee {
    /// This code, in the frame if the event gave one.
    Code(Ptr, Option<Ptr>),
    /// This function of C.
    Builtin(Ptr),
    /// This method of C, on that object.
    Method(Ptr, Ptr),
}

impl Callee {
    #[inline]
    fn is_code(self) -> bool {
        matches!(self, Self::Code(..))
    }

    /// # Safety
    /// The objects are live.
    #[inline(always)]
    unsafe fn key(self, python: &Interpreter, by_type: bool) -> Key {
        // SAFETY: the caller promises that the objects are live, which is all that reading their definition needs.
        unsafe {
            let key = match self {
                Self::Code(code, _) => return code as Key,
                Self::Builtin(function) => python.definition(function),
                Self::Method(descriptor, _) => descriptor as Key,
            };
            if by_type { self.key_with_type(python, key) } else { key }
        }
    }

    /// Methods of C told apart by the type they are called on, as torch.profiler shows them.
    #[inline(never)]
    unsafe fn key_with_type(self, python: &Interpreter, key: Key) -> Key {
        // SAFETY: called by `key` alone, whose caller promises that the objects are live.
        let object = unsafe {
            match self {
                Self::Builtin(function) => (python.c_self)(function),
                Self::Method(_, object) => object,
                Self::Code(..) => std::ptr::null_mut(),
            }
        };
        if object.is_null() {
            return key;
        }
        // SAFETY: what a live function is bound to is live as well. An odd number is the address of nothing.
        key ^ (unsafe { python.type_of(object) } as Key).rotate_left(20) | 1
    }
}

/// Whether any thread wants to know where calls are made from.
pub(crate) static WANTS_SITES: AtomicBool = AtomicBool::new(false);

/// Notes where the next call of this thread is made from, when that is wanted.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub(crate) unsafe fn called_from(python: &Interpreter, site: impl FnOnce() -> Site) {
    if WANTS_SITES.load(Ordering::Relaxed)
        && let Some(mine) = this_thread(python.is_parallel)
    {
        // SAFETY: the calls of this thread, which may use them as long as `mine` is there: see `threads`. No reference to them
        // is in use, for events come from the interpreter, never from within another event that holds one.
        unsafe {
            if (*mine.calls()).wants_sites() {
                (*mine.calls()).site = site();
            }
        }
    }
}

/// A call begins. The short way is part of the callback, where the kind of callee is fixed; all else is out of its way.
///
/// # Safety
/// The GIL is held; the objects are live.
#[inline(always)]
pub(crate) unsafe fn entered(python: &'static Interpreter, callee: Callee) {
    let mine = last_thread();
    // SAFETY: null, or the calls of this thread, which holds the GIL: see `threads`. No reference to them is in use, for
    // events come from the interpreter, never from within another event that holds one. The caller keeps the objects alive.
    unsafe {
        if mine.is_null() || !(*mine).enter_plainly(|| callee.key(python, false), callee.is_code()) {
            entered_otherwise(python, callee);
        }
    }
}

#[inline(never)]
unsafe fn entered_otherwise(python: &'static Interpreter, callee: Callee) {
    let Some(mine) = this_thread(python.is_parallel) else { return };
    let calls = mine.calls();
    // SAFETY: as in `entered`, which alone calls this. Each reference ends before Python code may run in `entered_anew`.
    unsafe {
        if (*calls).is_busy() {
            return;
        }
        let key = callee.key(python, (*calls).by_type);
        if !(*calls).has_timer
            && key != (*calls).module_call
            && let Some(edge) = (*calls).edge_to(key)
        {
            (*calls).enter(edge, key, callee.is_code(), clock::now);
            return;
        }
        python.aside(|| entered_anew(python, mine, callee, key));
    }
}

/// A call ends that the event names.
///
/// # Safety
/// The GIL is held; the objects are live.
#[inline(always)]
pub(crate) unsafe fn left(python: &'static Interpreter, callee: Callee) {
    let now = clock::now();
    let mine = last_thread();
    // SAFETY: as in `entered`.
    unsafe {
        let is_it = |open: &Open| open.leaves_as == callee.key(python, false);
        if mine.is_null() || !(*mine).leave_plainly(now, is_it) {
            left_otherwise(python, now, |thread, now| thread.leave(now, callee.key(python, thread.by_type)));
        }
    }
}

/// The innermost Python function returns, on a Python that always has a GIL.
///
/// # Safety
/// The GIL is held.
#[inline(always)]
pub(crate) unsafe fn left_code(python: &'static Interpreter) {
    let now = clock::now();
    let mine = last_thread();
    // SAFETY: as in `entered`; there is no object.
    unsafe {
        if mine.is_null() || !(*mine).leave_plainly(now, |open| open.is_code) {
            left_otherwise(python, now, ThreadCalls::leave_code);
        }
    }
}

#[inline(never)]
unsafe fn left_otherwise(
    python: &'static Interpreter,
    mut now: Ticks,
    leave: impl FnOnce(&mut ThreadCalls, Ticks),
) {
    let Some(mut mine) = this_thread(python.is_parallel) else { return };
    // SAFETY: the calls of this thread, which may use them as long as `mine` is there. Asking a timer runs Python code, whose
    // events find the state busy; the reference begins afterwards.
    unsafe {
        if (*mine.calls()).is_busy() {
            return;
        }
        if (*mine.calls()).has_timer && (*mine.calls()).depth() > 0 {
            drop(mine);
            now = running().map_or(now, |tracer| tracer.now());
            let Some(again) = this_thread(python.is_parallel) else { return };
            mine = again;
        }
        leave(&mut *mine.calls(), now);
    }
}

/// The long way in: a call that was not made before, or that needs more than its key.
#[cold]
unsafe fn entered_anew(python: &'static Interpreter, mine: Mine, callee: Callee, leaves_as: Key) {
    let Some(tracer) = running() else { return };
    // SAFETY: `mine` is the calls of this thread, which may use them as long as it is there. Naming a function and asking a timer
    // may run Python code and let other threads run: the calls are let go and marked as busy meanwhile, nothing of them is
    // borrowed, and whether they are still of this session is checked afterwards.
    unsafe {
        let (session, by_type) = ((*mine.calls()).session, (*mine.calls()).by_type);
        mine.set_busy(true);
        drop(mine);
        let (key, id) = learn(python, &tracer, callee, leaves_as, by_type);
        if let Some(mine) = own_calls(python.is_parallel) {
            mine.set_busy(false);
        }
        let asked = tracer.has_timer().then(|| tracer.now());
        let Some(mine) = this_thread(python.is_parallel) else { return };
        let calls = mine.calls();
        if (*calls).session != session {
            return;
        }
        let edge = (*calls).edge_to(key).unwrap_or_else(|| (*calls).new_edge(key, id));
        (*calls).enter(edge, leaves_as, callee.is_code(), || asked.unwrap_or_else(clock::now));
    }
}

/// The function that is called, added to the registry when it is new.
unsafe fn learn(
    python: &'static Interpreter,
    tracer: &Tracer,
    callee: Callee,
    key: Key,
    by_type: bool,
) -> (Key, FunctionId) {
    let find = |key| lock(&tracer.functions).and_then(|functions| functions.find(key));
    let add = |key, kind, object| {
        let added = lock(&tracer.functions).map(|mut functions| match functions.find(key) {
            Some(known) => (known, false),
            None => (functions.add(key, kind, object), true),
        });
        let (id, is_new) = added.unwrap_or((FunctionId(u32::MAX), false));
        if !is_new {
            // SAFETY: the GIL is held. Another thread was quicker to add it, so that this reference is nobody's.
            unsafe { (python.dec_ref)(object) };
        }
        id
    };
    // SAFETY: the GIL is held and the objects are live; what passes to the registry is a new reference.
    unsafe {
        match callee {
            Callee::Code(code, frame) => {
                if key == tracer.module_call()
                    && let Some(module) = module_of(python, frame)
                {
                    let key = module.0 as Key;
                    let id = find(key).unwrap_or_else(|| {
                        let class =
                            text_attribute(python, python.type_of(module.0), c"__name__").unwrap_or_default();
                        add(key, Kind::Module { class, number: 0 }, module.into_raw())
                    });
                    return (key, id);
                }
                (key, find(key).unwrap_or_else(|| add(key, Kind::Code, python.new_reference(code))))
            }
            Callee::Builtin(function) => {
                let id = find(key).unwrap_or_else(|| {
                    let (kind, keeps) = describe_builtin(python, function);
                    add(key, kind, keeps)
                });
                (key, id)
            }
            Callee::Method(descriptor, object) => {
                if let Some(id) = find(key) {
                    return (key, id);
                }
                // Bound to its object the method has the same definition as wherever it was bound by hand.
                let bind = Owned::new(python, (python.get_attribute)(descriptor, c"__get__".as_ptr()));
                let bound = bind.and_then(|bind| {
                    // Methods that want their class get it as well.
                    let arguments =
                        [object, python.type_of(object)].map(|object| python.new_reference(object));
                    python.call(bind.0, &arguments)
                });
                let id = match bound.filter(|bound| python.is_c_function(bound.0)) {
                    Some(bound) => {
                        let same = Callee::Builtin(bound.0).key(python, by_type);
                        let (_, id) = learn(python, tracer, Callee::Builtin(bound.0), same, by_type);
                        id
                    }
                    None => {
                        let (kind, keeps) = describe_builtin(python, descriptor);
                        add(key, kind, keeps)
                    }
                };
                if let Some(mut functions) = lock(&tracer.functions) {
                    functions.alias(key, id);
                }
                (key, id)
            }
        }
    }
}

/// The module whose call runs in a frame: the first argument.
unsafe fn module_of(python: &'static Interpreter, frame: Option<Ptr>) -> Option<Owned> {
    // SAFETY: `learn` holds the GIL; the frame is that of the event or the current one, both of which run.
    unsafe {
        let frame = frame.unwrap_or_else(|| (python.current_frame)());
        if frame.is_null() {
            return None;
        }
        let locals = Owned::new(python, (python.get_attribute)(frame, c"f_locals".as_ptr()))?;
        let get = locals.attribute(c"get")?;
        let found = python.call(get.0, &[(python.new_text)(c"self".as_ptr())])?;
        (found.0 != python.none).then_some(found)
    }
}
