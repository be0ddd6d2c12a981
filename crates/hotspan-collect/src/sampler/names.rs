//! Names of threads as Python knows them: `threading._active`, read from outside.

use hashbrown::HashMap;

use super::error::SamplerError;
use super::interpreter::Interpreter;
use super::memory::{Address, Memory, word_at};
use super::objects::Objects;

/// More modules, names or threads than these are not looked through.
const MOST_ENTRIES: usize = 1 << 16;
/// A type's flag: instances have a dict before their beginning.
const MANAGED_DICT: u64 = 1 << 4;
/// A type's flag: instances keep their values right behind themselves (3.13 and newer).
const INLINE_VALUES: u64 = 1 << 2;

/// The names of all threads that `threading` knows, by `threading.get_ident()`.
pub(super) fn thread_names(
    memory: &Memory,
    interpreter: &Interpreter,
    state: Address,
) -> Result<HashMap<u64, String>, SamplerError> {
    let objects = Objects { memory, layout: &interpreter.layout };
    let minor = interpreter.version.minor;
    let entry = |dict: Address, name: &str| -> Result<Option<Address>, SamplerError> {
        for (key, value) in objects.dict(dict, minor, MOST_ENTRIES)? {
            if objects.text(key).is_ok_and(|key| key == name) {
                return Ok(Some(value));
            }
        }
        Ok(None)
    };
    let mut names = HashMap::new();
    let modules = memory.pointer(state.plus(interpreter.layout.interpreter_modules as u64))?;
    let Some(module) = entry(modules, "threading")? else { return Ok(names) };
    // A module's dict is its first field.
    let header = interpreter.layout.object_type as u64 + 8;
    let contents = memory.pointer(module.plus(header))?;
    let Some(active) = entry(contents, "_active")? else { return Ok(names) };
    for (ident, thread) in objects.dict(active, minor, MOST_ENTRIES)? {
        let Ok(Some(ident)) = integer(&objects, ident, minor) else { continue };
        if let Ok(Some(name)) = attribute(&objects, thread, minor, "_name") {
            names.insert(ident, objects.text(name)?);
        }
    }
    Ok(names)
}

/// A positive integer of at most 64 bits.
pub(super) fn integer(
    objects: &Objects<'_>,
    address: Address,
    minor: u8,
) -> Result<Option<u64>, SamplerError> {
    let layout = objects.layout;
    let tag = objects.memory.word(address.plus(layout.integer_tag as u64))?;
    // Before 3.12 the count of digits, with the sign; from then on shifted, with the sign in the lowest bits.
    let (count, negative) =
        if minor >= 12 { (tag >> 3, tag & 3 == 2) } else { ((tag as i64).unsigned_abs(), (tag as i64) < 0) };
    if negative || count > 3 {
        return Ok(None);
    }
    let digits = objects.memory.bytes(address.plus(layout.integer_digits as u64), count as usize * 4)?;
    let mut value = 0_u128;
    for digit in digits.chunks_exact(4).rev() {
        value = (value << 30) | u128::from(u32::from_le_bytes([digit[0], digit[1], digit[2], digit[3]]));
    }
    Ok(u64::try_from(value).ok())
}

/// An attribute in the dict of an instance, wherever the version keeps it.
fn attribute(
    objects: &Objects<'_>,
    object: Address,
    minor: u8,
    name: &str,
) -> Result<Option<Address>, SamplerError> {
    const DICT_OFFSET: usize = 288;
    const BASIC_SIZE: usize = 32;
    let memory = objects.memory;
    let kind = memory.pointer(object.plus(objects.layout.object_type as u64))?;
    let flags = memory.word(kind.plus(objects.layout.type_flags as u64))?;
    let is_name = |key: Address| objects.text(key).is_ok_and(|key| key == name);
    let in_dict = |dict: Address| -> Result<Option<Address>, SamplerError> {
        let entries = objects.dict(dict, minor, MOST_ENTRIES)?;
        Ok(entries.into_iter().find(|&(key, _)| is_name(key)).map(|(_, value)| value))
    };
    // The keys are shared by all instances and lie with the type.
    let in_values = |values: Address| -> Result<Option<Address>, SamplerError> {
        let shared_keys = match minor {
            11 => 872,
            _ => 880,
        };
        let keys = memory.pointer(kind.plus(shared_keys))?;
        let entries = objects.dict_keys(keys, minor, MOST_ENTRIES)?;
        let Some(index) = entries.iter().position(|&(key, _)| is_name(key)) else { return Ok(None) };
        let value = memory.pointer(values.plus(index as u64 * 8))?;
        Ok((!value.is_null()).then_some(value))
    };
    if minor < 11 {
        let offset = memory.word(kind.plus(DICT_OFFSET as u64))?;
        return in_dict(memory.pointer(object.plus(offset))?);
    }
    if flags & MANAGED_DICT == 0 {
        return Ok(None);
    }
    let before = memory.bytes(Address(object.0.wrapping_sub(32)), 32)?;
    let (values, dict) = (Address(word_at(&before, 0)), Address(word_at(&before, 8)));
    match minor {
        11 if !values.is_null() => in_values(values),
        // Values are marked by an address one below their own.
        12 if dict.0 & 1 == 1 => in_values(dict.plus(1)),
        11 | 12 => in_dict(dict),
        _ if !dict.is_null() => in_dict(dict),
        _ if flags & INLINE_VALUES != 0 => {
            let size = memory.word(kind.plus(BASIC_SIZE as u64))?;
            in_values(object.plus(size).plus(8))
        }
        _ => Ok(None),
    }
}
