//! The C interface of CUPTI, as far as it is used: numbers, records and functions.
//!
//! Records only ever grew at their end since CUDA 11.8, so one definition of the beginning of each serves all versions;
//! `tests/cupti_layout.rs` compares every offset with NVIDIA's own headers where those are installed.

use std::ffi::{c_char, c_void};

/// `CUptiResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct CuptiResult(pub(crate) u32);

impl CuptiResult {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INSUFFICIENT_PRIVILEGES: Self = Self(35);
    pub(crate) const OLD_PROFILER_API_INITIALIZED: Self = Self(36);
    pub(crate) const MULTIPLE_SUBSCRIBERS: Self = Self(39);
    pub(crate) const VIRTUALIZED_DEVICE: Self = Self(40);

    pub(crate) fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// `CUpti_ActivityKind`.
pub(crate) mod kind {
    pub(crate) const MEMCPY: u32 = 1;
    pub(crate) const MEMSET: u32 = 2;
    pub(crate) const KERNEL: u32 = 3;
    pub(crate) const DRIVER: u32 = 4;
    pub(crate) const RUNTIME: u32 = 5;
    pub(crate) const DEVICE: u32 = 8;
    pub(crate) const CONTEXT: u32 = 9;
    pub(crate) const CONCURRENT_KERNEL: u32 = 10;
    pub(crate) const OVERHEAD: u32 = 17;
    pub(crate) const MEMCPY2: u32 = 22;
    pub(crate) const CUDA_EVENT: u32 = 36;
    pub(crate) const SYNCHRONIZATION: u32 = 38;
}

/// `CUpti_CallbackDomain`.
pub(crate) const DOMAIN_DRIVER: u32 = 1;
/// `CUpti_CallbackDomain`.
pub(crate) const DOMAIN_RUNTIME: u32 = 2;
/// `CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM`: the number that gettid gives.
pub(crate) const THREAD_ID_SYSTEM: u32 = 1;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
pub(crate) const FLUSH_FORCED: u32 = 1;

/// The beginning of `CUpti_ActivityKernel9`, 10 and 11.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Kernel {
    /// Which record this is.
    pub kind: u32,
    cache_config: u8,
    shared_memory_config: u8,
    /// Registers of each thread.
    pub registers: u16,
    partitioned_cache: [u32; 2],
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub start: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub end: u64,
    completed: u64,
    /// The device.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// Blocks.
    pub grid: [i32; 3],
    /// Threads of a block.
    pub block: [i32; 3],
    /// Bytes of a block, fixed when the kernel was compiled.
    pub static_shared: i32,
    /// Bytes of a block, given at the launch.
    pub dynamic_shared: i32,
    local_memory: [u32; 2],
    /// The call that launched it.
    pub correlation: u32,
    grid_id: i64,
    /// The mangled name, owned by CUPTI.
    pub name: *const c_char,
    reserved: *const c_void,
    queued: u64,
    submitted: u64,
    launch: [u8; 4],
    shared_executed: u32,
    /// The node of a graph, 0 without one.
    pub graph_node: u64,
    shared_limit: u32,
    /// The graph, 0 without one.
    pub graph: u32,
}

/// The beginning of `CUpti_ActivityMemcpy6`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memcpy {
    /// Which record this is.
    pub kind: u32,
    /// From where to where.
    pub copy_kind: u8,
    /// The memory read.
    pub source: u8,
    /// The memory written.
    pub destination: u8,
    flags: u8,
    /// How much.
    pub bytes: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub start: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub end: u64,
    /// The device.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// The call that asked for it.
    pub correlation: u32,
    runtime_correlation: u32,
    pad: u32,
    reserved: *const c_void,
    /// The node of a graph, 0 without one.
    pub graph_node: u64,
    /// The graph, 0 without one.
    pub graph: u32,
}

/// The beginning of `CUpti_ActivityMemcpyPtoP4`: a copy between devices.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemcpyPeer {
    /// Which record this is.
    pub kind: u32,
    /// From where to where.
    pub copy_kind: u8,
    /// The memory read.
    pub source: u8,
    /// The memory written.
    pub destination: u8,
    flags: u8,
    /// How much.
    pub bytes: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub start: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub end: u64,
    /// The device that copies.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// The device read.
    pub source_device: u32,
    /// Its context.
    pub source_context: u32,
    /// The device written.
    pub destination_device: u32,
    /// Its context.
    pub destination_context: u32,
    /// The call that asked for it.
    pub correlation: u32,
    reserved: *const c_void,
    /// The node of a graph, 0 without one.
    pub graph_node: u64,
    /// The graph, 0 without one.
    pub graph: u32,
}

