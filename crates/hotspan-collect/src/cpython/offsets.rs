//! Where the fields of CPython's structures are, by version.
//!
//! Releases of one minor version share them. 3.13 and newer say them themselves ([`super::debug_offsets`]); the tables of
//! those before were computed from CPython's headers. Debug builds differ.

use super::debug_offsets;
use super::memory::{Address, Memory};

/// How a code object says which instruction belongs to which line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineTable {
    /// Pairs of bytes, to 3.9.
    Lnotab,
    /// Pairs of bytes with gaps, 3.10.
    Pairs,
    /// Entries of several bytes, from 3.11 on.
    Locations,
}

/// How a frame says that C called the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRule {
    /// Frames are objects on the heap, and each is a call of the evaluation loop of its own (to 3.10).
    Always,
    /// A byte of the frame is not 0 then (3.11).
    Flag(usize),
    /// A frame of its own stands for the call; the byte with its owner says so (3.12 and later).
    Owner(usize),
}

/// How the holder of the interpreter's lock is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gil {
    /// The runtime points at the thread that runs.
    Runtime(usize),
    /// The interpreter points at its lock, which has who held it last and whether it is held. A free-threaded build has the
    /// lock too, and a field in it says whether it is used.
    Interpreter { lock: usize, holder: usize, locked: usize, used: Option<usize> },
}

/// Offsets in bytes, and what else differs from version to version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offsets {
    /// The minor version of Python 3.
    pub(crate) minor: u8,
    pub(crate) interpreters: usize,
    pub(crate) interpreter_next: usize,
    pub(crate) interpreter_threads: usize,
    pub(crate) interpreter_modules: usize,
    pub(crate) gil: Gil,

    pub(crate) thread_next: usize,
    pub(crate) thread_frame: usize,
    /// A structure on the C stack lies between the thread and its frame, with the frame at this offset.
    pub(crate) c_frame: Option<usize>,
    pub(crate) thread_ident: usize,
    /// The thread's number in the operating system, which Python keeps from 3.11 on.
    pub(crate) thread_number: Option<usize>,

    pub(crate) frame_previous: usize,
    pub(crate) frame_code: usize,
    pub(crate) frame_instruction: usize,
    pub(crate) frame_entry: EntryRule,
    pub(crate) frame_locals: usize,
    /// The outermost frame of a thread stands for no call of the interpreter (3.15 and later).
    pub(crate) has_base_frame: bool,

    pub(crate) code_file: usize,
    /// The name, with the class where code objects have it.
    pub(crate) code_name: usize,
    pub(crate) code_line_table: usize,
    pub(crate) code_first_line: usize,
    pub(crate) code_local_names: usize,
    /// How many arguments have a position: the first variables.
    pub(crate) code_argument_count: usize,
    /// Where the instructions begin, from 3.11 on.
    pub(crate) code_instructions: usize,
    /// The pointer to the table of copies of the instructions, of which each thread of a free-threaded build has its own.
    pub(crate) code_copies: Option<usize>,
    pub(crate) line_table: LineTable,

    pub(crate) object_type: usize,
    pub(crate) type_name: usize,
    pub(crate) type_flags: usize,
    pub(crate) type_basic_size: usize,
    /// The names of attributes that instances share, from 3.11 on.
    pub(crate) type_shared_keys: usize,
    /// How far before an instance the pointer to its dict lies, from 3.11 on.
    pub(crate) dict_before: u64,
    pub(crate) text_length: usize,
    pub(crate) text_state: usize,
    /// Where the characters of an ASCII text begin.
    pub(crate) text_ascii: usize,
    /// Where those of another text begin.
    pub(crate) text_other: usize,
    pub(crate) sized_length: usize,
    pub(crate) bytes_data: usize,
    pub(crate) tuple_items: usize,
    pub(crate) list_items: usize,
    pub(crate) float_value: usize,
    pub(crate) integer_tag: usize,
    pub(crate) integer_digits: usize,
    pub(crate) dict_keys: usize,
    pub(crate) dict_values: usize,
}

const PYTHON_3_9: Offsets = Offsets {
    minor: 9,
    interpreters: 32,
    interpreter_next: 0,
    interpreter_threads: 8,
    interpreter_modules: 856,
    gil: Gil::Runtime(568),
    thread_next: 8,
    thread_frame: 24,
    c_frame: None,
    thread_ident: 176,
    thread_number: None,
    frame_previous: 24,
    frame_code: 32,
    frame_instruction: 104,
    frame_entry: EntryRule::Always,
    frame_locals: 360,
    has_base_frame: false,
    code_file: 104,
    code_name: 112,
    code_line_table: 120,
    code_first_line: 40,
    code_local_names: 72,
    code_argument_count: 16,
    code_instructions: 0,
    code_copies: None,
    line_table: LineTable::Lnotab,
    object_type: 8,
    type_name: 24,
    type_flags: 168,
    type_basic_size: 32,
    type_shared_keys: 0,
    dict_before: 0,
    text_length: 16,
    text_state: 32,
    text_ascii: 48,
    text_other: 72,
    sized_length: 16,
    bytes_data: 32,
    tuple_items: 24,
    list_items: 24,
    float_value: 16,
    integer_tag: 16,
    integer_digits: 24,
    dict_keys: 32,
    dict_values: 40,
};

