//! A recording of device work from start to stop.
//!
//! Leaves waiting for the device to its caller: CUPTI hands out what has ended, so whoever wants the last kernels waits for
//! the device before stopping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use hotspan_store::{Ident, TraceBuilder};

use crate::clock::{Calibration, ClockStart};
use crate::cupti::abi::{self, CuptiResult, DOMAIN_DRIVER, DOMAIN_RUNTIME, Functions, SwitchCall, kind};
use crate::cupti::buffers::{self, Delivered, Reader};
use crate::cupti::calls::Calls;
use crate::cupti::devices::Devices;
use crate::cupti::nvml::{Sampler, Samples};
use crate::cupti::timing::Pair;
use crate::cupti::{CuptiError, Library, convert};
use crate::host_spans::HostSpans;

/// What the device does. Without the first there is nothing to record; the others are left out where CUPTI has none.
const WORK: [u32; 4] = [kind::CONCURRENT_KERNEL, kind::MEMCPY, kind::MEMCPY2, kind::MEMSET];
/// Who waits for it, and what recording costs.
const REST: [u32; 4] = [kind::SYNCHRONIZATION, kind::CUDA_EVENT, kind::OVERHEAD, kind::CONTEXT];

/// What to record of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes of records to hold at most; beyond, records are lost and counted. `None`: no limit.
    pub max_bytes: Option<usize>,
    /// Ask NVML ten times a second for utilisation, memory, power, clocks and temperature.
    pub counters: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: None, counters: true }
    }
}

/// A running recording. There is at most one per process.
#[derive(Debug)]
pub struct Session {
    library: Library,
    calls: Arc<Calls>,
    reader: Option<(Arc<Reader>, JoinHandle<()>)>,
    /// Kinds of records that are switched on, and calls that are by themselves.
    enabled: Vec<u32>,
    switched: Vec<(SwitchCall, u32)>,
    thread_ids: Option<u32>,
    has_thread_ids: bool,
    process: u32,
    clock: ClockStart,
    first: Option<Pair>,
    sampler: Option<Sampler>,
}

/// What a session recorded, not yet part of a trace.
#[derive(Debug)]
pub struct Recording {
    pub(crate) delivered: Delivered,
    pub(crate) calls: Arc<Calls>,
    pub(crate) devices: Devices,
    /// CUPTI's clock and ours, when the recording began and ended.
    pub(crate) pairs: Option<[Pair; 2]>,
    /// Whether threads go by the numbers of the operating system.
    pub(crate) has_thread_ids: bool,
    pub(crate) version: u32,
    pub(crate) samples: Samples,
    calibration: Calibration,
    process: u32,
}

impl Recording {
    /// A trace of the device work alone, for programs whose operators are not recorded.
    #[must_use]
    pub fn into_builder(self) -> TraceBuilder {
        let mut builder = TraceBuilder::new();
        let (calibration, process) = (self.calibration, Ident::Int(i64::from(self.process)));
        builder.clock.base_unix = Some(0);
        builder.source.format = "hotspan recording".to_owned();
        convert::add(&mut builder, self, &calibration, 0, process, &mut HostSpans::default());
        builder
    }
}

static IS_RUNNING: AtomicBool = AtomicBool::new(false);

impl Session {
    /// Begins to record.
    ///
    /// # Errors
    /// When CUPTI refuses, for instance because another tool holds it. Nothing is left switched on then.
    pub fn start(library: &Library, options: Options) -> Result<Self, CuptiError> {
        if IS_RUNNING.swap(true, Ordering::AcqRel) {
            return Err(CuptiError::AlreadyRecording);
        }
        let calls = Arc::new(Calls::of(library));
        let mut session = Self {
            library: library.clone(),
            calls: Arc::clone(&calls),
            reader: None,
            enabled: Vec::new(),
            switched: Vec::new(),
            thread_ids: None,
            has_thread_ids: false,
            process: std::process::id(),
            clock: ClockStart::measure(),
            first: None,
            sampler: None,
        };
        let limit = options.max_bytes.unwrap_or(usize::MAX);
        let reader = Reader::start(*library.functions(), calls, limit);
        session.reader = Some(reader.map_err(|error| {
            IS_RUNNING.store(false, Ordering::Release);
            CuptiError::NoThread(error.to_string())
        })?);
        // From here on dropping the session undoes what was done.
        session.switch_on()?;
        session.sampler = if options.counters { Sampler::start() } else { None };
        Ok(session)
    }

    fn switch_on(&mut self) -> Result<(), CuptiError> {
        let functions = *self.library.functions();
        self.take_thread_ids(&functions);
        self.first = Pair::measure(&functions);
        // SAFETY: both functions are static and this library is never unloaded.
        let registered = unsafe { (functions.register_callbacks)(buffers::requested, buffers::completed) };
        registered.ok().map_err(|result| self.library.refusal("its buffers", result))?;
        self.enable_all()
    }

