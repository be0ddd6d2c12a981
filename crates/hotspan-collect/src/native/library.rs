//! One mapped library: its file, its unwind tables and its functions.

use std::cell::OnceCell;
use std::ops::{Deref, Range};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use memmap2::Mmap;

use super::memory::Subject;
use super::symbols::{Symbols, later};
use crate::elf::{Elf, Section};
use crate::mapped_file::Pieces;
use crate::memory_map::MappedRange;

/// A section of a file, in memory.
#[derive(Clone, Default)]
pub(crate) struct Piece(Option<Arc<Mmap>>, Range<usize>);

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().and_then(|content| content.get(self.1.clone())).unwrap_or_default()
    }
}

/// Bytes of code that end at an address: the longest call instruction.
pub(crate) type CodeBefore = [u8; 7];

/// A library in memory. Its file is looked at when the first sample is found in it: a program with torch has hundreds of
/// libraries that take no time.
pub(crate) struct Library {
    pub(crate) mapping: MappedRange,
    /// The file, with its folder: that tells which package a library came with.
    pub(crate) path: Arc<str>,
    subject: Subject,
    opened: OnceCell<Option<Opened>>,
    symbols: OnceCell<Symbols>,
    /// Whether reading those would take long.
    are_many: OnceCell<bool>,
}

/// The file of a library.
struct Opened {
    file: Pieces,
    /// What to add to an address in the file to have it in memory.
    bias: u64,
    text: Option<Section>,
    got: Option<Section>,
    /// The index of its unwind tables.
    index: Option<(Section, Piece)>,
    /// The tables.
    frames: Option<(Section, Piece)>,
}

impl Opened {
    /// Opens what is mapped there.
    fn of(subject: Subject, mapping: &MappedRange) -> Option<Self> {
        let file = if mapping.path == "[vdso]" {
            let length = mapping.range.end - mapping.range.start;
            Pieces::of_bytes(&subject.bytes(mapping.range.start, usize::try_from(length).ok()?)?)?
        } else {
            Pieces::of(&subject.file(&mapping.path), Some(mapping.inode))?
        };
        let elf = Elf::parse(&file)?;
        let bias = mapping.range.start.wrapping_sub(elf.address_of(mapping.offset)?);
        let [text, got, index, frames] =
            [".text", ".got", ".eh_frame_hdr", ".eh_frame"].map(|name| elf.section(name));
        let read = |section: Section| {
            let (mapped, range) = file.piece(section.file.start as u64..section.file.end as u64)?;
            Some((section, Piece(Some(mapped), range)))
        };
        let (index, frames) = (index.and_then(read), frames.and_then(read));
        Some(Self { bias, text, got, index, frames, file })
    }

    /// Whether unwind tables cover an address in memory. A library without an index of them is believed.
    fn covers(&self, address: u64) -> bool {
        let Some((index, frames)) = self.index.as_ref().zip(self.frames.as_ref()) else { return true };
        covers(index, frames, address.wrapping_sub(self.bias)).unwrap_or(true)
    }
}

impl Library {
    /// A library that cannot be read still has a name.
    pub(crate) fn new(subject: Subject, mapping: MappedRange) -> Self {
        let path = mapping.path.as_str().into();
        let (opened, symbols, are_many) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { mapping, path, subject, opened, symbols, are_many }
    }

    fn opened(&self) -> Option<&Opened> {
        self.opened.get_or_init(|| Opened::of(self.subject, &self.mapping)).as_ref()
    }

    /// Whether unwind tables cover an address in memory.
    pub(crate) fn is_covered(&self, address: u64) -> bool {
        self.opened().is_some_and(|opened| opened.covers(address))
    }

    /// The code that ends at an address in memory, when unwind tables cover it.
    pub(crate) fn code_before(&self, address: u64) -> Option<CodeBefore> {
        let opened = self.opened()?;
        let start = address.checked_sub(7).filter(|&start| start >= self.mapping.range.start)?;
        if opened.index.is_none() || opened.frames.is_none() || !opened.covers(address.wrapping_sub(1)) {
            return None;
        }
        let mut code = CodeBefore::default();
        (self.subject.copy(start, &mut code) == code.len()).then_some(code)
    }

    /// Its unwind tables, as the unwinder wants them.
    pub(crate) fn module(&self) -> Option<Module<Piece>> {
        let Opened { bias, text, got, index, frames, .. } = self.opened()?;
        let address = |section: &Section| section.address.clone();
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.as_ref().map(address),
            got_svma: got.as_ref().map(address),
            eh_frame_svma: frames.as_ref().map(|(section, _)| address(section)),
            eh_frame: frames.as_ref().map(|(_, piece)| piece.clone()),
            eh_frame_hdr_svma: index.as_ref().map(|(section, _)| address(section)),
            eh_frame_hdr: index.as_ref().map(|(_, piece)| piece.clone()),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Module::new(self.path.to_string(), self.mapping.range.clone(), *bias, info))
    }

    /// The readable name of the function at an address in memory; of a library with many functions, where that can wait,
    /// what [`super::FunctionNames`] finds it by.
    pub(crate) fn function(&self, address: u64, can_wait: bool) -> Option<String> {
        let Opened { file: content, bias, .. } = self.opened()?;
        let address = address.wrapping_sub(*bias);
        if can_wait && *self.are_many.get_or_init(|| Symbols::are_many(content)) {
            return Some(later(address));
        }
        self.symbols.get_or_init(|| Symbols::of(content)).name(content, address)
    }
}

/// Looks an address up in the sorted index of unwind tables; `None` when index or table are of an unusual form.
fn covers(
    (index, content): &(Section, Piece),
    (frames, descriptions): &(Section, Piece),
    address: u64,
) -> Option<bool> {
    let (header, table) = content.split_at_checked(12)?;
    // Relative 32-bit numbers, as every linker writes them.
    if header[..4] != [1, 0x1b, 3, 0x3b] {
        return None;
    }
    let number = |offset: usize| {
        let bytes = table.get(offset..offset + 4)?.try_into().ok()?;
        Some(index.address.start.wrapping_add_signed(i64::from(i32::from_le_bytes(bytes))))
    };
    // The last entry that begins at the address or before.
    let (mut low, mut high) = (0, table.len() / 8);
    while low < high {
        let middle = usize::midpoint(low, high);
        if number(middle * 8)? <= address {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let Some(entry) = low.checked_sub(1) else { return Some(false) };
    let (start, description) = (number(entry * 8)?, number(entry * 8 + 4)?);
    // A description: its length, where its common part is, where the code begins and how long it is.
    let offset = usize::try_from(description.checked_sub(frames.address.start)?).ok()?;
    let length = descriptions.get(offset.checked_add(12)?..offset.checked_add(16)?)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    Some(address < start.checked_add(u64::from(length))?)
}
