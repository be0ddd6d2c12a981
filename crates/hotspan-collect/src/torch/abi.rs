//! The C ABI of the shim, mirrored from `shim/hotspan_shim.h`. Changes there are changes here; the number tells.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::buffer::SlotShape;

/// `HOTSPAN_ABI`.
pub(crate) const ABI: u32 = 7;

/// What a chunk must know about slots.
pub(crate) const SLOT_SHAPE: SlotShape = SlotShape { size: 32, done_at: std::mem::offset_of!(Operator, end) };

pub(crate) const KIND_FUNCTION: u8 = 0;
pub(crate) const KIND_BACKWARD: u8 = 1;
pub(crate) const KIND_USER_SCOPE: u8 = 7;
pub(crate) const KIND_ASYNC: u8 = 0x40;
pub(crate) const KIND_MEMORY: u8 = 0x80;
pub(crate) const KIND_OUT_OF_MEMORY: u8 = 0x81;
const KIND_EXTRA: u8 = 0x82;

/// The number that stands for a thread whose own number is too large.
pub(crate) const UNKNOWN_THREAD: u16 = 0xffff;

/// `HotspanOperator`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Operator {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: u32,
    pub(crate) inputs: u32,
    sequence_low: u32,
    sequence_high: u8,
    pub(crate) kind: u8,
    pub(crate) forward_thread: u16,
}

impl Operator {
    /// autograd's sequence number, if it has one.
    pub(crate) fn sequence(&self) -> Option<i64> {
        let sequence = i64::from(self.sequence_high) << 32 | i64::from(self.sequence_low);
        (sequence != (1 << 40) - 1).then_some(sequence)
    }

    /// The engine's work on a node, with what the node knows about its forward operator.
    pub(crate) fn of_node(mut self, node: &Self) -> Self {
        if node.kind == KIND_BACKWARD {
            self.sequence_low = node.sequence_low;
            self.sequence_high = node.sequence_high;
            self.forward_thread = node.forward_thread;
        }
        self
    }
}

/// `HotspanMemory`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Memory {
    pub(crate) time: u64,
    pub(crate) address: u64,
    pub(crate) bytes: i64,
    pub(crate) device_index: i32,
    pub(crate) device_type: u8,
    pub(crate) kind: u8,
    unused: u16,
}

/// `HotspanMemoryTotals`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MemoryTotals {
    pub(crate) allocated: u64,
    one: u64,
    pub(crate) reserved: u64,
    unused: u64,
}

/// `HotspanExtra`: what few ask for of the operator that follows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Extra {
    /// torch's number of the operator; 0 where nobody asked for it.
    pub(crate) id: i64,
    one: u64,
    /// Which block of tensors; 0 for none.
    pub(crate) tensors: u64,
    /// Which block of names has the modules of TorchScript around it; 0 for none.
    pub(crate) modules: u32,
    unused_too: u8,
    kind: u8,
    unused_also: u16,
}

const _: () = assert!(size_of::<Operator>() == SLOT_SHAPE.size);
const _: () = assert!(size_of::<Extra>() == SLOT_SHAPE.size);
const _: () = assert!(std::mem::offset_of!(Operator, kind) == std::mem::offset_of!(Extra, kind));
const _: () = assert!(size_of::<Memory>() == SLOT_SHAPE.size);
const _: () = assert!(size_of::<MemoryTotals>() == SLOT_SHAPE.size);
const _: () = assert!(std::mem::offset_of!(Operator, kind) == std::mem::offset_of!(Memory, kind));

/// A record as the converter reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Operator(Operator),
    /// Of the operator that follows.
    Extra(Extra),
    Memory(Memory, MemoryTotals),
}

