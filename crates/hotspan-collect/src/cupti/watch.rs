//! Calls into the runtime and the driver as CUPTI's callbacks see them, instead of CUPTI's records of them.
//!
//! Records come by kind: with one on, CUPTI steps into every call of the program, also into those that it then leaves out,
//! and a training step makes eight calls for each kernel. On an H200 that made a step of ResNet-50 a fifth slower. Callbacks
//! are switched on function by function. Only one tool of a process can have them, and torch.profiler keeps them once it
//! has run: where CUPTI refuses, the session asks for records.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use crate::clock::{self, Ticks};
use crate::cupti::abi::{CallbackData, CuptiResult, DOMAIN_DRIVER, DOMAIN_RUNTIME, Functions, SITE_ENTER};
use crate::cupti::calls::Calls;
use crate::cupti::records::Call;
use crate::locks::lock;

/// Calls are kept in pieces of this many, so that none waits while all are copied to a larger one.
const PIECE: usize = 4096;

#[derive(Debug, Default)]
struct Seen {
    pieces: Vec<Vec<Call>>,
    /// What began before is not of this recording.
    since: Ticks,
    /// How many more may be kept.
    room: usize,
    beyond_limit: u64,
}

/// CUPTI's callbacks come with an address, but may come late; what they write to is therefore static.
static SEEN: Mutex<Seen> = Mutex::new(Seen { pieces: Vec::new(), since: Ticks(0), room: 0, beyond_limit: 0 });

fn seen() -> MutexGuard<'static, Seen> {
    lock(&SEEN)
}

thread_local! {
    /// The operating system's number of this thread, once asked for.
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The number of the runtime call that this thread made last.
    static RUNTIME_CALL: Cell<u32> = const { Cell::new(0) };
}

fn this_thread() -> u32 {
    THREAD.with(|number| {
        if number.get() == 0 {
            // SAFETY: takes nothing and cannot fail.
            number.set(unsafe { libc::gettid() }.unsigned_abs());
        }
        number.get()
    })
}

/// Whether a driver call is how the runtime does what the program asked it for: it then has the runtime call's number.
fn is_the_runtimes(domain: u32, data: &CallbackData) -> bool {
    RUNTIME_CALL.with(|last| match domain {
        DOMAIN_DRIVER => last.get() == data.correlation,
        _ => {
            last.set(data.correlation);
            false
        }
    })
}

/// `CUpti_CallbackFunc`: runs inside every call that is watched, on the program's threads, before and after.
extern "C" fn on_call(_: *mut c_void, domain: u32, function: u32, data: *const CallbackData) {
    // SAFETY: CUPTI passes the data of a call for as long as the callback runs.
    let Some(data) = (unsafe { data.as_ref() }) else { return };
    if data.correlation_data.is_null() || is_the_runtimes(domain, data) {
        return;
    }
    let now = clock::now();
    if data.site == SITE_ENTER {
        // SAFETY: CUPTI keeps a number for each call, from here to its end, for whoever watches.
        unsafe { data.correlation_data.write(now.0) };
        return;
    }
    // SAFETY: this is the number that the beginning of the same call wrote; CUPTI keeps it until the callback returns.
    // One that began before we watched left something else, which the times below show.
    let start = unsafe { data.correlation_data.read() };
    let mut seen = seen();
    if start < seen.since.0 || start > now.0 {
        return; // began before the recording
    }
    if seen.room == 0 {
        seen.beyond_limit += 1;
        return;
    }
    seen.room -= 1;
    if seen.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
        seen.pieces.push(Vec::with_capacity(PIECE));
    }
    if let Some(piece) = seen.pieces.last_mut() {
        let (thread, correlation) = (this_thread(), data.correlation);
        piece.push(Call { start, end: now.0, domain, function, thread, correlation, in_ticks: true });
    }
}

/// Watches calls until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    functions: Functions,
    /// CUPTI's handle, as a number: it is only ever given back.
    subscriber: usize,
}

impl Watch {
    /// Begins to watch the calls that matter, keeping at most `limit` bytes. `None`: CUPTI has no callbacks, or another tool
    /// has them.
    pub(crate) fn start(functions: Functions, calls: &Calls, limit: usize) -> Option<Self> {
        let (subscribe, enable) = (functions.subscribe?, functions.enable_callback?);
        let mut subscriber = std::ptr::null_mut();
        *seen() = Seen { since: clock::now(), room: limit / size_of::<Call>(), ..Seen::default() };
        // SAFETY: CUPTI fills the local; the callback is a function of this library, which is never unloaded, and uses no
        // data.
        let subscribed = unsafe { subscribe(&raw mut subscriber, on_call, std::ptr::null_mut()) };
        if subscribed != CuptiResult::SUCCESS {
            return None;
        }
        let watch = Self { functions, subscriber: subscriber as usize };
        let mut watches_runtime = false;
        for domain in [DOMAIN_RUNTIME, DOMAIN_DRIVER] {
            for function in calls.wanted(domain) {
                // SAFETY: the handle is the one that CUPTI gave and that is still subscribed; it checks the numbers.
                let enabled = unsafe { enable(1, subscriber, domain, function) };
                watches_runtime |= domain == DOMAIN_RUNTIME && enabled == CuptiResult::SUCCESS;
            }
        }
        watches_runtime.then_some(watch)
    }

    /// The calls since this was last asked, and how many there was no room for.
    pub(crate) fn take(&self) -> (Vec<Call>, u64) {
        let mut seen = seen();
        let pieces = std::mem::take(&mut seen.pieces);
        let beyond_limit = std::mem::take(&mut seen.beyond_limit);
        seen.room += pieces.iter().map(Vec::len).sum::<usize>();
        drop(seen);
        (pieces.concat(), beyond_limit)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(unsubscribe) = self.functions.unsubscribe {
            // SAFETY: the handle is the one that CUPTI gave, and is given back once, here.
            unsafe { unsubscribe(self.subscriber as *mut c_void) };
        }
    }
}
