//! A look for torch that no way of importing it escapes: its library in the address space. The import itself is noticed in
//! Python (`_agent_imports.py`); this is for programs that load torch past the import hook.
//!
//! The agent's thread never waits for the GIL: it asks Python to call us on the main thread, between two instructions.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hotspan_collect::agent::Source;
use hotspan_store::TraceBuilder;
use pyo3::prelude::*;

/// The library that every torch has.
const LIBRARY: &str = "/libtorch_cpu.so";
/// It is larger than this: as long as the address space grows by less, there is no need to look.
const LEAST_GROWTH: u64 = 64 << 20;
/// An import takes seconds. Afterwards Python is asked in every round at first, then more rarely.
const ROUNDS_OF_IMPORT: u32 = 100;
const RARELY: u32 = 5;
/// After so many rounds without an answer, the recording says that there is a torch nobody noticed.
const PATIENCE: u32 = 10;

/// The metadata key that says how operators are recorded; Python sets it too.
pub(crate) const KEY: &str = "hotspan.operators";

/// Calls of us that wait in Python's queue.
static PENDING: AtomicU32 = AtomicU32::new(0);

/// Looks until torch is known.
pub(crate) struct TorchWatch {
    /// Whether Python has taken notice.
    is_known: Arc<AtomicBool>,
    is_mapped: bool,
    /// Bytes of address space at the last look.
    size: u64,
    rounds: u32,
}

impl TorchWatch {
    pub(crate) fn new(is_known: Arc<AtomicBool>) -> Self {
        // A forked child may have inherited the number of a queue that is not its own.
        PENDING.store(0, Ordering::Relaxed);
        Self { is_known, is_mapped: false, size: 0, rounds: 0 }
    }

    fn look(&mut self) {
        let Some(size) = address_space() else { return };
        if size < self.size.saturating_add(LEAST_GROWTH) {
            self.size = self.size.min(size);
            return;
        }
        self.size = size;
        self.is_mapped = fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains(LIBRARY));
    }
}

impl Source for TorchWatch {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        if self.is_known.load(Ordering::Acquire) {
            return;
        }
        if !self.is_mapped {
            self.look();
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds == PATIENCE {
            let reason = "its library is loaded, but the Python module torch is not there as a whole";
            builder.metadata.set(KEY, &serde_json::json!({"recorded": false, "reason": reason}).to_string());
        }
        if self.rounds <= ROUNDS_OF_IMPORT || self.rounds.is_multiple_of(RARELY) {
            ask_python();
        }
    }

    fn finish(self: Box<Self>, _: &mut TraceBuilder) {}
}

/// Bytes of address space of this process.
fn address_space() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().next()?.parse().ok()?;
    Some(pages.saturating_mul(4096))
}

/// Lets the main thread look for torch as soon as it runs Python code; once at a time, for the queue is short.
fn ask_python() {
    if PENDING.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: may be called on any thread, with or without the GIL; the function is part of this library, which is never
    // unloaded, and takes no argument.
    if unsafe { pyo3::ffi::Py_AddPendingCall(Some(look_for_torch), std::ptr::null_mut()) } != 0 {
        PENDING.store(0, Ordering::Release);
    }
}

/// Called by Python on the main thread. Never fails: what it returned would be raised in the program.
extern "C" fn look_for_torch(_: *mut std::ffi::c_void) -> std::ffi::c_int {
    PENDING.store(0, Ordering::Release);
    // While the interpreter ends there is nothing to look for.
    let _ = Python::try_attach(|py| {
        // Not an import: that would go by the builtins of the frame that runs now, and `namedtuple` has frames without any.
        // SAFETY: the GIL is held; the result is borrowed from the interpreter, or null while that ends.
        let modules = unsafe { Bound::from_borrowed_ptr_or_opt(py, pyo3::ffi::PyImport_GetModuleDict()) };
        let agent = modules.and_then(|modules| modules.get_item("hotspan._agent").ok());
        // What fails here is told by the recording, which has no operators then; not on the program's stderr.
        agent.map(|agent| agent.call_method0("look_for_torch").map(drop))
    });
    0
}
