//! Where the fields of the interpreter's structures are, by version of Python.
//!
//! 3.13 and newer say it themselves, in a table at the beginning of `_PyRuntime`. Before, offsets were the same for all
//! releases of a minor version; those below were computed from CPython's own headers.

use super::error::SamplerError;
use super::interpreter::PythonVersion;
use super::memory::{Address, Memory, word_at};

/// How a code object says which instruction belongs to which line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineTable {
    /// Pairs of bytes, to 3.9.
    Lnotab,
    /// Pairs of bytes with gaps, 3.10.
    Pairs,
    /// Entries of several bytes, from 3.11 on.
    Locations,
}

/// How the innermost frame is found from the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameRoot {
    /// The thread points at it.
    Direct,
    /// The thread points at a structure on the C stack that points at it.
    Indirect(usize),
}

/// How the holder of the interpreter's lock is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GilPlace {
    /// The runtime points at the thread that runs.
    Runtime(usize),
    /// The interpreter points at its lock, which knows whether it is held and who held it last.
    Interpreter { lock: usize, holder: usize, locked: usize },
    /// There is no such lock.
    None,
}

/// Offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) interpreters: usize,
    pub(super) interpreter_next: usize,
    pub(super) interpreter_threads: usize,
    pub(super) interpreter_modules: usize,
    pub(super) gil: GilPlace,

    pub(super) thread_next: usize,
    pub(super) thread_frame: usize,
    pub(super) frame_root: FrameRoot,
    pub(super) thread_ident: usize,
    /// Python knows the thread's number in the operating system from 3.11 on.
    pub(super) thread_number: Option<usize>,

    pub(super) frame_previous: usize,
    pub(super) frame_code: usize,
    pub(super) frame_instruction: usize,
    /// From 3.11 on: who owns the frame; those of the C stack are no Python frames.
    pub(super) frame_owner: Option<usize>,
    pub(super) frame_locals: usize,

    pub(super) code_filename: usize,
    pub(super) code_name: usize,
    pub(super) code_qualname: Option<usize>,
    pub(super) code_line_table: usize,
    pub(super) code_first_line: usize,
    pub(super) code_local_names: usize,
    /// Where the instructions begin, from 3.11 on.
    pub(super) code_instructions: usize,
    pub(super) line_table: LineTable,

    pub(super) object_type: usize,
    pub(super) type_name: usize,
    pub(super) type_flags: usize,
    pub(super) text_length: usize,
    pub(super) text_state: usize,
    /// Where the characters of an ASCII text begin.
    pub(super) text_ascii: usize,
    /// Where those of another text begin.
    pub(super) text_other: usize,
    pub(super) sized_length: usize,
    pub(super) bytes_data: usize,
    pub(super) tuple_items: usize,
    pub(super) list_items: usize,
    pub(super) float_value: usize,
    pub(super) integer_tag: usize,
    pub(super) integer_digits: usize,
    pub(super) dict_keys: usize,
    pub(super) dict_values: usize,
}

impl Layout {
    /// How many bytes of a frame have to be read.
    pub(super) fn frame_length(&self) -> usize {
        let fields =
            [self.frame_previous, self.frame_code, self.frame_instruction, self.frame_owner.unwrap_or(0)];
        fields.into_iter().max().unwrap_or(0) + 8
    }

    /// How many bytes of a thread have to be read.
    pub(super) fn thread_length(&self) -> usize {
        let fields =
            [self.thread_next, self.thread_frame, self.thread_ident, self.thread_number.unwrap_or(0)];
        fields.into_iter().max().unwrap_or(0) + 8
    }

    /// How many bytes of a code object have to be read.
    pub(super) fn code_length(&self) -> usize {
        let fields = [
            self.code_filename,
            self.code_name,
            self.code_qualname.unwrap_or(0),
            self.code_line_table,
            self.code_first_line,
            self.code_local_names,
        ];
        fields.into_iter().max().unwrap_or(0) + 8
    }

