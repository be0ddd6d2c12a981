//! Interned strings: each distinct string is stored once, in one arena, and named by a [`StringId`].

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::StringId;

/// All strings of a trace. Id 0 is always the empty string.
#[derive(Clone, Debug)]
pub struct StringTable {
    bytes: String,
    /// `ends[i]` is where string `i` ends in `bytes`; it begins where the one before ends.
    ends: Vec<u64>,
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for StringTable {
    fn default() -> Self {
        let mut table = Self {
            bytes: String::new(),
            ends: Vec::new(),
            lookup: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        table.intern("");
        table
    }
}

impl StringTable {
    /// How many distinct strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty string is always present.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The string behind an id; an id of another table gives the empty string, never a panic.
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        slice(&self.bytes, &self.ends, id.index())
    }

    /// All strings in id order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| slice(&self.bytes, &self.ends, index))
    }

    /// The id of `text`, if it was ever interned.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<StringId> {
        self.find_bytes(text.as_bytes())
    }

    /// The id of these bytes, if they were ever interned. The hot path of an importer: bytes that were seen before
    /// are known to be UTF-8 and need no second check.
    #[must_use]
    #[inline]
    pub fn find_bytes(&self, text: &[u8]) -> Option<StringId> {
        let hash = self.hasher.hash_one(text);
        self.lookup
            .find(hash, |&row| slice(&self.bytes, &self.ends, row as usize).as_bytes() == text)
            .map(|&row| StringId(row))
    }

    /// The id of `text`, adding it when new.
    pub fn intern(&mut self, text: &str) -> StringId {
        let hash = self.hasher.hash_one(text.as_bytes());
        let (bytes, ends, hasher) = (&mut self.bytes, &mut self.ends, &self.hasher);
        if let Some(&row) = self.lookup.find(hash, |&row| slice(bytes, ends, row as usize) == text) {
            return StringId(row);
        }
        let row = ends.len() as u32;
        bytes.push_str(text);
        ends.push(bytes.len() as u64);
        self.lookup
            .insert_unique(hash, row, |&row| hasher.hash_one(slice(bytes, ends, row as usize).as_bytes()));
        StringId(row)
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.lookup.allocation_size()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

fn slice<'a>(bytes: &'a str, ends: &[u64], row: usize) -> &'a str {
    let start = if row == 0 { 0 } else { ends.get(row - 1).copied().unwrap_or(0) as usize };
    let end = ends.get(row).copied().unwrap_or(start as u64) as usize;
    bytes.get(start..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::default();
        let first = table.intern("aten::add");
        assert_eq!(table.intern("aten::mul"), StringId(2));
        assert_eq!(table.intern("aten::add"), first);
        assert_eq!(table.get(first), "aten::add");
        assert_eq!(table.find("aten::mul"), Some(StringId(2)));
        assert_eq!(table.find("missing"), None);
        assert_eq!(table.get(StringId(99)), "");
        assert_eq!(table.iter().collect::<Vec<_>>(), ["", "aten::add", "aten::mul"]);
    }
}
