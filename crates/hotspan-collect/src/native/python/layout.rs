//! Where CPython keeps what is read here, by version. Computed from the headers of each; releases of one minor version
//! share them. Debug and free-threaded builds differ and are refused.

/// How frames say that C called the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryRule {
    /// Each frame is a call of the evaluation loop of its own (3.10).
    Always,
    /// A byte of the frame that is 1 then (3.11).
    Flag(usize),
    /// A frame of its own stands for the call; its owner, a byte, is this or more (3.12 and later).
    Owner(usize, u8),
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) minor: u32,
    /// The list of threads in an interpreter; `None`: the exported function is asked.
    pub(crate) interpreter_threads: Option<usize>,
    pub(crate) thread_next: usize,
    pub(crate) thread_pthread: usize,
    /// The number that the system knows a thread by; 3.10 does not keep it.
    pub(crate) thread_native: Option<usize>,
    pub(crate) thread_frame: usize,
    /// Between the thread and its frame lies a structure on the C stack, with the frame at this offset.
    pub(crate) by_c_frame: Option<usize>,
    pub(crate) frame_previous: usize,
    pub(crate) frame_code: usize,
    pub(crate) frame_instruction: usize,
    /// Whether the instruction is a number of 32 bits, not a pointer.
    pub(crate) instruction_is_number: bool,
    pub(crate) entry: EntryRule,
    pub(crate) code_first_line: usize,
    pub(crate) code_file: usize,
    /// The name, with the class where code objects know it.
    pub(crate) code_name: usize,
    pub(crate) code_lines: usize,
    /// Where the instructions begin in a code object, for instructions that are pointers.
    pub(crate) code_instructions: usize,
    pub(crate) ascii_size: usize,
    pub(crate) compact_size: usize,
}

/// How much of a frame is read at once: the fields above lie within it on every version.
pub(crate) const FRAME_BYTES: usize = 104;
/// How much of a code object is read at once.
pub(crate) const CODE_BYTES: usize = 144;

impl Layout {
    /// The layout of CPython 3.`minor`.
    pub(crate) fn of(minor: u32) -> Option<Self> {
        let three_eleven = Self {
            minor,
            interpreter_threads: None,
            thread_next: 8,
            thread_pthread: 152,
            thread_native: Some(160),
            thread_frame: 56,
            by_c_frame: Some(8),
            frame_previous: 48,
            frame_code: 32,
            frame_instruction: 56,
            instruction_is_number: false,
            entry: EntryRule::Flag(68),
            code_first_line: 72,
            code_file: 112,
            code_name: 128,
            code_lines: 136,
            code_instructions: 184,
            ascii_size: 48,
            compact_size: 72,
        };
        let three_twelve = Self {
            thread_pthread: 136,
            thread_native: Some(144),
            by_c_frame: Some(0),
            frame_previous: 8,
            frame_code: 0,
            entry: EntryRule::Owner(70, 3),
            code_first_line: 68,
            code_instructions: 192,
            ascii_size: 40,
            compact_size: 56,
            ..three_eleven
        };
        match minor {
            10 => Some(Self {
                interpreter_threads: Some(8),
                thread_pthread: 176,
                thread_native: None,
                thread_frame: 24,
                by_c_frame: None,
                frame_previous: 24,
                frame_code: 32,
                frame_instruction: 96,
                instruction_is_number: true,
                entry: EntryRule::Always,
                code_first_line: 40,
                code_file: 104,
                code_name: 112,
                code_lines: 120,
                ..three_eleven
            }),
            11 => Some(three_eleven),
            12 => Some(three_twelve),
            13 => Some(Self {
                thread_pthread: 152,
                thread_native: Some(160),
                thread_frame: 72,
                by_c_frame: None,
                code_instructions: 200,
                ..three_twelve
            }),
            _ => None,
        }
    }
}
