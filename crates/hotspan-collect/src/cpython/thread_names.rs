//! Names of threads as Python has them: `threading._active`, read from memory.

use hashbrown::HashMap;

use super::memory::{Address, Memory};
use super::objects::Objects;

/// The names of all threads that `threading` has, by `threading.get_ident()`.
pub(crate) fn thread_names<M: Memory>(
    objects: &Objects<'_, M>,
    interpreter: Address,
) -> Result<HashMap<u64, String>, M::Error> {
    let Objects { memory, offsets } = objects;
    let mut names = HashMap::new();
    let modules = memory.pointer(interpreter.field(offsets.interpreter_modules))?;
    let Some(module) = objects.dict_entry(modules, "threading")? else { return Ok(names) };
    // A module's dict is its first field.
    let contents = memory.pointer(module.field(offsets.object_type + 8))?;
    let Some(active) = objects.dict_entry(contents, "_active")? else { return Ok(names) };
    for (ident, thread) in objects.dict(active)? {
        let Ok(ident) = objects.integer(ident) else { continue };
        let ident = ident.magnitude.filter(|_| !ident.is_negative).and_then(|ident| ident.try_into().ok());
        if let (Some(ident), Ok(Some(name))) = (ident, objects.attribute(thread, "_name")) {
            names.insert(ident, objects.text(name)?);
        }
    }
    Ok(names)
}
