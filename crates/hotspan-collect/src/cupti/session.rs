//! A recording of device work from start to stop.
//!
//! Leaves waiting for the device to its caller: CUPTI hands out what has ended, so whoever wants the last kernels waits for
//! the device before stopping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use hotspan_store::{Ident, TraceBuilder};

use crate::clock::{Calibration, ClockStart};
use crate::cupti::abi::{self, CuptiResult, DOMAIN_DRIVER, DOMAIN_RUNTIME, Functions, kind};
use crate::cupti::buffers::{self, BufferDecoder, Delivered};
use crate::cupti::calls::Calls;
use crate::cupti::devices::Devices;
use crate::cupti::nvml::{Sampler, Samples};
use crate::cupti::timing::Pair;
use crate::cupti::watch::Watch;
use crate::cupti::{CuptiError, Library, convert};
use crate::host_spans::HostSpans;

/// What the device does. Without the first there is nothing to record; the others are left out where CUPTI has none.
const WORK: [u32; 4] = [kind::CONCURRENT_KERNEL, kind::MEMCPY, kind::MEMCPY2, kind::MEMSET];

/// Which of the device's work to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Kernels.
    pub kernels: bool,
    /// Copies of memory.
    pub copies: bool,
    /// Fills of memory.
    pub fills: bool,
}

impl Work {
    /// All of it.
    pub const ALL: Self = Self { kernels: true, copies: true, fills: true };

    fn has(self, kind: u32) -> bool {
        match kind {
            kind::CONCURRENT_KERNEL => self.kernels,
            kind::MEMCPY | kind::MEMCPY2 => self.copies,
            kind::MEMSET => self.fills,
            _ => true,
        }
    }
}
/// What recording costs, and the devices of contexts.
const REST: [u32; 2] = [kind::OVERHEAD, kind::CONTEXT];
/// Who waits for whom.
const WAITS: [u32; 2] = [kind::SYNCHRONIZATION, kind::CUDA_EVENT];

/// What to record of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes of records to hold at most; beyond, records are lost and counted. `None`: no limit.
    pub max_bytes: Option<usize>,
    /// Record who waits for which event, stream or device (`enable_cuda_sync_events`). Calls that wait are recorded in any
    /// case.
    pub waits: bool,
    /// What to record of the device's work.
    pub work: Work,
    /// Ask NVML ten times a second for utilisation, memory, power, clocks and temperature.
    pub counters: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: None, waits: false, work: Work::ALL, counters: true }
    }
}

/// A running recording. There is at most one per process.
#[derive(Debug)]
pub struct Session {
    library: Library,
    options: Options,
    calls: Arc<Calls>,
    watch: Option<Watch>,
    decoder: Option<(Arc<BufferDecoder>, JoinHandle<()>)>,
    enabled: Vec<u32>,
    thread_ids: Option<u32>,
    has_thread_ids: bool,
    process: u32,
    clock: ClockStart,
    first: Option<Pair>,
    /// The largest correlation that was there when the recording was last taken from.
    newest_correlation: u32,
    /// The devices, once the driver has named some.
    devices: Devices,
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

/// Correlations of recordings that come in parts begin here, beyond all numbers that others count.
const FIRST_CORRELATION: i64 = 1 << 40;

impl Recording {
    /// A trace of the device work alone, for programs whose operators are not recorded.
    #[must_use]
    pub fn into_builder(self) -> TraceBuilder {
        let mut builder = TraceBuilder::new();
        builder.clock.base_unix = Some(0);
        builder.source.format = "hotspan recording".to_owned();
        self.add_with(&mut builder, 0);
        builder
    }

    /// Adds a part of a longer recording to a trace whose times are Unix nanoseconds.
    pub fn add_to(self, builder: &mut TraceBuilder) {
        self.add_with(builder, FIRST_CORRELATION);
    }

    fn add_with(self, builder: &mut TraceBuilder, first_correlation: i64) {
        let (calibration, process) = (self.calibration, Ident::Int(i64::from(self.process)));
        let destination = convert::Destination { base: 0, process, first_correlation };
        convert::add(builder, self, &calibration, destination, &mut HostSpans::default());
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
            options,
            calls: Arc::clone(&calls),
            watch: None,
            decoder: None,
            enabled: Vec::new(),
            thread_ids: None,
            has_thread_ids: false,
            process: std::process::id(),
            clock: ClockStart::measure(),
            first: None,
            newest_correlation: 0,
            devices: Devices::default(),
            sampler: None,
        };
        let decoder = BufferDecoder::start(*library.functions(), calls, session.limit());
        session.decoder = Some(decoder.map_err(|error| {
            IS_RUNNING.store(false, Ordering::Release);
            CuptiError::NoThread(error.to_string())
        })?);
        // From here on dropping the session undoes what was done.
        session.switch_on()?;
        session.sampler = if options.counters { Sampler::start() } else { None };
        Ok(session)
    }