const PYTHON_3_8: Offsets =
    Offsets { minor: 8, gil: Gil::Runtime(1368), interpreter_modules: 56, ..PYTHON_3_9 };

pub(crate) const PYTHON_3_10: Offsets = Offsets {
    minor: 10,
    frame_instruction: 96,
    frame_locals: 352,
    line_table: LineTable::Pairs,
    ..PYTHON_3_9
};

/// From here on frames lie one after the other on a stack of their own.
pub(crate) const PYTHON_3_11: Offsets = Offsets {
    minor: 11,
    interpreters: 40,
    interpreter_threads: 16,
    interpreter_modules: 888,
    gil: Gil::Runtime(576),
    thread_frame: 56,
    c_frame: Some(8),
    thread_ident: 152,
    thread_number: Some(160),
    frame_previous: 48,
    frame_instruction: 56,
    frame_entry: EntryRule::Flag(68),
    frame_locals: 72,
    code_file: 112,
    code_name: 128,
    code_line_table: 136,
    code_first_line: 72,
    code_local_names: 96,
    code_argument_count: 56,
    code_instructions: 184,
    line_table: LineTable::Locations,
    type_shared_keys: 872,
    dict_before: 24,
    ..PYTHON_3_10
};

const PYTHON_3_12: Offsets = Offsets {
    minor: 12,
    interpreter_threads: 72,
    interpreter_modules: 944,
    gil: Gil::Interpreter { lock: 384, holder: 8, locked: 16, used: None },
    c_frame: Some(0),
    thread_ident: 136,
    thread_number: Some(144),
    frame_code: 0,
    frame_previous: 8,
    frame_entry: EntryRule::Owner(70),
    code_first_line: 68,
    code_argument_count: 52,
    code_instructions: 192,
    type_shared_keys: 880,
    text_ascii: 40,
    text_other: 56,
    ..PYTHON_3_11
};

impl Offsets {
    /// The offsets of Python 3.`minor`, whose `_PyRuntime` lies at `runtime`; `None` for a version without a table.
    pub(crate) fn of<M: Memory>(minor: u8, runtime: Address, memory: &M) -> Result<Option<Self>, M::Error> {
        Ok(match minor {
            8 => Some(PYTHON_3_8),
            9 => Some(PYTHON_3_9),
            10 => Some(PYTHON_3_10),
            11 => Some(PYTHON_3_11),
            12 => Some(PYTHON_3_12),
            _ => return debug_offsets::read(minor, runtime, memory),
        })
    }

    /// Whether frames are objects on the heap, rather than neighbours on a stack of their own.
    pub(crate) fn has_frame_objects(&self) -> bool {
        self.frame_entry == EntryRule::Always
    }

    /// How many bytes of a frame have to be read.
    pub(crate) fn frame_length(&self) -> usize {
        let entry = match self.frame_entry {
            EntryRule::Always => 0,
            EntryRule::Flag(offset) | EntryRule::Owner(offset) => offset,
        };
        entry.max(self.frame_previous).max(self.frame_code).max(self.frame_instruction) + 8
    }

    /// How many bytes of a thread have to be read.
    pub(crate) fn thread_length(&self) -> usize {
        let number = self.thread_number.unwrap_or(0);
        number.max(self.thread_next).max(self.thread_frame).max(self.thread_ident) + 8
    }

    /// How many bytes of a code object have to be read.
    pub(crate) fn code_length(&self) -> usize {
        let copies = self.code_copies.unwrap_or(0);
        let names = self.code_file.max(self.code_name);
        names.max(self.code_line_table).max(self.code_first_line).max(copies) + 8
    }

    /// How far the instruction of a frame lies from the first one of its code, in bytes, when the instructions begin at
    /// `start`. Before its first instruction a function is at its beginning.
    pub(crate) fn instruction_offset(&self, start: Address, instruction: u64) -> u32 {
        let number = (instruction as u32).cast_signed().max(0).cast_unsigned();
        match self.line_table {
            LineTable::Lnotab => number,
            LineTable::Pairs => number * 2,
            LineTable::Locations => u32::try_from(instruction.wrapping_sub(start.0)).unwrap_or(0),
        }
    }
}
