//! The C ABI of the shim, mirrored from `shim/hotspan_shim.h`. Changes there are changes here; the number tells.

use std::ffi::{c_char, c_void};

use crate::buffer::RecordShape;

/// `HOTSPAN_ABI`.
pub(crate) const ABI: u32 = 1;

/// `HOTSPAN_RECORD_BYTES`, of which the first belong to the shim.
const RECORD_BYTES: usize = 56;
const RECORD_SHIM_BYTES: usize = 8;

/// What a chunk must know about records.
pub(crate) const RECORD_SHAPE: RecordShape = RecordShape {
    size: RECORD_BYTES,
    released_at: RECORD_SHIM_BYTES + std::mem::offset_of!(Operator, released),
};

pub(crate) const KIND_USER_SCOPE: u8 = 7;
pub(crate) const KIND_MEMORY: u8 = 0x80;
pub(crate) const KIND_OUT_OF_MEMORY: u8 = 0x81;

/// `HotspanOperator`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Operator {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: *mut NameHeader,
    pub(crate) inputs: *mut InputsHeader,
    pub(crate) sequence: i64,
    pub(crate) forward_thread: u32,
    pub(crate) kind: u8,
    pub(crate) is_async: u8,
    pub(crate) released: u8,
    pub(crate) unused: u8,
}

/// `HotspanMemory`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) total_allocated: u64,
    pub(crate) total_reserved: u64,
    pub(crate) bytes: i64,
    pub(crate) device_index: i32,
    pub(crate) kind: u8,
    pub(crate) device_type: u8,
    pub(crate) released: u8,
    pub(crate) unused: u8,
}

const _: () = assert!(size_of::<Operator>() == RECORD_BYTES - RECORD_SHIM_BYTES);
const _: () = assert!(size_of::<Memory>() == size_of::<Operator>());
const _: () = assert!(std::mem::offset_of!(Operator, kind) == std::mem::offset_of!(Memory, kind));

/// `HotspanName`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct NameHeader {
    pub(crate) length: u32,
    pub(crate) overload_length: u32,
    pub(crate) cache: u64,
}

/// `HotspanInputs`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct InputsHeader {
    pub(crate) words: u32,
    pub(crate) count: u32,
    pub(crate) cache: u64,
}

/// A record as the converter reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Operator(Operator),
    Memory(Memory),
}

impl Record {
    /// Reads a record.
    ///
    /// # Safety
    /// `at` is a published record of a chunk that has not been discarded.
    pub(crate) unsafe fn read(at: *mut u8) -> Self {
        let operator = at.wrapping_add(RECORD_SHIM_BYTES).cast::<Operator>();
        // SAFETY: the record is whole and nothing but `end`, `is_async` and `released` changes after it is published;
        // those are read below, or not at all, with the same atomics that write them.
        unsafe {
            let kind = (&raw const (*operator).kind).read();
            if kind >= KIND_MEMORY {
                return Self::Memory(operator.cast::<Memory>().read());
            }
            let end = std::sync::atomic::AtomicU64::from_ptr(&raw mut (*operator).end);
            let end = end.load(std::sync::atomic::Ordering::Acquire);
            let is_async = std::sync::atomic::AtomicU8::from_ptr(&raw mut (*operator).is_async);
            Self::Operator(Operator {
                start: (&raw const (*operator).start).read(),
                end,
                name: (&raw const (*operator).name).read(),
                inputs: (&raw const (*operator).inputs).read(),
                sequence: (&raw const (*operator).sequence).read(),
                forward_thread: (&raw const (*operator).forward_thread).read(),
                kind,
                is_async: is_async.load(std::sync::atomic::Ordering::Relaxed),
                released: 0,
                unused: 0,
            })
        }
    }
}

/// Tags of encoded inputs: `HOTSPAN_INPUT_*`.
pub(crate) mod input {
    pub(crate) const OTHER: u8 = 0;
    pub(crate) const UNDEFINED: u8 = 1;
    pub(crate) const TENSOR: u8 = 2;
    pub(crate) const INT: u8 = 3;
    pub(crate) const DOUBLE: u8 = 4;
    pub(crate) const BOOL: u8 = 5;
    pub(crate) const COMPLEX: u8 = 6;
    pub(crate) const SYMBOLIC: u8 = 7;
    pub(crate) const TENSOR_LIST: u8 = 8;
    pub(crate) const SCALAR_LIST: u8 = 9;
    pub(crate) const TEXT: u8 = 10;
    pub(crate) const FLAG: u8 = 1;
}

