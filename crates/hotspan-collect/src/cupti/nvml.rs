//! What NVML measures while recording: utilisation, memory, power, clocks and temperature, ten times a second.
//!
//! The readings are taken on a thread of their own; a device or a figure that NVML does not have is left out.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::{self, Ticks};
use crate::dynamic_library::{function, open_library};
use crate::locks::lock;
use crate::own_threads;

const PERIOD: Duration = Duration::from_millis(100);
/// A month of readings of one device would be more; a recording that long keeps its beginning.
const MOST_SAMPLES: usize = 1 << 20;

/// The figures of one device at one moment; `None` where NVML has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) utilisation: Option<u32>,
    pub(crate) memory_utilisation: Option<u32>,
    pub(crate) memory_used: Option<u64>,
    pub(crate) power_milliwatts: Option<u32>,
    pub(crate) sm_clock: Option<u32>,
    pub(crate) memory_clock: Option<u32>,
    pub(crate) temperature: Option<u32>,
}

/// All readings: when, which device, what.
pub(crate) type Samples = Vec<(Ticks, u32, Reading)>;

#[repr(C)]
#[derive(Default)]
struct Utilisation {
    gpu: c_uint,
    memory: c_uint,
}

#[repr(C)]
#[derive(Default)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

type Plain = unsafe extern "C" fn() -> c_int;
type Count = unsafe extern "C" fn(*mut c_uint) -> c_int;
type Handle = unsafe extern "C" fn(c_uint, *mut *mut c_void) -> c_int;
type HandleByBus = unsafe extern "C" fn(*const std::ffi::c_char, *mut *mut c_void) -> c_int;
type GetUtilisation = unsafe extern "C" fn(*mut c_void, *mut Utilisation) -> c_int;
type GetMemory = unsafe extern "C" fn(*mut c_void, *mut Memory) -> c_int;
type GetNumber = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
type GetKindNumber = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_int;

#[derive(Clone, Copy)]
struct Nvml {
    count: Count,
    handle: Handle,
    by_bus: Option<HandleByBus>,
    utilisation: Option<GetUtilisation>,
    memory: Option<GetMemory>,
    power: Option<GetNumber>,
    clock: Option<GetKindNumber>,
    temperature: Option<GetKindNumber>,
}

const CLOCK_SM: c_uint = 1;
const CLOCK_MEMORY: c_uint = 2;

impl Nvml {
    fn open() -> Option<Self> {
        let library = open_library("libnvidia-ml.so.1", 0).ok()?;
        // SAFETY: nvml.h declares these functions so.
        unsafe {
            let init: Plain = function(library, "nvmlInit_v2")?;
            let nvml = Self {
                count: function(library, "nvmlDeviceGetCount_v2")?,
                handle: function(library, "nvmlDeviceGetHandleByIndex_v2")?,
                by_bus: function(library, "nvmlDeviceGetHandleByPciBusId_v2"),
                utilisation: function(library, "nvmlDeviceGetUtilizationRates"),
                memory: function(library, "nvmlDeviceGetMemoryInfo"),
                power: function(library, "nvmlDeviceGetPowerUsage"),
                clock: function(library, "nvmlDeviceGetClockInfo"),
                temperature: function(library, "nvmlDeviceGetTemperature"),
            };
            (init() == 0).then_some(nvml)
        }
    }

    /// The devices that CUDA shows this process, under CUDA's numbers.
    fn devices(&self) -> Vec<(u32, *mut c_void)> {
        if let (Some(by_bus), Some(buses)) = (self.by_bus, cuda_buses()) {
            let found = buses.iter().enumerate().filter_map(|(id, bus)| {
                let mut handle = std::ptr::null_mut();
                // SAFETY: `bus` ends in a zero, and NVML fills the local.
                let result = unsafe { by_bus(bus.as_ptr(), &raw mut handle) };
                (result == 0).then_some((id as u32, handle))
            });
            return found.collect();
        }
        let mut count = 0;
        // SAFETY: NVML fills the local.
        if unsafe { (self.count)(&raw mut count) } != 0 {
            return Vec::new();
        }
        let handles = (0..count.min(64)).filter_map(|id| {
            let mut handle = std::ptr::null_mut();
            // SAFETY: NVML checks the number and fills the local.
            let result = unsafe { (self.handle)(id, &raw mut handle) };
            (result == 0).then_some((id, handle))
        });
        handles.collect()
    }

