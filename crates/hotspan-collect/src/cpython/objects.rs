//! Python objects: texts, bytes, types, numbers, tuples and lists.

use super::memory::{Address, LONGEST, Memory, half_at, word_at};
use super::offsets::Offsets;

/// Reads objects. A pointer to something else gives an error or nonsense, never harm.
#[derive(Debug)]
pub(crate) struct Objects<'a, M> {
    pub(crate) memory: &'a M,
    pub(crate) offsets: &'a Offsets,
}

impl<M: Memory> Objects<'_, M> {
    /// A text.
    pub(crate) fn text(&self, address: Address) -> Result<String, M::Error> {
        let offsets = self.offsets;
        let header = self.memory.bytes(address, offsets.text_ascii)?;
        let state = half_at(&header, offsets.text_state);
        let length = word_at(&header, offsets.text_length) as usize;
        let not_a_text = || self.memory.malformed("a text");
        // Free-threaded builds give the first field of the state a byte or two of its own.
        let bits = [state, state >> 6, state >> 14]
            .into_iter()
            .find(|bits| matches!((bits >> 2) & 7, 1 | 2 | 4) && bits & (1 << 5) != 0)
            .ok_or_else(not_a_text)?;
        let width = ((bits >> 2) & 7) as usize;
        let ascii = bits & (1 << 6) != 0;
        let bytes = length.checked_mul(width).filter(|&bytes| bytes <= LONGEST).ok_or_else(not_a_text)?;
        let start = if ascii { offsets.text_ascii } else { offsets.text_other };
        let data = self.memory.bytes(address.field(start), bytes)?;
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

    /// The contents of a bytes object, whose end may be missing where memory was copied.
    pub(crate) fn bytes_up_to_end(&self, address: Address) -> Result<Vec<u8>, M::Error> {
        let length = self.length(address)?;
        self.memory.bytes_up_to(address.field(self.offsets.bytes_data), length)
    }

    /// The name of an object's type.
    pub(crate) fn type_name(&self, address: Address) -> Result<String, M::Error> {
        let kind = self.memory.pointer(address.field(self.offsets.object_type))?;
        self.memory.c_string(self.memory.pointer(kind.field(self.offsets.type_name))?)
    }

    /// The items of a tuple, as far as `limit`.
    pub(crate) fn tuple(&self, address: Address, limit: usize) -> Result<Vec<Address>, M::Error> {
        let length = self.length(address)?.min(limit);
        self.pointers(address.field(self.offsets.tuple_items), length)
    }

    /// The items of a list, as far as `limit`.
    pub(crate) fn list(&self, address: Address, limit: usize) -> Result<Vec<Address>, M::Error> {
        let length = self.length(address)?.min(limit);
        let items = self.memory.pointer(address.field(self.offsets.list_items))?;
        self.pointers(items, length)
    }

    /// The length of a tuple, list or bytes object.
    pub(crate) fn length(&self, address: Address) -> Result<usize, M::Error> {
        Ok(self.memory.word(address.field(self.offsets.sized_length))? as usize)
    }

    pub(crate) fn pointers(&self, address: Address, count: usize) -> Result<Vec<Address>, M::Error> {
        let bytes = self.memory.bytes(address, count.min(LONGEST / 8) * 8)?;
        Ok(bytes.chunks_exact(8).map(|word| Address(word_at(word, 0))).collect())
    }

    /// An integer.
    pub(crate) fn integer(&self, address: Address) -> Result<Integer, M::Error> {
        let tag = self.memory.word(address.field(self.offsets.integer_tag))?;
        // Before 3.12 the count of digits, with the sign; from then on shifted, with the sign in the lowest bits.
        let (count, is_negative) = if self.offsets.minor >= 12 {
            (tag >> 3, tag & 3 == 2)
        } else {
            (tag.cast_signed().unsigned_abs(), tag.cast_signed() < 0)
        };
        let bits = count.saturating_mul(DIGIT_BITS);
        if bits > u64::from(u128::BITS) {
            return Ok(Integer { is_negative, bits, magnitude: None });
        }
        let digits = self.memory.bytes(address.field(self.offsets.integer_digits), count as usize * 4)?;
        let digits = digits.chunks_exact(4).rev();
        let magnitude = digits.fold(0_u128, |sum, digit| (sum << DIGIT_BITS) | u128::from(half_at(digit, 0)));
        Ok(Integer { is_negative, bits, magnitude: Some(magnitude) })
    }
}

const DIGIT_BITS: u64 = 30;

/// A Python integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    pub(crate) is_negative: bool,
    /// How many bits its digits have.
    pub(crate) bits: u64,
    /// `None` where it is too large.
    pub(crate) magnitude: Option<u128>,
}