    /// The layout of a version; `runtime` is where `_PyRuntime` lies.
    pub(super) fn of(
        version: PythonVersion,
        runtime: Address,
        memory: &Memory,
    ) -> Result<Self, SamplerError> {
        let unknown =
            || SamplerError::UnknownVersion { process: memory.process, version: version.to_string() };
        match version.minor {
            8 => Ok(Self { gil: GilPlace::Runtime(1368), interpreter_modules: 56, ..Self::frames_on_heap() }),
            9 => Ok(Self::frames_on_heap()),
            10 => Ok(Self {
                frame_instruction: 96,
                frame_locals: 352,
                line_table: LineTable::Pairs,
                ..Self::frames_on_heap()
            }),
            11 => Ok(Self::frames_on_stack()),
            12 => Ok(Self {
                interpreter_threads: 72,
                interpreter_modules: 944,
                gil: GilPlace::Interpreter { lock: 384, holder: 8, locked: 16 },
                frame_root: FrameRoot::Indirect(0),
                thread_ident: 136,
                thread_number: Some(144),
                frame_code: 0,
                frame_previous: 8,
                frame_owner: Some(70),
                code_first_line: 68,
                code_instructions: 192,
                text_ascii: 40,
                text_other: 56,
                ..Self::frames_on_stack()
            }),
            13 | 14 => Self::told(version, runtime, memory)?.ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    /// 3.9; frames are objects, each pointing at its caller.
    fn frames_on_heap() -> Self {
        Self {
            interpreters: 32,
            interpreter_next: 0,
            interpreter_threads: 8,
            interpreter_modules: 856,
            gil: GilPlace::Runtime(568),
            thread_next: 8,
            thread_frame: 24,
            frame_root: FrameRoot::Direct,
            thread_ident: 176,
            thread_number: None,
            frame_previous: 24,
            frame_code: 32,
            frame_instruction: 104,
            frame_owner: None,
            frame_locals: 360,
            code_filename: 104,
            code_name: 112,
            code_qualname: None,
            code_line_table: 120,
            code_first_line: 40,
            code_local_names: 72,
            code_instructions: 0,
            line_table: LineTable::Lnotab,
            ..Self::objects()
        }
    }

    /// 3.11; frames lie one after the other on a stack of their own.
    fn frames_on_stack() -> Self {
        Self {
            interpreters: 40,
            interpreter_next: 0,
            interpreter_threads: 16,
            interpreter_modules: 888,
            gil: GilPlace::Runtime(576),
            thread_next: 8,
            thread_frame: 56,
            frame_root: FrameRoot::Indirect(8),
            thread_ident: 152,
            thread_number: Some(160),
            frame_previous: 48,
            frame_code: 32,
            frame_instruction: 56,
            frame_owner: Some(69),
            frame_locals: 72,
            code_filename: 112,
            code_name: 120,
            code_qualname: Some(128),
            code_line_table: 136,
            code_first_line: 72,
            code_local_names: 96,
            code_instructions: 184,
            line_table: LineTable::Locations,
            ..Self::objects()
        }
    }

    /// What objects look like in all versions that do not say it themselves.
    fn objects() -> Self {
        Self {
            interpreters: 0,
            interpreter_next: 0,
            interpreter_threads: 0,
            interpreter_modules: 0,
            gil: GilPlace::None,
            thread_next: 0,
            thread_frame: 0,
            frame_root: FrameRoot::Direct,
            thread_ident: 0,
            thread_number: None,
            frame_previous: 0,
            frame_code: 0,
            frame_instruction: 0,
            frame_owner: None,
            frame_locals: 0,
            code_filename: 0,
            code_name: 0,
            code_qualname: None,
            code_line_table: 0,
            code_first_line: 0,
            code_local_names: 0,
            code_instructions: 0,
            line_table: LineTable::Locations,
            object_type: 8,
            type_name: 24,
            type_flags: 168,
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
        }
    }

    /// What the interpreter says about itself; `None` when it does not, or says it in a way we do not know.
    fn told(version: PythonVersion, runtime: Address, memory: &Memory) -> Result<Option<Self>, SamplerError> {
        const WORDS: usize = 100;
        let table = memory.bytes(runtime, WORDS * 8)?;
        if !table.starts_with(b"xdebugpy") || word_at(&table, 8) >> 16 != (3 << 8) | u64::from(version.minor)
        {
            return Ok(None);
        }
        let mut fields = (0..WORDS).map(|index| word_at(&table, index * 8));
        // Each group begins with the size of its structure; an absurd offset would make us read anywhere.
        let mut take = |count: usize| -> Option<Vec<usize>> {
            let group: Vec<usize> = fields.by_ref().take(count).map(|field| field as usize).collect();
            (group.len() == count && group.iter().all(|&field| field < 1 << 22)).then_some(group)
        };
        let newer = usize::from(version.minor >= 14);
        let mut groups = || {
            let mut skip_head = take_head(&mut take)?;
            let free_threaded = skip_head.pop()? != 0;
            let runtime = take(3)?;
            let interpreter = take(13 + 3 * newer)?;
            let thread = take(9)?;
            let frame = take(6 + 2 * newer)?;
            let code = take(10 + newer)?;
            let object = take(2)?;
            let kind = take(4)?;
            let tuple = take(3)?;
            let list = take(3)?;
            let _set = if newer == 1 { take(4)? } else { Vec::new() };
            let dict = take(3)?;
            let float = take(2)?;
            let integer = take(3)?;
            let bytes = take(3)?;
            let text = take(4)?;
            // `threads_main` came between in 3.14.
            let (gil, holder, locked) = (
                interpreter[8 + newer],
                interpreter[12 + newer].wrapping_sub(interpreter[9 + newer]),
                interpreter[11 + newer].wrapping_sub(interpreter[9 + newer]),
            );
            Some(Self {
                interpreters: runtime[2],
                interpreter_next: interpreter[2],
                interpreter_threads: interpreter[3],
                interpreter_modules: interpreter[5 + newer],
                gil: if free_threaded {
                    GilPlace::None
                } else {
                    GilPlace::Interpreter { lock: gil, holder, locked }
                },
                thread_next: thread[2],
                thread_frame: thread[4],
                frame_root: FrameRoot::Direct,
                thread_ident: thread[5],
                thread_number: Some(thread[6]),
                frame_previous: frame[1],
                frame_code: frame[2],
                frame_instruction: frame[3],
                frame_owner: Some(frame[5]),
                frame_locals: frame[4],
                code_filename: code[1],
                code_name: code[2],
                code_qualname: Some(code[3]),
                code_line_table: code[4],
                code_first_line: code[5],
                code_local_names: code[7],
                code_instructions: code[9],
                line_table: LineTable::Locations,
                object_type: object[1],
                type_name: kind[1],
                type_flags: kind[3],
                text_length: text[2],
                text_state: text[1],
                text_ascii: text[3],
                text_other: text[3] + 16,
                sized_length: bytes[1],
                bytes_data: bytes[2],
                tuple_items: tuple[1],
                list_items: list[1],
                float_value: float[1],
                integer_tag: integer[1],
                integer_digits: integer[2],
                dict_keys: dict[1],
                dict_values: dict[2],
            })
        };
        Ok(groups())
    }
}

/// Passes over the cookie and the version, which are no offsets, and takes whether there is a lock at all.
fn take_head(take: &mut impl FnMut(usize) -> Option<Vec<usize>>) -> Option<Vec<usize>> {
    let _cookie_and_version = take(2);
    take(1)
}