    fn read(&self, device: *mut c_void) -> Reading {
        let number = |get: Option<GetKindNumber>, kind: c_uint| {
            let mut value = 0;
            // SAFETY: the handle came from NVML, which stays open, and NVML fills the local.
            get.filter(|get| unsafe { get(device, kind, &raw mut value) } == 0).map(|_| value)
        };
        let (mut utilisation, mut memory, mut power) = (Utilisation::default(), Memory::default(), 0);
        // SAFETY: the handle came from NVML, which stays open, and the locals have the types that nvml.h declares.
        let (has_utilisation, has_memory, has_power) = unsafe {
            (
                self.utilisation.is_some_and(|get| get(device, &raw mut utilisation) == 0),
                self.memory.is_some_and(|get| get(device, &raw mut memory) == 0),
                self.power.is_some_and(|get| get(device, &raw mut power) == 0),
            )
        };
        Reading {
            utilisation: has_utilisation.then_some(utilisation.gpu),
            memory_utilisation: has_utilisation.then_some(utilisation.memory),
            memory_used: has_memory.then_some(memory.used),
            power_milliwatts: has_power.then_some(power),
            sm_clock: number(self.clock, CLOCK_SM),
            memory_clock: number(self.clock, CLOCK_MEMORY),
            temperature: number(self.temperature, 0),
        }
    }
}

/// Where CUDA's devices sit: the order of `CUDA_VISIBLE_DEVICES` is CUDA's own.
fn cuda_buses() -> Option<Vec<std::ffi::CString>> {
    type GetCount = unsafe extern "C" fn(*mut c_int) -> c_int;
    type GetBus = unsafe extern "C" fn(*mut std::ffi::c_char, c_int, c_int) -> c_int;
    let driver = open_library("libcuda.so.1", libc::RTLD_NOLOAD).ok()?;
    // SAFETY: cuda.h declares these functions so.
    let (get_count, get_bus) = unsafe {
        (
            function::<GetCount>(driver, "cuDeviceGetCount")?,
            function::<GetBus>(driver, "cuDeviceGetPCIBusId")?,
        )
    };
    let mut count = 0;
    // SAFETY: the driver fills the local.
    if unsafe { get_count(&raw mut count) } != 0 {
        return None;
    }
    let buses = (0..count.clamp(0, 64)).map(|device| {
        let mut text = [0_u8; 32];
        // SAFETY: the driver writes at most the bytes that it is told there are; a device's handle is its number.
        let result = unsafe { get_bus(text.as_mut_ptr().cast(), text.len() as c_int, device) };
        let end = text.iter().position(|&byte| byte == 0)?;
        (result == 0).then(|| std::ffi::CString::new(&text[..end]).ok())?
    });
    buses.collect()
}

/// A running thread that reads.
#[derive(Debug)]
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    process: u32,
}

#[derive(Debug, Default)]
struct Shared {
    samples: Mutex<Samples>,
    changed: Condvar,
    is_over: AtomicBool,
}

impl Sampler {
    /// Begins to read, on a thread of its own. `None`: no thread. Where NVML is missing the thread ends at once.
    pub(crate) fn start() -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let told = Arc::clone(&shared);
        let thread = own_threads::spawn("hotspan-nvml", move || told.sample());
        thread.ok().map(|_| Self { shared, process: std::process::id() })
    }

    /// The readings so far.
    pub(crate) fn take(&self) -> Samples {
        std::mem::take(&mut *lock(&self.shared.samples))
    }

    /// Ends; all readings. The thread is not waited for: NVML may take its time to begin.
    pub(crate) fn stop(self) -> Samples {
        if std::process::id() != self.process {
            std::mem::forget(self); // the thread is the parent's, and may hold the lock
            return Samples::new();
        }
        self.shared.is_over.store(true, Ordering::Release);
        let samples = std::mem::take(&mut *lock(&self.shared.samples));
        self.shared.changed.notify_all();
        samples
    }
}

impl Shared {
    fn sample(&self) {
        // NVML stays open for the next recording: opening it takes tens of milliseconds.
        static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
        let Some(nvml) = NVML.get_or_init(Nvml::open) else { return };
        let devices = nvml.devices();
        loop {
            let readings: Vec<_> =
                devices.iter().map(|&(id, device)| (clock::now(), id, nvml.read(device))).collect();
            let mut samples = lock(&self.samples);
            // Checked under the lock, so that nothing is added after `stop` took the readings.
            if self.is_over.load(Ordering::Acquire) || samples.len() >= MOST_SAMPLES {
                return;
            }
            samples.extend(readings.into_iter().filter(|(_, _, reading)| *reading != Reading::default()));
            drop(self.changed.wait_timeout(samples, PERIOD).unwrap_or_else(PoisonError::into_inner));
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
        }
    }
}
