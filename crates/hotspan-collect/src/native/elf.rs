//! The little of ELF that a sampler needs: sections, load addresses and function symbols. Every offset is checked, since
//! libraries may be damaged or not be libraries.

use std::ops::Range;

/// The parts of a 64-bit little-endian ELF file.
#[derive(Debug)]
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section>,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct Section {
    name: usize,
    kind: u32,
    address: u64,
    range: Range<usize>,
    link: usize,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    address: u64,
    file_size: u64,
}

/// A section's address in the library and its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) address: Range<u64>,
    pub(crate) file: Range<usize>,
}

/// A function: where it is in the library, how long, and where its name lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) name: usize,
}

const LOAD: u32 = 1;
const EXECUTABLE: u32 = 1;
const SYMBOLS: u32 = 2;
const DYNAMIC_SYMBOLS: u32 = 11;
const NO_BITS: u32 = 8;

fn number<const LENGTH: usize>(bytes: &[u8], offset: usize) -> Option<[u8; LENGTH]> {
    bytes.get(offset..offset.checked_add(LENGTH)?)?.try_into().ok()
}

fn half(bytes: &[u8], offset: usize) -> Option<u16> {
    number(bytes, offset).map(u16::from_le_bytes)
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    number(bytes, offset).map(u32::from_le_bytes)
}

fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    number(bytes, offset).map(u64::from_le_bytes)
}

impl<'a> Elf<'a> {
    /// Reads the headers; `None` when it is not such a file.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        if bytes.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let table = |offset: usize, size: usize, count: usize, least: usize| {
            (0..count).map_while(move |index| {
                let start = offset.checked_add(index.checked_mul(size)?)?;
                bytes.get(start..start.checked_add(size.max(least))?)
            })
        };
        let segments = table(
            usize::try_from(long(bytes, 32)?).ok()?,
            half(bytes, 54)?.into(),
            half(bytes, 56)?.into(),
            56,
        );
        // Only code: pages at the seam of two segments are in both.
        let is_code = |header: &&[u8]| {
            word(header, 0) == Some(LOAD) && word(header, 4).is_some_and(|flags| flags & EXECUTABLE != 0)
        };
        let segments = segments.filter(is_code).filter_map(|header| {
            Some(Segment {
                offset: long(header, 8)?,
                address: long(header, 16)?,
                file_size: long(header, 32)?,
            })
        });
        let sections = table(
            usize::try_from(long(bytes, 40)?).ok()?,
            half(bytes, 58)?.into(),
            half(bytes, 60)?.into(),
            64,
        );
        let sections: Vec<Section> = sections
            .filter_map(|header| {
                let kind = word(header, 4)?;
                let start = usize::try_from(long(header, 24)?).ok()?;
                let size = if kind == NO_BITS { 0 } else { usize::try_from(long(header, 32)?).ok()? };
                Some(Section {
                    name: word(header, 0)? as usize,
                    kind,
                    address: long(header, 16)?,
                    range: start..start.checked_add(size)?,
                    link: word(header, 40)? as usize,
                })
            })
            .collect();
        let names = sections.get(usize::from(half(bytes, 62)?)).map_or(0, |section| section.range.start);
        let sections =
            sections.into_iter().map(|section| Section { name: names + section.name, ..section }).collect();
        Some(Self { bytes, sections, segments: segments.collect() })
    }

    /// A section by its name.
    pub(crate) fn section(&self, name: &str) -> Option<Place> {
        let is_it = |section: &&Section| text(self.bytes, section.name) == Some(name.as_bytes());
        let section = self.sections.iter().find(is_it)?;
        self.bytes.get(section.range.clone())?;
        let size = section.range.len() as u64;
        let address = section.address..section.address.checked_add(size)?;
        Some(Place { address, file: section.range.clone() })
    }

    /// The address in the library of a place in the file, for mapped pages of code.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&Segment| {
            let first = segment.offset & !0xfff;
            offset >= first && offset < segment.offset.saturating_add(segment.file_size)
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    fn symbols(&self) -> Option<&Section> {
        let of = |kind| self.sections.iter().find(|section| section.kind == kind);
        of(SYMBOLS).or_else(|| of(DYNAMIC_SYMBOLS))
    }

    /// How many symbols [`Self::functions`] looks at.
    pub(crate) fn symbol_count(&self) -> usize {
        self.symbols().map_or(0, |symbols| symbols.range.len() / 24)
    }

    /// All functions, by address; of the full table where there is one, and of the exported otherwise.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let Some(symbols) = self.symbols() else { return Vec::new() };
        let names = self.sections.get(symbols.link).map_or(0, |section| section.range.start);
        let table = self.bytes.get(symbols.range.clone()).unwrap_or_default();
        let mut functions: Vec<Function> = table
            .chunks_exact(24)
            .filter(|symbol| {
                // Functions, those chosen at load time, and labels of assembler, which have no type; defined ones.
                matches!(symbol[4] & 15, 0 | 2 | 10) && symbol[6..8] != [0, 0]
            })
            .filter_map(|symbol| {
                let name = names.checked_add(word(symbol, 0)? as usize)?;
                Some(Function { start: long(symbol, 8)?, size: long(symbol, 16)?, name })
            })
            .filter(|function| {
                function.start != 0 && self.bytes.get(function.name).is_some_and(|&first| first != 0)
            })
            .collect();
        // Of several names of one place the one with a size, then the first, is kept.
        functions.sort_by_key(|function| (function.start, std::cmp::Reverse(function.size)));
        functions.dedup_by_key(|function| function.start);
        functions.shrink_to_fit();
        functions
    }
}

/// The text that begins at an offset and ends with a zero.
pub(crate) fn text(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    let rest = bytes.get(offset..)?;
    rest.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_program() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let elf = Elf::parse(&bytes).unwrap();
        assert!(!elf.section(".eh_frame").unwrap().file.is_empty());
        assert!(elf.section(".nothing").is_none());
        let named = |function: &Function| text(&bytes, function.name) == Some(b"main");
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
            if let Some(elf) = Elf::parse(&damaged) {
                elf.functions();
                assert!(elf.section(".text").is_none());
            }
        }
    }
}
