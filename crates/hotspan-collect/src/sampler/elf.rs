//! Just enough of ELF to find where a symbol lies: 64 bits, little endian, the dynamic table first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::cpython::{half_at, word_at};

const SYMBOL_TABLE: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const SYMBOL_SIZE: usize = 24;
const LOADABLE: u32 = 1;
/// Tables larger than this are not those of a program.
const LARGEST_TABLE: u64 = 256 << 20;

/// A symbol found: its address relative to where the file is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// Bytes from the mapping's beginning.
    pub(super) offset: u64,
    /// Whether the offset is an address as it is, because the program is not relocated.
    pub(super) absolute: bool,
}

fn read(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    if length > LARGEST_TABLE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn short_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 2).map_or(0, |bytes| u64::from(u16::from_le_bytes([bytes[0], bytes[1]])))
}

/// Finds symbols by name; the answers are in the order of the names.
pub(super) fn symbols(path: &Path, names: &[&str]) -> io::Result<Vec<Option<Symbol>>> {
    let file = File::open(path)?;
    let header = read(&file, 0, 64)?;
    let mut found = vec![None; names.len()];
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(found);
    }
    let absolute = short_at(&header, 16) == 2;
    let (programs, program_size, program_count) =
        (word_at(&header, 32), short_at(&header, 54), short_at(&header, 56));
    let programs = read(&file, programs, program_size * program_count)?;
    let first = programs
        .chunks_exact(program_size.max(1) as usize)
        .find(|program| half_at(program, 0) == LOADABLE)
        .map_or(0, |program| word_at(program, 16) & !0xfff);
    let (sections, section_size, section_count) =
        (word_at(&header, 40), short_at(&header, 58), short_at(&header, 60));
    let sections = read(&file, sections, section_size * section_count)?;
    let sections: Vec<&[u8]> = sections.chunks_exact(section_size.max(1) as usize).collect();
    for kind in [DYNAMIC_SYMBOLS, SYMBOL_TABLE] {
        for section in sections.iter().filter(|section| half_at(section, 4) == kind) {
            let Some(strings) = sections.get(half_at(section, 40) as usize) else { continue };
            let table = read(&file, word_at(section, 24), word_at(section, 32))?;
            let strings = read(&file, word_at(strings, 24), word_at(strings, 32))?;
            for symbol in table.chunks_exact(SYMBOL_SIZE) {
                let name = strings.get(half_at(symbol, 0) as usize..).unwrap_or_default();
                // Undefined symbols belong to another file.
                if short_at(symbol, 6) == 0 {
                    continue;
                }
                for (wanted, slot) in names.iter().zip(&mut found) {
                    let is_it =
                        name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
                    if is_it && slot.is_none() {
                        let value = word_at(symbol, 8);
                        let offset = if absolute { value } else { value.wrapping_sub(first) };
                        *slot = Some(Symbol { offset, absolute });
                    }
                }
            }
            if found.iter().all(Option::is_some) {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_symbols_of_the_c_library_and_refuses_other_files() {
        let own = crate::process_tree::ProcessNumber::own();
        let mappings = super::super::maps::mapped_files(own).unwrap();
        let library = mappings.iter().find(|mapping| mapping.path.contains("libc.so")).unwrap();
        let found = symbols(Path::new(&library.path), &["getpid", "no_such_function"]).unwrap();
        let expected = libc::getpid as *const () as u64 - library.base.0;
        assert_eq!(found, [Some(Symbol { offset: expected, absolute: false }), None]);
        assert_eq!(symbols(Path::new("/proc/self/maps"), &["x"]).unwrap(), [None]);
    }
}