impl Record {
    /// Reads the next record of the slots of a chunk.
    ///
    /// # Safety
    /// `slots` are published slots of a chunk, oldest first.
    pub(crate) unsafe fn read(slots: &mut impl Iterator<Item = *mut u8>) -> Option<Self> {
        let slot = slots.next()?.cast::<Operator>();
        // SAFETY: the slot is whole, and nothing but `end` and `kind` changes after it is published; those are read
        // with the same atomics that write them.
        unsafe {
            let kind = AtomicU8::from_ptr(&raw mut (*slot).kind).load(Ordering::Relaxed);
            if kind >= KIND_MEMORY {
                let totals = slots.next()?.cast::<MemoryTotals>();
                if kind == KIND_EXTRA {
                    return Some(Self::Extra(slot.cast::<Extra>().read()));
                }
                return Some(Self::Memory(slot.cast::<Memory>().read(), totals.read()));
            }
            // The end first: whoever ends a range writes the kind before it.
            let end = AtomicU64::from_ptr(&raw mut (*slot).end).load(Ordering::Acquire);
            let kind = AtomicU8::from_ptr(&raw mut (*slot).kind).load(Ordering::Relaxed);
            Some(Self::Operator(Operator {
                start: (*slot).start,
                end,
                name: (*slot).name,
                inputs: (*slot).inputs,
                sequence_low: (*slot).sequence_low,
                sequence_high: (*slot).sequence_high,
                kind,
                forward_thread: (*slot).forward_thread,
            }))
        }
    }
}

/// A block of names or inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Block<'a> {
    /// A name and the overload of its operator.
    Name(&'a [u8], &'a [u8]),
    /// How many inputs, and their items.
    Inputs(usize, &'a [u64]),
    /// Three words for each tensor.
    Tensors(&'a [u64]),
}

/// `HotspanBlock`.
const BLOCK_WORDS: usize = 2;
const BLOCK_NAME: u32 = 1;
const BLOCK_INPUTS: u32 = 2;
const BLOCK_TENSORS: u32 = 3;

impl<'a> Block<'a> {
    /// The block at the start of `words`, and the words after it. `None`: there is none, or none that is whole.
    pub(crate) fn read(words: &'a [u64]) -> Option<(Self, &'a [u64])> {
        let (head, _) = words.split_first_chunk::<BLOCK_WORDS>()?;
        let halves = |word: u64| (word as u32, (word >> 32) as u32); // as a little-endian processor laid them out
        let ((length, kind), (count, more)) = (halves(head[0]), halves(head[1]));
        let (block, rest) = words.split_at_checked(length as usize)?;
        let content = block.get(BLOCK_WORDS..)?;
        let block = match kind {
            BLOCK_NAME => {
                // SAFETY: every byte of a word that is initialised is a valid `u8`.
                let (_, bytes, _) = unsafe { content.align_to::<u8>() };
                let (name, rest) = bytes.split_at_checked(count as usize)?;
                Self::Name(name, rest.get(..more as usize)?)
            }
            BLOCK_INPUTS => Self::Inputs(count as usize, content),
            BLOCK_TENSORS => Self::Tensors(content),
            _ => return None,
        };
        Some((block, rest))
    }
}

const _: () =
    assert!(cfg!(target_endian = "little"), "blocks are read as a little-endian processor writes them");

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
    pub(crate) const TEXT_LIST: u8 = 11;
    pub(crate) const FLAG: u8 = 1;
}

/// Words of the shim's tables of names and inputs.
const TABLE_WORDS: usize = 2 + 1024 * 2 + 512 * 2 + 512 * 2;

/// `HotspanThread`. The tables are the shim's; Rust only clears them.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) session: u64,
    pub(crate) blocks: *mut u8,
    pub(crate) records: *mut u8,
    pub(crate) dropped: u64,
    pub(crate) inputs_dropped: u64,
    pub(crate) name_count: u32,
    pub(crate) inputs_count: u32,
    pub(crate) tables: [u64; TABLE_WORDS],
}

