//! `_Py_DebugOffsets`: what CPython 3.13 and newer say about themselves at the beginning of `_PyRuntime`.

use super::memory::{Address, Memory, word_at};
use super::offsets::{EntryRule, Gil, LineTable, Offsets};

/// What is told after the cookie, in the order of 3.13's header: a structure a line, with the fields that are told of it.
const PYTHON_3_13: &str = "\
debug_offsets: version free_threaded
runtime_state: size finalizing interpreters_head
interpreter_state: size id next threads_head gc imports_modules sysdict builtins ceval_gil \
    gil_runtime_state gil_runtime_state_enabled gil_runtime_state_locked gil_runtime_state_holder
thread_state: size prev next interp current_frame thread_id native_thread_id datastack_chunk status
interpreter_frame: size previous executable instr_ptr localsplus owner
code_object: size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds co_code_adaptive
pyobject: size ob_type
type_object: size tp_name tp_repr tp_flags
tuple_object: size ob_item ob_size
list_object: size ob_item ob_size
dict_object: size ma_keys ma_values
float_object: size ob_fval
long_object: size lv_tag ob_digit
bytes_object: size ob_size ob_sval
unicode_object: size state length asciiobject_size";

const PYTHON_3_14: &str = "\
debug_offsets: version free_threaded
runtime_state: size finalizing interpreters_head
interpreter_state: size id next threads_head threads_main gc imports_modules sysdict builtins ceval_gil \
    gil_runtime_state gil_runtime_state_enabled gil_runtime_state_locked gil_runtime_state_holder \
    code_object_generation tlbc_generation
thread_state: size prev next interp current_frame thread_id native_thread_id datastack_chunk status
interpreter_frame: size previous executable instr_ptr localsplus owner stackpointer tlbc_index
code_object: size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds co_code_adaptive co_tlbc
pyobject: size ob_type
type_object: size tp_name tp_repr tp_flags
tuple_object: size ob_item ob_size
list_object: size ob_item ob_size
set_object: size used table mask
dict_object: size ma_keys ma_values
float_object: size ob_fval
long_object: size lv_tag ob_digit
bytes_object: size ob_size ob_sval
unicode_object: size state length asciiobject_size";

/// More words than any version has up to the last field that is used.
const WORDS: usize = 100;
/// An offset beyond this is none, and would make us read anywhere.
const LARGEST: u64 = 1 << 22;
/// What a compact text that is not ASCII has beyond one that is: its UTF-8 form and the length of that.
const COMPACT_FIELDS: usize = 16;

/// The offsets that an interpreter tells; `None` when it tells none, or is of a version without a table here.
pub(super) fn read<M: Memory>(minor: u8, runtime: Address, memory: &M) -> Result<Option<Offsets>, M::Error> {
    let structures = match minor {
        13 => PYTHON_3_13,
        14 => PYTHON_3_14,
        _ => return Ok(None),
    };
    Ok(decode(minor, structures, &memory.bytes(runtime, WORDS * 8)?))
}