    fn limit(&self) -> usize {
        self.options.max_bytes.unwrap_or(usize::MAX)
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
        let waits: &[u32] = if self.options.waits { &WAITS } else { &[] };
        let work = self.options.work;
        for &kind in WORK.iter().chain(&REST).chain(waits).filter(|&&kind| work.has(kind)) {
            let result = self.enable(kind);
            if kind == kind::CONCURRENT_KERNEL {
                result.ok().map_err(|result| self.library.refusal("kernels", result))?;
            }
        }
        self.watch = Watch::start(*self.library.functions(), &self.calls, self.limit());
        if self.watch.is_some() { Ok(()) } else { self.enable_calls() }
    }

    /// Records of calls, where they cannot be watched.
    fn enable_calls(&mut self) -> Result<(), CuptiError> {
        let functions = *self.library.functions();
        for (kind, domain, filter) in [
            (kind::RUNTIME, DOMAIN_RUNTIME, functions.enable_runtime_call),
            (kind::DRIVER, DOMAIN_DRIVER, functions.enable_driver_call),
        ] {
            let result = self.enable(kind);
            if kind == kind::RUNTIME {
                result.ok().map_err(|result| self.library.refusal("runtime calls", result))?;
            }
            // Where CUPTI cannot leave calls out, the worker does.
            if let (CuptiResult::SUCCESS, Some(filter)) = (result, filter) {
                for function in self.calls.unwanted(domain) {
                    // SAFETY: the function takes numbers, which CUPTI checks; what it refuses is recorded and left out
                    // later.
                    unsafe { filter(function, 0) };
                }
            }
        }
        Ok(())
    }

    fn disable_all(&mut self) {
        self.take_calls();
        self.watch = None;
        for kind in self.enabled.drain(..) {
            // SAFETY: the function takes a number, which CUPTI checks.
            unsafe { (self.library.functions().disable)(kind) };
        }
    }

    fn take_calls(&self) {
        if let (Some(watch), Some((decoder, _))) = (&self.watch, &self.decoder) {
            decoder.add_calls(watch.take());
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
        // SAFETY: the function takes a number, which CUPTI checks.
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
        // SAFETY: CUPTI fills the local.
        let result = unsafe { get(&raw mut before) };
        // SAFETY: the function takes a number, which CUPTI checks.
        self.has_thread_ids = unsafe { set(abi::THREAD_ID_SYSTEM) } == CuptiResult::SUCCESS;
        self.thread_ids = (result == CuptiResult::SUCCESS).then_some(before);
    }

    /// Stops, and takes what was recorded. Work that has not ended is not waited for.
    ///
    /// `None` in a forked child: the session is the parent's.
    #[must_use]
    pub fn stop(mut self) -> Option<Recording> {
        let samples = self.sampler.take().map(Sampler::stop).unwrap_or_default();
        let (delivered, last) = self.end()?;
        Some(self.recording(delivered, last, samples))
    }

    /// Takes what was recorded so far, without what came since this was last asked. `None` in a forked child.
    pub fn take(&mut self) -> Option<Recording> {
        let (decoder, _) = self.decoder.as_ref().filter(|_| std::process::id() == self.process)?;
        let functions = *self.library.functions();
        // SAFETY: the function takes flags; only buffers whose work has ended are returned.
        unsafe { (functions.flush_all)(0) };
        self.take_calls();
        let delivered = decoder.take(&mut self.newest_correlation);
        let samples = self.sampler.as_ref().map(Sampler::take).unwrap_or_default();
        Some(self.recording(delivered, Pair::measure(&functions), samples))
    }

    fn recording(&mut self, delivered: Delivered, last: Option<Pair>, samples: Samples) -> Recording {
        if self.devices.devices.is_empty() {
            self.devices = Devices::of_this_process();
        }
        Recording {
            delivered,
            calls: Arc::clone(&self.calls),
            devices: self.devices.clone(),
            pairs: self.first.zip(last).map(|(first, last)| [first, last]),
            has_thread_ids: self.has_thread_ids,
            version: self.library.version(),
            samples,
            calibration: self.clock.finish(),
            process: self.process,
        }
    }

    fn end(&mut self) -> Option<(Delivered, Option<Pair>)> {
        if std::process::id() != self.process {
            // The worker and CUPTI's threads are the parent's; joining would wait for ever.
            std::mem::forget((self.decoder.take(), self.watch.take()));
            return None;
        }
        let functions = *self.library.functions();
        self.disable_all();
        let (decoder, thread) = self.decoder.take()?;
        // SAFETY: the function takes flags; records that are delivered go to `buffers::completed`.
        unsafe { (functions.flush_all)(abi::FLUSH_FORCED) };
        decoder.count_dropped(std::ptr::null_mut(), 0);
        let last = Pair::measure(&functions);
        if let (Some(before), Some(set)) = (self.thread_ids, functions.set_thread_id_type) {
            // SAFETY: the function takes a number, which is the one that CUPTI gave.
            unsafe { set(before) };
        }
        let delivered = decoder.finish(thread);
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
