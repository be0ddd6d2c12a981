//! Python objects in the memory of another process: texts, types, tuples, dicts.

use super::error::SamplerError;
use super::layout::Layout;
use super::memory::{Address, LONGEST, Memory, half_at, word_at};

/// Reads objects. A pointer to something else gives an error or nonsense, never harm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects<'a> {
    pub(super) memory: &'a Memory,
    pub(super) layout: &'a Layout,
}

impl Objects<'_> {
    /// A text.
    pub(super) fn text(&self, address: Address) -> Result<String, SamplerError> {
        let layout = self.layout;
        let header = self.memory.bytes(address, layout.text_ascii)?;
        let state = half_at(&header, layout.text_state);
        let length = word_at(&header, layout.text_length) as usize;
        let not_a_text = || self.memory.unreadable("a text");
        // Free-threaded builds give the first field of the state a byte or two of its own.
        let bits = [state, state >> 6, state >> 14]
            .into_iter()
            .find(|bits| matches!((bits >> 2) & 7, 1 | 2 | 4) && bits & (1 << 5) != 0)
            .ok_or_else(not_a_text)?;
        let width = ((bits >> 2) & 7) as usize;
        let ascii = bits & (1 << 6) != 0;
        let bytes = length.checked_mul(width).filter(|&bytes| bytes <= LONGEST).ok_or_else(not_a_text)?;
        let start = if ascii { layout.text_ascii } else { layout.text_other };
        let data = self.memory.bytes(address.plus(start as u64), bytes)?;
        Ok(match width {
            1 if ascii => String::from_utf8_lossy(&data).into_owned(),
            1 => data.iter().map(|&byte| char::from(byte)).collect(),
            2 => String::from_utf16_lossy(
                &data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect::<Vec<_>>(),
            ),
            _ => data
                .chunks_exact(4)
                .map(|unit| char::from_u32(half_at(unit, 0)).unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect(),
        })
    }

    /// The contents of a bytes object.
    pub(super) fn bytes(&self, address: Address) -> Result<Vec<u8>, SamplerError> {
        let length = self.memory.word(address.plus(self.layout.sized_length as u64))? as usize;
        self.memory.bytes(address.plus(self.layout.bytes_data as u64), length)
    }

    /// The name of an object's type, and the type's flags.
    pub(super) fn type_of(&self, address: Address) -> Result<(String, u64), SamplerError> {
        let kind = self.memory.pointer(address.plus(self.layout.object_type as u64))?;
        let name = self.memory.pointer(kind.plus(self.layout.type_name as u64))?;
        let flags = self.memory.word(kind.plus(self.layout.type_flags as u64))?;
        Ok((self.memory.text(name)?, flags))
    }

    /// The items of a tuple, as far as `limit`.
    pub(super) fn tuple(&self, address: Address, limit: usize) -> Result<Vec<Address>, SamplerError> {
        let length = self.length(address)?.min(limit);
        self.pointers(address.plus(self.layout.tuple_items as u64), length)
    }

    /// The items of a list, as far as `limit`.
    pub(super) fn list(&self, address: Address, limit: usize) -> Result<Vec<Address>, SamplerError> {
        let length = self.length(address)?.min(limit);
        let items = self.memory.pointer(address.plus(self.layout.list_items as u64))?;
        self.pointers(items, length)
    }

    /// The length of a tuple, list or bytes object.
    pub(super) fn length(&self, address: Address) -> Result<usize, SamplerError> {
        Ok(self.memory.word(address.plus(self.layout.sized_length as u64))? as usize)
    }

    pub(super) fn pointers(&self, address: Address, count: usize) -> Result<Vec<Address>, SamplerError> {
        let bytes = self.memory.bytes(address, count.min(LONGEST / 8) * 8)?;
        Ok(bytes.chunks_exact(8).map(|word| Address(word_at(word, 0))).collect())
    }

    /// Keys and values of a dict, in order of insertion, as far as `limit`.
    pub(super) fn dict(
        &self,
        address: Address,
        minor: u8,
        limit: usize,
    ) -> Result<Vec<(Address, Address)>, SamplerError> {
        let keys = self.memory.pointer(address.plus(self.layout.dict_keys as u64))?;
        let values = self.memory.pointer(address.plus(self.layout.dict_values as u64))?;
        let entries = self.dict_keys(keys, minor, limit)?;
        if values.is_null() {
            return Ok(entries.into_iter().filter(|(_, value)| !value.is_null()).collect());
        }
        // A table shared by the instances of a class: the values lie elsewhere, and from 3.13 on after a small header.
        let start = if minor >= 13 { values.plus(8) } else { values };
        let values = self.pointers(start, entries.len())?;
        let pairs = entries.into_iter().zip(values).map(|((key, _), value)| (key, value));
        Ok(pairs.filter(|(_, value)| !value.is_null()).collect())
    }

    /// The entries of a table of keys.
    pub(super) fn dict_keys(
        &self,
        keys: Address,
        minor: u8,
        limit: usize,
    ) -> Result<Vec<(Address, Address)>, SamplerError> {
        let header = self.memory.bytes(keys, 40)?;
        // From 3.11 on the header is packed, and tables of texts only hold no hashes.
        let (used, entries, size, at) = if minor >= 11 {
            let index_bytes = 1_u64.checked_shl(u32::from(header[9])).unwrap_or(0);
            let only_texts = header[10] != 0;
            let size: u64 = if only_texts { 16 } else { 24 };
            (word_at(&header, 24), keys.plus(32 + index_bytes), size, if only_texts { 0 } else { 8 })
        } else {
            // In these the size itself is the second word, and a function for look-ups the third.
            let slots = word_at(&header, 8);
            let width = match slots {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => 8,
            };
            (word_at(&header, 32), keys.plus(40 + slots.saturating_mul(width)), 24, 8)
        };
        let count = (used as usize).min(limit);
        let bytes = self.memory.bytes(entries, count * size as usize)?;
        let entry = |entry: &[u8]| (Address(word_at(entry, at)), Address(word_at(entry, at + 8)));
        Ok(bytes.chunks_exact(size as usize).map(entry).collect())
    }
}
