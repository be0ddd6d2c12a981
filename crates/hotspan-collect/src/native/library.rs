//! One mapped library: its file, its unwind tables and its functions.

use std::cell::OnceCell;
use std::ops::{Deref, Range};
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use memmap2::Mmap;

use super::symbols::{Symbols, later};
use crate::elf::{Elf, Section};
use crate::mapped_file::{copied, map};
use crate::memory_map::MappedRange;

/// A piece of a file that keeps the whole alive.
#[derive(Default)]
pub(crate) struct Piece(Option<Arc<Mmap>>, Range<usize>);

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().and_then(|content| content.get(self.1.clone())).unwrap_or_default()
    }
}

/// A library in memory.
pub(crate) struct Library {
    pub(crate) mapping: MappedRange,
    /// The file, with its folder: that tells which package a library came with.
    pub(crate) path: Arc<str>,
    content: Option<Arc<Mmap>>,
    /// What to add to an address in the file to have it in memory.
    bias: u64,
    symbols: OnceCell<Symbols>,
    /// Whether reading those would take long.
    are_many: OnceCell<bool>,
    /// The index of its unwind tables and the tables.
    tables: Option<(Section, Section)>,
}

impl Library {
    /// Opens what is mapped there. A library that cannot be read still has a name.
    pub(crate) fn open(mapping: MappedRange) -> Self {
        let content = if mapping.path == "[vdso]" {
            let length = mapping.range.end - mapping.range.start;
            super::memory::bytes(mapping.range.start as usize, length as usize).as_deref().and_then(copied)
        } else {
            map(&mapping.path, Some(mapping.inode))
        };
        let bias = content.as_ref().and_then(|content| {
            let address = Elf::parse(content)?.address_of(mapping.offset)?;
            Some(mapping.range.start.wrapping_sub(address))
        });
        let path = mapping.path.as_str().into();
        let content = content.filter(|_| bias.is_some()).map(Arc::new);
        let tables = content.as_ref().and_then(|content| {
            let elf = Elf::parse(content)?;
            elf.section(".eh_frame_hdr").zip(elf.section(".eh_frame"))
        });
        Self {
            mapping,
            path,
            content,
            bias: bias.unwrap_or(0),
            symbols: OnceCell::new(),
            are_many: OnceCell::new(),
            tables,
        }
    }

    /// Whether unwind tables cover an address in memory. A library without an index of them is believed.
    pub(crate) fn is_covered(&self, address: u64) -> bool {
        let Some(content) = &self.content else { return false };
        let Some((index, frames)) = &self.tables else { return true };
        covers(content, index, frames, address.wrapping_sub(self.bias)).unwrap_or(true)
    }

    /// Up to 7 bytes of code that end at an address in memory, when unwind tables cover them.
    pub(crate) fn code_before(&self, address: u64) -> Option<&[u8]> {
        let offset = address.checked_sub(self.mapping.range.start)?.checked_add(self.mapping.offset)?;
        let end = usize::try_from(offset).ok()?;
        let code = self.content.as_ref()?.get(end.checked_sub(7)?..end)?;
        (self.tables.is_some() && self.is_covered(address.wrapping_sub(1))).then_some(code)
    }

    /// Its unwind tables, as the unwinder wants them.
    pub(crate) fn module(&self) -> Option<Module<Piece>> {
        let content = self.content.as_ref()?;
        let elf = Elf::parse(content)?;
        let piece = |range: Range<usize>| Piece(Some(Arc::clone(content)), range);
        let [text, got, frames, index] =
            [".text", ".got", ".eh_frame", ".eh_frame_hdr"].map(|name| elf.section(name));
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: text.as_ref().map(|section| section.address.clone()),
            text: text.map(|section| piece(section.file)),
            got_svma: got.map(|section| section.address),
            eh_frame_svma: frames.as_ref().map(|section| section.address.clone()),
            eh_frame: frames.map(|section| piece(section.file)),
            eh_frame_hdr_svma: index.as_ref().map(|section| section.address.clone()),
            eh_frame_hdr: index.map(|section| piece(section.file)),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Module::new(self.path.to_string(), self.mapping.range.clone(), self.bias, info))
    }

    /// The readable name of the function at an address in memory; of a library with many functions, where that can wait,
    /// what [`super::FunctionNames`] finds it by.
    pub(crate) fn function(&self, address: u64, can_wait: bool) -> Option<String> {
        let content = self.content.as_ref()?;
        let address = address.wrapping_sub(self.bias);
        if can_wait && *self.are_many.get_or_init(|| Symbols::are_many(content)) {
            return Some(later(address));
        }
        self.symbols.get_or_init(|| Symbols::of(content)).name(content, address)
    }
}

/// Looks an address up in the sorted index of unwind tables; `None` when index or table are of an unusual form.
fn covers(content: &[u8], index: &Section, frames: &Section, address: u64) -> Option<bool> {
    let (header, table) = content.get(index.file.clone())?.split_at_checked(12)?;
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
    let length = content.get(frames.file.clone())?.get(offset.checked_add(12)?..offset.checked_add(16)?)?;
    let length = u32::from_le_bytes(length.try_into().ok()?);
    Some(address < start.checked_add(u64::from(length))?)
}
