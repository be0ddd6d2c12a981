//! What samplers need of an ELF file: sections, load addresses and symbols. The `object` crate reads the format and checks
//! every offset, since libraries may be damaged or not be libraries.

use std::ops::Range;

use object::LittleEndian;
use object::ReadRef;
use object::elf::{
    ET_EXEC, FileHeader64, PF_X, PT_LOAD, ProgramHeader64, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC,
    STT_GNU_IFUNC, STT_NOTYPE,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable};

type Header = FileHeader64<LittleEndian>;

/// The parts of a 64-bit little-endian ELF file.
#[derive(Debug)]
pub(crate) struct Elf<'a, F: ReadRef<'a>> {
    file: F,
    is_relocated: bool,
    sections: SectionTable<'a, Header, F>,
    segments: &'a [ProgramHeader64<LittleEndian>],
}

/// A section's addresses in the library and its bytes in the file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) address: Range<u64>,
    pub(crate) file: Range<usize>,
}

/// A function: its address in the library, its length, and the offset of its name in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) name: u64,
}

const ENDIAN: LittleEndian = LittleEndian;

impl<'a, F: ReadRef<'a>> Elf<'a, F> {
    /// Reads the headers; `None` when it is not such a file. Damaged tables are taken for missing ones.
    pub(crate) fn parse(file: F) -> Option<Self> {
        let header = Header::parse(file).ok()?;
        header.endian().ok()?;
        Some(Self {
            file,
            is_relocated: header.e_type(ENDIAN) != ET_EXEC,
            sections: header.sections(ENDIAN, file).unwrap_or_default(),
            segments: header.program_headers(ENDIAN, file).unwrap_or_default(),
        })
    }

    /// A section by its name.
    pub(crate) fn section(&self, name: &str) -> Option<Section> {
        let (_, section) = self.sections.section_by_name(ENDIAN, name.as_bytes())?;
        let (offset, size) = section.file_range(ENDIAN)?;
        let start = usize::try_from(offset).ok()?;
        let file = start..start.checked_add(usize::try_from(size).ok()?)?;
        if file.end as u64 > self.file.len().ok()? {
            return None;
        }
        let address = section.sh_addr(ENDIAN);
        Some(Section { address: address..address.checked_add(size)?, file })
    }

    /// The address in the library of an offset in the file, for mapped pages of code.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&ProgramHeader64<_>| {
            // Only code: pages at the seam of two segments are in both.
            let is_code = segment.p_type(ENDIAN) == PT_LOAD && segment.p_flags(ENDIAN).contains(PF_X);
            let (start, size) = segment.file_range(ENDIAN);
            is_code && offset >= start & !0xfff && offset < start.saturating_add(size)
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.p_vaddr(ENDIAN).wrapping_add(offset).wrapping_sub(segment.p_offset(ENDIAN)))
    }

    /// The full table of symbols where there is one, and of the exported ones otherwise.
    fn symbols(&self) -> SymbolTable<'a, Header, F> {
        let of = |kind| self.sections.symbols(ENDIAN, self.file, kind).unwrap_or_default();
        let full = of(SHT_SYMTAB);
        if full.is_empty() { of(SHT_DYNSYM) } else { full }
    }

    /// How many symbols [`Self::functions`] reads.
    pub(crate) fn symbol_count(&self) -> usize {
        self.symbols().len()
    }

    /// All functions, by address.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let symbols = self.symbols();
        let names = self.sections.section(symbols.string_section()).ok();
        let Some((names, size)) = names.and_then(|section| section.file_range(ENDIAN)) else {
            return Vec::new();
        };
        let texts = self.file.read_bytes_at(names, size).unwrap_or_default();
        let mut functions: Vec<Function> = symbols
            .iter()
            .filter(|symbol| {
                // Functions, those chosen at load time, and labels of assembler, which have no type; defined ones.
                matches!(symbol.st_type(), STT_NOTYPE | STT_FUNC | STT_GNU_IFUNC)
                    && symbol.st_shndx(ENDIAN) != SHN_UNDEF
                    && symbol.st_value(ENDIAN) != 0
            })
            .filter_map(|symbol| {
                let name = names.checked_add(symbol.st_name(ENDIAN).into())?;
                let is_named = texts.get(symbol.st_name(ENDIAN) as usize).is_some_and(|&first| first != 0);
                let (start, size) = (symbol.st_value(ENDIAN), symbol.st_size(ENDIAN));
                is_named.then_some(Function { start, size, name })
            })
            .collect();
        // Of several names of one address the one with a size, then the first, is kept.
        functions.sort_by_key(|function| (function.start, std::cmp::Reverse(function.size)));
        functions.dedup_by_key(|function| function.start);
        functions.shrink_to_fit();
        functions
    }

    /// Where symbols are in memory when the file's first byte is at `base`, in the order of the names. Exported symbols come
    /// first: that table is the smaller one.
    pub(crate) fn symbols_at<const N: usize>(&self, base: u64, names: [&str; N]) -> [Option<u64>; N] {
        let first = self.segments.iter().find(|segment| segment.p_type(ENDIAN) == PT_LOAD);
        let first = first.map_or(0, |segment| segment.p_vaddr(ENDIAN) & !0xfff);
        let bias = if self.is_relocated { base.wrapping_sub(first) } else { 0 };
        let mut found = [None; N];
        for kind in [SHT_DYNSYM, SHT_SYMTAB] {
            let table = self.sections.symbols(ENDIAN, self.file, kind).unwrap_or_default();
            // Undefined symbols belong to another file.
            for symbol in table.iter().filter(|symbol| !symbol.is_undefined(ENDIAN)) {
                let Ok(name) = table.symbol_name(ENDIAN, symbol) else { continue };
                if let Some(index) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                    found[index].get_or_insert(bias.wrapping_add(symbol.st_value(ENDIAN)));
                }
            }
            if found.iter().all(Option::is_some) {
                break;
            }
        }
        found
    }
}

