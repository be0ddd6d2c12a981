//! Names of functions by address. Reading the symbols of a large library takes longer than all else a sampler does, so those may be
//! left for later: a frame then has the address for a name, and [`FunctionNames`] finds the name when the program has ended.

use hashbrown::HashMap;

use super::names::readable;
use crate::elf::{self, Elf, Function};
use crate::mapped_file::Pieces;

/// A library with more symbols than this can wait: the C library has three thousand, torch half a million.
const MANY: usize = 20_000;

/// The functions of a library, by address.
#[derive(Debug, Default)]
pub(crate) struct Symbols(Vec<Function>);

impl Symbols {
    pub(crate) fn of(content: &Pieces) -> Self {
        Self(Elf::parse(content).map(|elf| elf.functions()).unwrap_or_default())
    }

    /// Whether reading them would take long.
    pub(crate) fn are_many(content: &Pieces) -> bool {
        Elf::parse(content).is_some_and(|elf| elf.symbol_count() > MANY)
    }

    /// The readable name of the function at an address of the library.
    pub(crate) fn name(&self, content: &Pieces, address: u64) -> Option<String> {
        let after = self.0.partition_point(|function| function.start <= address);
        let function = self.0.get(after.checked_sub(1)?)?;
        // A label of assembler has no size: it reaches to the next one.
        if function.size > 0 && address >= function.start.saturating_add(function.size) {
            return None;
        }
        elf::text(content, function.name).map(readable)
    }
}

/// What a frame is called whose name is left for later.
pub(crate) fn later(address: u64) -> String {
    format!("{address:#x}")
}

/// What a frame is called that has no name.
pub(crate) fn nameless(library: &str) -> String {
    format!("[{}]", library.rsplit('/').next().unwrap_or_default())
}

/// Finds the names that were left for later, on the machine that recorded them.
#[derive(Debug, Default)]
pub struct FunctionNames {
    libraries: HashMap<String, Option<(Pieces, Symbols)>>,
}

impl FunctionNames {
    /// The name of a frame in a library; `None` for a frame that has one.
    pub fn find(&mut self, library: &str, frame: &str) -> Option<String> {
        let address = u64::from_str_radix(frame.strip_prefix("0x")?, 16).ok()?;
        let opened = self.libraries.entry_ref(library).or_insert_with(|| {
            let content = Pieces::of(library.as_ref(), None)?;
            let symbols = Symbols::of(&content);
            Some((content, symbols))
        });
        let found = opened.as_ref().and_then(|(content, symbols)| symbols.name(content, address));
        Some(found.unwrap_or_else(|| nameless(library)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_a_name() {
        let program = std::env::current_exe().unwrap().display().to_string();
        let content = std::fs::read(&program).unwrap();
        let functions = Elf::parse(&*content).unwrap().functions();
        let is_main = |function: &&Function| elf::text(&*content, function.name) == Some(b"main");
        let main = functions.iter().find(is_main).unwrap().start;
        let mut names = FunctionNames::default();
        assert_eq!(names.find(&program, &later(main + 1)).as_deref(), Some("main"));
        assert_eq!(names.find(&program, "main"), None);
        assert_eq!(names.find("/no/such/lib.so.1", "0x10").as_deref(), Some("[lib.so.1]"));
    }
}