/// The beginning of `CUpti_ActivityMemset4`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Memset {
    /// Which record this is.
    pub kind: u32,
    value: u32,
    /// How much.
    pub bytes: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub start: u64,
    /// Nanoseconds; 0 when CUPTI cannot tell.
    pub end: u64,
    /// The device.
    pub device: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// The call that asked for it.
    pub correlation: u32,
    flags: u16,
    /// The memory written.
    pub memory: u16,
    pad: u32,
    reserved: *const c_void,
    /// The node of a graph, 0 without one.
    pub graph_node: u64,
    /// The graph, 0 without one.
    pub graph: u32,
}

/// `CUpti_ActivityAPI`: a call into the runtime or the driver.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ApiCall {
    /// Which record this is.
    pub kind: u32,
    /// Which function.
    pub function: u32,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    process: u32,
    /// The thread.
    pub thread: u32,
    /// Its number, which device work names.
    pub correlation: u32,
    returned: u32,
}

/// The beginning of `CUpti_ActivityOverhead` to 3.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Overhead {
    /// Which record this is.
    pub kind: u32,
    /// What cost the time.
    pub overhead: u32,
    object: u32,
    object_id: [u32; 3],
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
}

/// The beginning of `CUpti_ActivitySynchronization` and 2.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Synchronization {
    /// Which record this is.
    pub kind: u32,
    /// Who waits for what.
    pub sync: u32,
    /// Nanoseconds.
    pub start: u64,
    /// Nanoseconds.
    pub end: u64,
    /// The call that waits.
    pub correlation: u32,
    /// The context.
    pub context: u32,
    /// The stream that waits or is waited for; all ones without one.
    pub stream: u32,
    /// The event; all ones without one.
    pub event: u32,
}

/// The beginning of `CUpti_ActivityCudaEvent` and 2: an event was recorded in a stream.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CudaEvent {
    /// Which record this is.
    pub kind: u32,
    /// The call that recorded it.
    pub correlation: u32,
    /// The context.
    pub context: u32,
    /// The stream.
    pub stream: u32,
    /// The event.
    pub event: u32,
}

/// The beginning of `CUpti_ActivityContext` to 4.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Context {
    /// Which record this is.
    pub kind: u32,
    /// The context.
    pub context: u32,
    /// Its device.
    pub device: u32,
}

pub(crate) type BufferRequested =
    extern "C" fn(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize);
pub(crate) type BufferCompleted =
    extern "C" fn(context: *mut c_void, stream: u32, buffer: *mut u8, size: usize, valid: usize);

/// What a callback is told about a call: `CUpti_CallbackData`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CallbackData {
    /// [`SITE_ENTER`] before the call.
    pub site: u32,
    /// Its name.
    pub function_name: *const c_char,
    /// Its arguments.
    pub parameters: *const c_void,
    /// What it returns, after it.
    pub result: *mut c_void,
    /// The mangled name of the kernel.
    pub symbol: *const c_char,
    /// The context, as the driver has it.
    pub context: *mut c_void,
    /// The context's number.
    pub context_number: u32,
    /// A number that is kept from before the call until after it.
    pub correlation_data: *mut u64,
    /// What records of the call's work say.
    pub correlation: u32,
}

/// `CUPTI_API_ENTER`.
pub(crate) const SITE_ENTER: u32 = 0;

pub(crate) type Callback =
    extern "C" fn(data: *mut c_void, domain: u32, function: u32, call: *const CallbackData);

/// The functions of a loaded libcupti; those that older versions lack are optional. It is never unloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) get_version: unsafe extern "C" fn(*mut u32) -> CuptiResult,
    pub(crate) get_timestamp: unsafe extern "C" fn(*mut u64) -> CuptiResult,
    pub(crate) get_result_string: unsafe extern "C" fn(CuptiResult, *mut *const c_char) -> CuptiResult,
    pub(crate) get_callback_name: unsafe extern "C" fn(u32, u32, *mut *const c_char) -> CuptiResult,
    pub(crate) register_callbacks: unsafe extern "C" fn(BufferRequested, BufferCompleted) -> CuptiResult,
    pub(crate) enable: unsafe extern "C" fn(u32) -> CuptiResult,
    pub(crate) disable: unsafe extern "C" fn(u32) -> CuptiResult,
    pub(crate) flush_all: unsafe extern "C" fn(u32) -> CuptiResult,
    pub(crate) get_next_record: unsafe extern "C" fn(*mut u8, usize, *mut *mut u32) -> CuptiResult,
    pub(crate) get_dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> CuptiResult,
    pub(crate) get_thread_id_type: Option<unsafe extern "C" fn(*mut u32) -> CuptiResult>,
    pub(crate) set_thread_id_type: Option<unsafe extern "C" fn(u32) -> CuptiResult>,
    pub(crate) subscribe:
        Option<unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> CuptiResult>,
    pub(crate) unsubscribe: Option<unsafe extern "C" fn(*mut c_void) -> CuptiResult>,
    pub(crate) enable_callback: Option<unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> CuptiResult>,
    pub(crate) enable_runtime_call: Option<unsafe extern "C" fn(u32, u8) -> CuptiResult>,
    pub(crate) enable_driver_call: Option<unsafe extern "C" fn(u32, u8) -> CuptiResult>,
}

