//! Dicts, and attributes of instances, which are kept in dicts or beside them.

use super::memory::{Address, Memory, word_at};
use super::objects::Objects;

/// Of larger dicts only so many entries are read.
const MOST_ENTRIES: usize = 1 << 15;
/// A type's flag: instances have a dict before their beginning.
const MANAGED_DICT: u64 = 1 << 4;
/// A type's flag: instances keep their values right behind themselves (3.13 and newer).
const INLINE_VALUES: u64 = 1 << 2;
/// Where a type says where instances have their dict, to 3.10.
const TYPE_DICT_OFFSET: usize = 288;

impl<M: Memory> Objects<'_, M> {
    /// Keys and values of a dict, in order of insertion.
    pub(crate) fn dict(&self, address: Address) -> Result<Vec<(Address, Address)>, M::Error> {
        let keys = self.memory.pointer(address.field(self.offsets.dict_keys))?;
        let values = self.memory.pointer(address.field(self.offsets.dict_values))?;
        let entries = self.dict_keys(keys)?;
        if values.is_null() {
            return Ok(entries.into_iter().filter(|(_, value)| !value.is_null()).collect());
        }
        // A table shared by the instances of a class: the values lie elsewhere, and from 3.13 on after a small header.
        let start = if self.offsets.minor >= 13 { values.plus(8) } else { values };
        let values = self.pointers(start, entries.len())?;
        let pairs = entries.into_iter().zip(values).map(|((key, _), value)| (key, value));
        Ok(pairs.filter(|(_, value)| !value.is_null()).collect())
    }

    /// The entries of a table of keys.
    fn dict_keys(&self, keys: Address) -> Result<Vec<(Address, Address)>, M::Error> {
        let header = self.memory.bytes(keys, 40)?;
        // From 3.11 on the header is packed, and tables of texts only hold no hashes.
        let (used, entries, size, at) = if self.offsets.minor >= 11 {
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
        let count = (used as usize).min(MOST_ENTRIES);
        let bytes = self.memory.bytes(entries, count * size as usize)?;
        let entry = |entry: &[u8]| (Address(word_at(entry, at)), Address(word_at(entry, at + 8)));
        Ok(bytes.chunks_exact(size as usize).map(entry).collect())
    }

    /// The value of a key that is a text.
    pub(crate) fn dict_entry(&self, dict: Address, name: &str) -> Result<Option<Address>, M::Error> {
        let entry = self.dict(dict)?.into_iter().find(|&(key, _)| self.is_text(key, name));
        Ok(entry.map(|(_, value)| value))
    }

    fn is_text(&self, address: Address, expected: &str) -> bool {
        self.text(address).is_ok_and(|text| text == expected)
    }

    /// An attribute in the dict of an instance, wherever the version keeps it.
    pub(crate) fn attribute(&self, object: Address, name: &str) -> Result<Option<Address>, M::Error> {
        let Self { memory, offsets } = self;
        let kind = memory.pointer(object.field(offsets.object_type))?;
        let flags = memory.word(kind.field(offsets.type_flags))?;
        // The keys are shared by all instances and lie with the type.
        let in_values = |values: Address| -> Result<Option<Address>, M::Error> {
            let entries = self.dict_keys(memory.pointer(kind.field(offsets.type_shared_keys))?)?;
            let Some(index) = entries.iter().position(|&(key, _)| self.is_text(key, name)) else {
                return Ok(None);
            };
            let value = memory.pointer(values.plus(index as u64 * 8))?;
            Ok((!value.is_null()).then_some(value))
        };
        if offsets.minor < 11 {
            let offset = memory.word(kind.field(TYPE_DICT_OFFSET))?;
            return self.dict_entry(memory.pointer(object.plus(offset))?, name);
        }
        if flags & MANAGED_DICT == 0 {
            return Ok(None);
        }
        let dict_at = Address(object.0.wrapping_sub(offsets.dict_before));
        let dict = memory.pointer(dict_at)?;
        match offsets.minor {
            11 => {
                let values = memory.pointer(Address(dict_at.0.wrapping_sub(8)))?;
                if values.is_null() { self.dict_entry(dict, name) } else { in_values(values) }
            }
            // Values are marked by an address one below their own.
            12 if dict.0 & 1 == 1 => in_values(dict.plus(1)),
            12 => self.dict_entry(dict, name),
            _ if !dict.is_null() => self.dict_entry(dict, name),
            _ if flags & INLINE_VALUES != 0 => {
                let size = memory.word(kind.field(offsets.type_basic_size))?;
                in_values(object.plus(size).plus(8))
            }
            _ => Ok(None),
        }
    }
}