impl Thread {
    /// A buffer of no session and without room.
    pub(crate) const EMPTY: Self = Self {
        session: 0,
        blocks: std::ptr::null_mut(),
        records: std::ptr::null_mut(),
        dropped: 0,
        inputs_dropped: 0,
        name_count: 0,
        inputs_count: 0,
        tables: [0; TABLE_WORDS],
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
pub(crate) const FLAG_RANGES: u32 = 8;
pub(crate) const FLAG_IDS: u32 = 16;
pub(crate) const FLAG_PREPARED: u32 = 32;
pub(crate) const FLAG_TENSORS: u32 = 64;
pub(crate) const FLAG_MODULES: u32 = 128;

pub(crate) const OK: i32 = 0;
pub(crate) const TORCH_PROFILER_ACTIVE: i32 = 1;
pub(crate) const CHECK_FIRST: i32 = 3;

/// The functions of a loaded shim. It is never unloaded: operators may still run through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    pub(crate) check: unsafe extern "C" fn() -> i32,
    pub(crate) begin: unsafe extern "C" fn(sink: *const Sink, session: u64, flags: u32) -> i32,
    pub(crate) gate: unsafe extern "C" fn(session: u64),
    pub(crate) release_memory: unsafe extern "C" fn() -> i32,
    pub(crate) end: unsafe extern "C" fn() -> i32,
    pub(crate) before_fork: unsafe extern "C" fn(),
    pub(crate) forked: unsafe extern "C" fn(),
    pub(crate) links: unsafe extern "C" fn() -> i32,
    pub(crate) dtype: unsafe extern "C" fn(dtype: u8, length: *mut u64) -> *const c_char,
    pub(crate) error: unsafe extern "C" fn() -> *const c_char,
}

impl Functions {
    /// Finds the functions of a loaded library; the name of the missing one otherwise.
    ///
    /// # Safety
    /// `find` returns the address of the function of that name in a library that is never unloaded.
    pub(crate) unsafe fn find(
        find: impl Fn(&str) -> Option<*mut c_void>,
    ) -> Result<(u32, Self), &'static str> {
        macro_rules! function {
            ($name:literal, $type:ty) => {{
                let address: *mut c_void = find($name).ok_or($name)?;
                // SAFETY: `find` returns the address of the function of this name, the caller says, and the header that
                // both sides are built from declares it with this type; the number of the ABI is checked before any other
                // is called.
                unsafe { std::mem::transmute::<*mut c_void, $type>(address) }
            }};
        }
        let abi = function!("hotspan_shim_abi", unsafe extern "C" fn() -> u32);
        let functions = Self {
            check: function!("hotspan_shim_check", unsafe extern "C" fn() -> i32),
            begin: function!("hotspan_shim_begin", unsafe extern "C" fn(*const Sink, u64, u32) -> i32),
            gate: function!("hotspan_shim_gate", unsafe extern "C" fn(u64)),
            release_memory: function!("hotspan_shim_release_memory", unsafe extern "C" fn() -> i32),
            end: function!("hotspan_shim_end", unsafe extern "C" fn() -> i32),
            before_fork: function!("hotspan_shim_before_fork", unsafe extern "C" fn()),
            forked: function!("hotspan_shim_forked", unsafe extern "C" fn()),
            links: function!("hotspan_shim_links", unsafe extern "C" fn() -> i32),
            dtype: function!("hotspan_shim_dtype", unsafe extern "C" fn(u8, *mut u64) -> *const c_char),
            error: function!("hotspan_shim_error", unsafe extern "C" fn() -> *const c_char),
        };
        // SAFETY: the function takes nothing, and has this type in every version of the shim.
        Ok((unsafe { abi() }, functions))
    }

    /// The last failure on this thread.
    pub(crate) fn last_error(&self) -> String {
        // SAFETY: the shim returns an array of its thread that it never fills to the last byte, so that it ends in a
        // zero; only calls on this thread write to it.
        unsafe { std::ffi::CStr::from_ptr((self.error)()) }.to_string_lossy().into_owned()
    }

    /// Whether the program wants forward operators linked with their backward.
    pub(crate) fn wants_links(&self) -> bool {
        // SAFETY: takes nothing, and may be called on any thread.
        unsafe { (self.links)() != 0 }
    }

    /// torch's name of a dtype.
    pub(crate) fn dtype_name(&self, dtype: u8) -> String {
        let mut length = 0;
        // SAFETY: the shim writes the length to `length` and returns text of that length, which torch keeps for the whole
        // process; an empty one is not null.
        let bytes = unsafe {
            let text = (self.dtype)(dtype, &raw mut length);
            std::slice::from_raw_parts(text.cast::<u8>(), length as usize)
        };
        String::from_utf8_lossy(bytes).into_owned()
    }
}