fn decode(minor: u8, structures: &str, table: &[u8]) -> Option<Offsets> {
    let table = table.strip_prefix(b"xdebugpy")?;
    if word_at(table, 0) >> 16 != (3 << 8) | u64::from(minor) {
        return None;
    }
    let field = |structure: &str, name: &str| -> Option<usize> {
        let structures = structures.lines().filter_map(|line| line.split_once(": "));
        let mut fields = structures.flat_map(|(of, names)| names.split(' ').map(move |name| (of, name)));
        let index = fields.position(|field| field == (structure, name))?;
        let value = word_at(table, index * 8);
        (value < LARGEST).then_some(value as usize)
    };
    let interpreter = |name| field("interpreter_state", name);
    let thread = |name| field("thread_state", name);
    let frame = |name| field("interpreter_frame", name);
    let code = |name| field("code_object", name);
    let text = |name| field("unicode_object", name);
    // The interpreter has its lock in itself too; in the lock that it points at, fields lie as far from the beginning.
    let in_lock = |name| interpreter(name)?.checked_sub(interpreter("gil_runtime_state")?);
    Some(Offsets {
        minor,
        interpreters: field("runtime_state", "interpreters_head")?,
        interpreter_next: interpreter("next")?,
        interpreter_threads: interpreter("threads_head")?,
        interpreter_modules: interpreter("imports_modules")?,
        gil: match field("debug_offsets", "free_threaded")? {
            0 => Gil::Interpreter {
                lock: interpreter("ceval_gil")?,
                holder: in_lock("gil_runtime_state_holder")?,
                locked: in_lock("gil_runtime_state_locked")?,
            },
            _ => Gil::None,
        },
        thread_next: thread("next")?,
        thread_frame: thread("current_frame")?,
        c_frame: None,
        thread_ident: thread("thread_id")?,
        thread_number: Some(thread("native_thread_id")?),
        frame_previous: frame("previous")?,
        frame_code: frame("executable")?,
        frame_instruction: frame("instr_ptr")?,
        frame_entry: EntryRule::Owner(frame("owner")?),
        frame_locals: frame("localsplus")?,
        code_file: code("filename")?,
        code_name: code("qualname")?,
        code_line_table: code("linetable")?,
        code_first_line: code("firstlineno")?,
        code_local_names: code("localsplusnames")?,
        code_instructions: code("co_code_adaptive")?,
        line_table: LineTable::Locations,
        object_type: field("pyobject", "ob_type")?,
        type_name: field("type_object", "tp_name")?,
        type_flags: field("type_object", "tp_flags")?,
        text_length: text("length")?,
        text_state: text("state")?,
        text_ascii: text("asciiobject_size")?,
        text_other: text("asciiobject_size")? + COMPACT_FIELDS,
        sized_length: field("bytes_object", "ob_size")?,
        bytes_data: field("bytes_object", "ob_sval")?,
        tuple_items: field("tuple_object", "ob_item")?,
        list_items: field("list_object", "ob_item")?,
        float_value: field("float_object", "ob_fval")?,
        integer_tag: field("long_object", "lv_tag")?,
        integer_digits: field("long_object", "ob_digit")?,
        dict_keys: field("dict_object", "ma_keys")?,
        dict_values: field("dict_object", "ma_values")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as an interpreter has it in memory: cookie, version, whether it is free-threaded, then offsets.
    fn table(version: u64, free_threaded: u64, offsets: &[u64]) -> Vec<u8> {
        let words = [version, free_threaded].into_iter().chain(offsets.iter().copied());
        b"xdebugpy".iter().copied().chain(words.flat_map(u64::to_le_bytes)).collect()
    }

    // As release builds for x86-64 have them.
    const TOLD_BY_3_13_0: &[u64] = &[
        283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760, 304, 0,
        8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208, 112, 120, 128, 136, 68, 52, 96, 104, 200,
        16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24, 16, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32,
        16, 40,
    ];
    const TOLD_BY_3_14_2: &[u64] = &[
        316552, 784, 808, 225824, 7280, 7272, 7344, 7360, 7408, 7664, 7648, 7656, 16, 7760, 0, 7776, 7768,
        7968, 0, 824, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120, 128, 136,
        68, 52, 96, 104, 208, 0, 16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32,
        40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40,
    ];

    #[test]
    fn python_3_13() {
        let told = decode(13, PYTHON_3_13, &table(0x030d_00f0, 0, TOLD_BY_3_13_0)).unwrap();
        assert_eq!(told.gil, Gil::Interpreter { lock: 16, holder: 8, locked: 16 });
        assert_eq!((told.thread_frame, told.thread_number, told.code_instructions), (72, Some(160), 200));
        assert_eq!((told.frame_entry, told.tuple_items), (EntryRule::Owner(70), 24));
        assert_eq!((told.text_ascii, told.text_other, told.dict_values), (40, 56, 40));
    }

    #[test]
    fn python_3_14() {
        let told = decode(14, PYTHON_3_14, &table(0x030e_02f0, 0, TOLD_BY_3_14_2)).unwrap();
        assert_eq!((told.interpreters, told.interpreter_modules, told.code_instructions), (808, 7664, 208));
        assert_eq!((told.frame_entry, told.tuple_items), (EntryRule::Owner(74), 32));
        assert_eq!((told.text_ascii, told.text_other, told.dict_values), (40, 56, 40));
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        let of_3_13 = |bytes: &[u8]| decode(13, PYTHON_3_13, bytes).map(|told| told.gil);
        assert_eq!(of_3_13(&table(0x030d_00f0, 1, TOLD_BY_3_13_0)), Some(Gil::None));
        assert_eq!(of_3_13(&table(0x030e_02f0, 0, TOLD_BY_3_14_2)), None, "another version");
        assert_eq!(of_3_13(&[0; 800]), None, "no cookie");
        assert_eq!(of_3_13(&table(0x030d_00f0, 0, &[1 << 40; 80])), None, "absurd offsets");
    }
}