const NAME_SLOTS: usize = 256;
const INPUT_SLOTS: usize = 512;

/// `HotspanThread`. The slots are the shim's; Rust only clears them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) session: u64,
    pub(crate) bytes: *mut u8,
    pub(crate) records: *mut u8,
    pub(crate) dropped: u64,
    pub(crate) inputs_dropped: u64,
    pub(crate) slots: [u64; 2 * (NAME_SLOTS + INPUT_SLOTS)],
}

impl Thread {
    pub(crate) const EMPTY: Self = Self {
        session: 0,
        bytes: std::ptr::null_mut(),
        records: std::ptr::null_mut(),
        dropped: 0,
        inputs_dropped: 0,
        slots: [0; 2 * (NAME_SLOTS + INPUT_SLOTS)],
    };
}

/// `HotspanSink`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sink {
    pub(crate) attach: extern "C" fn(session: u64, torch_thread: u64) -> *mut Thread,
    pub(crate) grow: extern "C" fn(thread: *mut Thread, room: u64) -> i32,
    pub(crate) detach: extern "C" fn(thread: *mut Thread),
}

pub(crate) const FLAG_INPUTS: u32 = 1;
pub(crate) const FLAG_MEMORY: u32 = 2;
pub(crate) const FLAG_TICKS: u32 = 4;

pub(crate) const OK: i32 = 0;
pub(crate) const TORCH_PROFILER_ACTIVE: i32 = 1;

/// The functions of a loaded shim. It is never unloaded: operators may still run through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) begin: unsafe extern "C" fn(sink: *const Sink, session: u64, flags: u32) -> i32,
    pub(crate) gate: unsafe extern "C" fn(session: u64),
    pub(crate) end: unsafe extern "C" fn() -> i32,
    pub(crate) forked: unsafe extern "C" fn(),
    pub(crate) dtype: unsafe extern "C" fn(dtype: u8, length: *mut u64) -> *const c_char,
    pub(crate) error: unsafe extern "C" fn() -> *const c_char,
}

impl Functions {
    /// Finds the functions of a loaded library; the name of the missing one otherwise.
    ///
    /// # Safety
    /// `find` returns the address of the function of that name in a library that is never unloaded.
    pub(crate) unsafe fn find(find: impl Fn(&str) -> Option<*mut c_void>) -> Result<(u32, Self), &'static str> {
        macro_rules! function {
            ($name:literal, $type:ty) => {{
                let address: *mut c_void = find($name).ok_or($name)?;
                // SAFETY: the address is that of the function the header declares with this type.
                unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
            }};
        }
        let abi = function!("hotspan_shim_abi", unsafe extern "C" fn() -> u32);
        let functions = Self {
            begin: function!("hotspan_shim_begin", unsafe extern "C" fn(*const Sink, u64, u32) -> i32),
            gate: function!("hotspan_shim_gate", unsafe extern "C" fn(u64)),
            end: function!("hotspan_shim_end", unsafe extern "C" fn() -> i32),
            forked: function!("hotspan_shim_forked", unsafe extern "C" fn()),
            dtype: function!("hotspan_shim_dtype", unsafe extern "C" fn(u8, *mut u64) -> *const c_char),
            error: function!("hotspan_shim_error", unsafe extern "C" fn() -> *const c_char),
        };
        // SAFETY: takes nothing and returns a number.
        Ok((unsafe { abi() }, functions))
    }

    /// The last failure on this thread.
    pub(crate) fn last_error(&self) -> String {
        // SAFETY: returns the thread's own zero-terminated text.
        unsafe { std::ffi::CStr::from_ptr((self.error)()) }.to_string_lossy().into_owned()
    }

    /// torch's name of a dtype.
    pub(crate) fn dtype_name(&self, dtype: u8) -> String {
        let mut length = 0;
        // SAFETY: `length` is a place for a number; the name is static text of that length.
        let bytes = unsafe {
            let text = (self.dtype)(dtype, &raw mut length);
            std::slice::from_raw_parts(text.cast::<u8>(), length as usize)
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}