    fn enable_all(&mut self) -> Result<(), CuptiError> {
        let functions = *self.library.functions();
        for (index, &kind) in WORK.iter().chain(&REST).enumerate() {
            let result = self.enable(kind);
            if index == 0 {
                result.ok().map_err(|result| self.library.refusal("kernels", result))?;
            }
        }
        let runtime = self.enable_calls(kind::RUNTIME, DOMAIN_RUNTIME, functions.enable_runtime_call);
        runtime.ok().map_err(|result| self.library.refusal("runtime calls", result))?;
        let _ = self.enable_calls(kind::DRIVER, DOMAIN_DRIVER, functions.enable_driver_call);
        Ok(())
    }

    /// Switches on the calls that matter, each by itself: with all of their kind on and the rest off again, every call of the
    /// program pays. An older CUPTI records all, and the worker leaves out what does not matter.
    fn enable_calls(&mut self, kind: u32, domain: u32, switch: Option<SwitchCall>) -> CuptiResult {
        let Some(switch) = switch else {
            return self.enable(kind);
        };
        let before = self.switched.len();
        for function in self.calls.wanted(domain) {
            // SAFETY: takes numbers.
            if unsafe { switch(function, 1) } == CuptiResult::SUCCESS {
                self.switched.push((switch, function));
            }
        }
        if self.switched.len() > before { CuptiResult::SUCCESS } else { self.enable(kind) }
    }

    fn disable_all(&mut self) {
        for (switch, function) in self.switched.drain(..) {
            // SAFETY: takes numbers.
            unsafe { switch(function, 0) };
        }
        for kind in self.enabled.drain(..) {
            // SAFETY: takes a number.
            unsafe { (self.library.functions().disable)(kind) };
        }
    }

    /// Pauses (`false`) or resumes recording.
    pub fn toggle(&mut self, record: bool) {
        if std::process::id() != self.process || self.enabled.is_empty() != record {
            return;
        }
        if record {
            // What CUPTI refuses now is missing from here on; it was willing before.
            let _ = self.enable_all();
        } else {
            self.disable_all();
        }
    }

    fn enable(&mut self, kind: u32) -> CuptiResult {
        // SAFETY: takes a number.
        let result = unsafe { (self.library.functions().enable)(kind) };
        if result == CuptiResult::SUCCESS {
            self.enabled.push(kind);
        }
        result
    }

    /// Lets records name threads as the operating system does. The setting is the process's, so it is put back after.
    fn take_thread_ids(&mut self, functions: &Functions) {
        let (Some(get), Some(set)) = (functions.get_thread_id_type, functions.set_thread_id_type) else {
            return;
        };
        let mut before = 0;
        // SAFETY: a place for a number.
        let known = unsafe { get(&raw mut before) };
        // SAFETY: takes a number.
        self.has_thread_ids = unsafe { set(abi::THREAD_ID_SYSTEM) } == CuptiResult::SUCCESS;
        self.thread_ids = (known == CuptiResult::SUCCESS).then_some(before);
    }

    /// Stops, and takes what was recorded. Work that has not ended is not waited for.
    ///
    /// `None` in a forked child: the session is the parent's.
    #[must_use]
    pub fn stop(mut self) -> Option<Recording> {
        let samples = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        let (delivered, last) = self.end()?;
        Some(Recording {
            delivered,
            calls: Arc::clone(&self.calls),
            devices: Devices::of_this_process(),
            pairs: self.first.zip(last).map(|(first, last)| [first, last]),
            has_thread_ids: self.has_thread_ids,
            version: self.library.version(),
            samples,
            calibration: self.clock.finish(),
            process: self.process,
        })
    }

    fn end(&mut self) -> Option<(Delivered, Option<Pair>)> {
        let (reader, thread) = self.reader.take()?;
        if std::process::id() != self.process {
            // The worker and CUPTI's threads are the parent's; joining would wait for ever.
            std::mem::forget((reader, thread));
            return None;
        }
        let functions = *self.library.functions();
        self.disable_all();
        // SAFETY: takes a number; records that are delivered go to `buffers::completed`.
        unsafe { (functions.flush_all)(abi::FLUSH_FORCED) };
        reader.count_dropped(std::ptr::null_mut(), 0);
        let last = Pair::measure(&functions);
        if let (Some(before), Some(set)) = (self.thread_ids, functions.set_thread_id_type) {
            // SAFETY: takes a number that CUPTI gave.
            unsafe { set(before) };
        }
        let delivered = reader.finish(thread);
        IS_RUNNING.store(false, Ordering::Release);
        Some((delivered, last))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.sampler.take().map(Sampler::stop));
        self.end();
    }
}