/// The text that begins at an offset and ends with a zero.
pub(crate) fn text<'a>(file: impl ReadRef<'a>, offset: u64) -> Option<&'a [u8]> {
    file.read_bytes_at_until(offset..file.len().ok()?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_map::{MappedRange, own_memory_map};

    fn mapped(name: &str) -> MappedRange {
        own_memory_map().into_iter().find(|mapped| mapped.path.contains(name)).unwrap()
    }

    #[test]
    fn reads_this_program() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::parse(&*bytes).unwrap();
        assert!(!elf.section(".eh_frame").unwrap().file.is_empty());
        assert!(elf.section(".nothing").is_none());
        let named = |function: &Function| text(&*bytes, function.name) == Some(b"main");
        let main = elf.functions().into_iter().find(named).unwrap();
        assert!(main.size > 0);
    }

    #[test]
    fn survives_damage() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        assert!(Elf::parse(&bytes[..40]).is_none());
        let mut damaged = bytes[..4096].to_vec();
        for index in 32..64 {
            damaged[index] ^= 0xff;
            if let Some(elf) = Elf::parse(&*damaged) {
                elf.functions();
                assert!(elf.section(".text").is_none());
            }
        }
    }

    #[test]
    fn survives_damaged_tables() {
        // The vDSO is a whole library of a few pages, so every byte of its headers can be tried.
        let MappedRange { range, .. } = mapped("[vdso]");
        // SAFETY: the kernel keeps these pages mapped and readable as long as the process lives.
        let bytes = unsafe {
            std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
        };
        assert!(Elf::parse(bytes).unwrap().symbol_count() > 1);
        for index in 0..bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[index] ^= 0xff;
            for content in [&damaged[..], &bytes[..index]] {
                let Some(elf) = Elf::parse(content) else { continue };
                elf.section(".eh_frame");
                elf.address_of(0);
                elf.symbols_at(0, ["clock_gettime"]);
                for function in elf.functions() {
                    text(content, function.name);
                }
            }
        }
    }

    #[test]
    fn finds_symbols_in_memory() {
        let MappedRange { range, path, .. } = mapped("/libc.so");
        let content = std::fs::read(path).unwrap();
        let found = Elf::parse(&*content).unwrap().symbols_at(range.start, ["getpid", "no_such_function"]);
        assert_eq!(found, [Some(libc::getpid as *const () as u64), None]);
        assert!(Elf::parse(&b"no library"[..]).is_none());
    }
}
