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

/// What differs from 3.14: fields for exceptions, and two numbers of types more.
const PYTHON_3_15: &str = "\
debug_offsets: version free_threaded
runtime_state: size finalizing interpreters_head
interpreter_state: size id next threads_head threads_main gc imports_modules sysdict builtins ceval_gil \
    gil_runtime_state gil_runtime_state_enabled gil_runtime_state_locked gil_runtime_state_holder \
    code_object_generation tlbc_generation
thread_state: size prev next interp current_frame base_frame last_profiled_frame thread_id native_thread_id \
    datastack_chunk status holds_gil gil_requested current_exception exc_state
err_stackitem: exc_value
interpreter_frame: size previous executable instr_ptr localsplus owner stackpointer tlbc_index
code_object: size filename name qualname linetable firstlineno argcount localsplusnames localspluskinds co_code_adaptive co_tlbc
pyobject: size ob_type
type_object: size tp_name tp_repr tp_flags tp_basicsize tp_dictoffset
heap_type_object: size ht_cached_keys
tuple_object: size ob_item ob_size
list_object: size ob_item ob_size
set_object: size used table mask
dict_object: size ma_keys ma_values
float_object: size ob_fval
long_object: size lv_tag ob_digit
bytes_object: size ob_size ob_sval
unicode_object: size state length asciiobject_size compactunicodeobject_size";

/// More words than any version has up to the last field that is used.
const WORDS: usize = 110;
/// An offset beyond this is none, and would make us read anywhere.
const LARGEST: u64 = 1 << 22;
/// How far a type's fields lie behind its object header, where the interpreter does not tell: the size of instances, and the
/// shared names of attributes, which come after the fields of [`type_object`](PYTHON_3_13).
const BASIC_SIZE: usize = 16;
const SHARED_KEYS: usize = 864;
/// What a compact text that is not ASCII has beyond one that is: its UTF-8 form and the length of that.
const COMPACT_FIELDS: usize = 16;

/// The offsets that an interpreter tells; `None` when it tells none, or is of a version without a table here.
pub(super) fn read<M: Memory>(minor: u8, runtime: Address, memory: &M) -> Result<Option<Offsets>, M::Error> {
    let structures = match minor {
        13 => PYTHON_3_13,
        14 => PYTHON_3_14,
        15 => PYTHON_3_15,
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
    let is_free_threaded = field("debug_offsets", "free_threaded")? != 0;
    let object = field("pyobject", "size")?;
    let in_lock = |name| interpreter(name)?.checked_sub(interpreter("gil_runtime_state")?);
    Some(Offsets {
        minor,
        interpreters: field("runtime_state", "interpreters_head")?,
        interpreter_next: interpreter("next")?,
        interpreter_threads: interpreter("threads_head")?,
        interpreter_modules: interpreter("imports_modules")?,
        gil: Gil::Interpreter {
            lock: interpreter("ceval_gil")?,
            holder: in_lock("gil_runtime_state_holder")?,
            locked: in_lock("gil_runtime_state_locked")?,
            // This one is told from the beginning of the lock.
            used: if is_free_threaded { Some(interpreter("gil_runtime_state_enabled")?) } else { None },
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
        has_base_frame: thread("base_frame").is_some(),
        code_file: code("filename")?,
        code_name: code("qualname")?,
        code_line_table: code("linetable")?,
        code_first_line: code("firstlineno")?,
        code_local_names: code("localsplusnames")?,
        code_argument_count: code("argcount")?,
        code_instructions: code("co_code_adaptive")?,
        code_copies: code("co_tlbc").filter(|_| is_free_threaded),
        line_table: LineTable::Locations,
        object_type: field("pyobject", "ob_type")?,
        type_name: field("type_object", "tp_name")?,
        type_flags: field("type_object", "tp_flags")?,
        type_basic_size: field("type_object", "tp_basicsize").unwrap_or(object + BASIC_SIZE),
        type_shared_keys: field("heap_type_object", "ht_cached_keys").unwrap_or(object + SHARED_KEYS),
        // Between it and the instance lies what the garbage collector keeps, in builds with a lock.
        dict_before: if is_free_threaded { 8 } else { 24 },
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

    const TOLD_BY_FREE_THREADED_3_14_2: &[u64] = &[
        362304, 784, 808, 246656, 7280, 7272, 7344, 7360, 7408, 7712, 7696, 7704, 16, 7808, 0, 7832, 7824,
        8024, 17628, 824, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 78, 64, 72, 240, 128, 136, 144,
        152, 84, 68, 112, 120, 232, 224, 32, 24, 432, 40, 104, 184, 56, 48, 32, 56, 40, 32, 216, 40, 56, 48,
        64, 48, 56, 40, 32, 48, 32, 40, 56, 32, 48, 80, 48, 32, 56,
    ];
    const TOLD_BY_3_15_0B1: &[u64] = &[
        346120, 904, 928, 226208, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7728, 0, 7744, 7736,
        7936, 0, 880, 0, 8, 16, 72, 80, 88, 168, 176, 248, 32, 36, 40, 128, 280, 0, 88, 8, 0, 56, 80, 74, 64,
        0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0, 16, 8, 424, 24, 88, 168, 32, 288, 944, 888, 40,
        32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40, 56,
    ];

    #[test]
    fn python_3_13() {
        let told = decode(13, PYTHON_3_13, &table(0x030d_00f0, 0, TOLD_BY_3_13_0)).unwrap();
        assert_eq!(told.gil, Gil::Interpreter { lock: 16, holder: 8, locked: 16, used: None });
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
    fn python_3_14_without_a_lock() {
        let told = decode(14, PYTHON_3_14, &table(0x030e_02f0, 1, TOLD_BY_FREE_THREADED_3_14_2)).unwrap();
        assert_eq!(told.gil, Gil::Interpreter { lock: 16, holder: 16, locked: 24, used: Some(0) });
        assert_eq!((told.object_type, told.code_instructions, told.code_copies), (24, 232, Some(224)));
        assert_eq!((told.type_basic_size, told.type_shared_keys, told.dict_before), (48, 896, 8));
    }

    #[test]
    fn python_3_15() {
        let told = decode(15, PYTHON_3_15, &table(0x030f_00b1, 0, TOLD_BY_3_15_0B1)).unwrap();
        assert_eq!((told.thread_ident, told.thread_number, told.thread_frame), (168, Some(176), 72));
        assert_eq!((told.frame_entry, told.frame_locals), (EntryRule::Owner(74), 80));
        assert!(told.has_base_frame);
        assert_eq!((told.code_instructions, told.code_copies, told.dict_before), (208, None, 24));
        assert_eq!((told.type_basic_size, told.type_shared_keys, told.type_flags), (32, 888, 168));
        assert_eq!((told.text_ascii, told.text_other, told.dict_values), (40, 56, 40));
    }

    #[test]
    fn what_is_no_such_table_is_refused() {
        let of_3_13 = |bytes: &[u8]| decode(13, PYTHON_3_13, bytes).map(|told| told.minor);
        assert_eq!(of_3_13(&table(0x030d_00f0, 0, TOLD_BY_3_13_0)), Some(13));
        assert_eq!(of_3_13(&table(0x030e_02f0, 0, TOLD_BY_3_14_2)), None, "another version");
        assert_eq!(of_3_13(&[0; 800]), None, "no cookie");
        assert_eq!(of_3_13(&table(0x030d_00f0, 0, &[1 << 40; 80])), None, "absurd offsets");
    }
}