impl Functions {
    /// Finds the functions of a loaded library; the name of a missing one otherwise.
    ///
    /// # Safety
    /// `find` returns the address of CUPTI's function of that name, in a library that is never unloaded.
    pub(crate) unsafe fn find(find: impl Fn(&str) -> Option<*mut c_void>) -> Result<Self, &'static str> {
        macro_rules! optional {
            ($name:literal, $type:ty) => {
                // SAFETY: the address is that of the function CUPTI's headers declare with this type.
                find($name).map(|address| unsafe { std::mem::transmute::<*mut c_void, $type>(address) })
            };
        }
        macro_rules! required {
            ($name:literal, $type:ty) => {
                optional!($name, $type).ok_or($name)?
            };
        }
        type Numbered = unsafe extern "C" fn(u32) -> CuptiResult;
        type Switch = unsafe extern "C" fn(u32, u8) -> CuptiResult;
        type Texted = unsafe extern "C" fn(CuptiResult, *mut *const c_char) -> CuptiResult;
        type Named = unsafe extern "C" fn(u32, u32, *mut *const c_char) -> CuptiResult;
        type Register = unsafe extern "C" fn(BufferRequested, BufferCompleted) -> CuptiResult;
        type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u32) -> CuptiResult;
        type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> CuptiResult;
        Ok(Self {
            get_version: required!("cuptiGetVersion", unsafe extern "C" fn(*mut u32) -> CuptiResult),
            get_timestamp: required!("cuptiGetTimestamp", unsafe extern "C" fn(*mut u64) -> CuptiResult),
            get_result_string: required!("cuptiGetResultString", Texted),
            get_callback_name: required!("cuptiGetCallbackName", Named),
            register_callbacks: required!("cuptiActivityRegisterCallbacks", Register),
            enable: required!("cuptiActivityEnable", Numbered),
            disable: required!("cuptiActivityDisable", Numbered),
            flush_all: required!("cuptiActivityFlushAll", Numbered),
            get_next_record: required!("cuptiActivityGetNextRecord", Next),
            get_dropped: required!("cuptiActivityGetNumDroppedRecords", Dropped),
            get_thread_id_type: optional!(
                "cuptiGetThreadIdType",
                unsafe extern "C" fn(*mut u32) -> CuptiResult
            ),
            set_thread_id_type: optional!("cuptiSetThreadIdType", Numbered),
            subscribe: optional!(
                "cuptiSubscribe",
                unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> CuptiResult
            ),
            unsubscribe: optional!("cuptiUnsubscribe", unsafe extern "C" fn(*mut c_void) -> CuptiResult),
            enable_callback: optional!(
                "cuptiEnableCallback",
                unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> CuptiResult
            ),
            enable_runtime_call: optional!("cuptiActivityEnableRuntimeApi", Switch),
            enable_driver_call: optional!("cuptiActivityEnableDriverApi", Switch),
        })
    }

    /// CUPTI's name of a result.
    pub(crate) fn result_name(&self, result: CuptiResult) -> String {
        let mut text = std::ptr::null();
        // SAFETY: CUPTI takes any number, and fills the local with the address of static text or leaves it null.
        let found = unsafe { (self.get_result_string)(result, &raw mut text) };
        // SAFETY: null, or what CUPTI returned: static text that ends in a zero.
        unsafe { text_at(text) }
            .filter(|_| found == CuptiResult::SUCCESS)
            .unwrap_or_else(|| format!("CUPTI error {}", result.0))
    }
}

/// The text at an address, if there is one.
///
/// # Safety
/// `text` is null or zero-terminated.
pub(crate) unsafe fn text_at(text: *const c_char) -> Option<String> {
    // SAFETY: checked for null; otherwise the caller's promise.
    (!text.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
