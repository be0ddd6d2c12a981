//! Values in Python's marshal format, as far as profiles have them. Nesting and memory are bounded by the file itself.

use std::rc::Rc;

use crate::error::ImportError;
use crate::memory_limit::MemoryWatch;

/// A value. Lists are shared: a file refers to the same function from many places.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A whole number; beyond 64 bits the nearest that fits.
    Int(i64),
    Float(f64),
    Text(Rc<str>),
    Tuple(Rc<Vec<Value>>),
    Dict(Rc<Vec<(Value, Value)>>),
    /// None, True, False and bytes: known, and never part of a profile.
    Other,
    /// The end of a dict.
    End,
}

/// A dict of tuples of dicts of tuples; a little more for what future versions add.
const DEEPEST: usize = 12;

pub(super) struct MarshalReader<'a> {
    bytes: &'a [u8],
    position: usize,
    references: Vec<Option<Value>>,
    /// A value takes up to thirty times its bytes in the file.
    memory: MemoryWatch,
    values: u32,
}

/// How many values are read between two looks at the memory that they take.
const BETWEEN_LOOKS: u32 = 1 << 16;

impl<'a> MarshalReader<'a> {
    pub(super) fn new(bytes: &'a [u8], memory: MemoryWatch) -> Self {
        Self { bytes, position: 0, references: Vec::new(), memory, values: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn read(&mut self) -> Result<Value, ImportError> {
        self.value(0)
    }

    fn damaged(&self, reason: &str) -> ImportError {
        ImportError::Damaged { reason: reason.to_owned(), offset: self.position as u64 }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ImportError> {
        let taken = self.position.checked_add(count).and_then(|end| self.bytes.get(self.position..end));
        let taken = taken.ok_or_else(|| self.damaged("the profile is cut off"))?;
        self.position += count;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ImportError> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn word(&mut self) -> Result<i32, ImportError> {
        let mut word = [0; 4];
        word.copy_from_slice(self.take(4)?);
        Ok(i32::from_le_bytes(word))
    }

    fn length(&mut self) -> Result<usize, ImportError> {
        let length = self.word()?;
        usize::try_from(length).map_err(|_| self.damaged("a length is negative"))
    }

    fn text(&mut self, length: usize) -> Result<Value, ImportError> {
        Ok(Value::Text(String::from_utf8_lossy(self.take(length)?).into()))
    }

    fn value(&mut self, depth: usize) -> Result<Value, ImportError> {
        if depth > DEEPEST {
            return Err(self.damaged("values are nested deeper than in any profile"));
        }
        self.values = self.values.wrapping_add(1);
        if self.values.is_multiple_of(BETWEEN_LOOKS) {
            self.memory.check()?;
        }
        let code = self.byte()?;
        // A value that is referred to later takes its number before what is inside it.
        let reference = (code & 0x80 != 0).then(|| {
            self.references.push(None);
            self.references.len() - 1
        });
        let value = match code & 0x7f {
            b'0' => Value::End,
            b'N' | b'T' | b'F' => Value::Other,
            b'i' => Value::Int(i64::from(self.word()?)),
            b'l' => self.long()?,
            b'g' => {
                let mut number = [0; 8];
                number.copy_from_slice(self.take(8)?);
                Value::Float(f64::from_le_bytes(number))
            }
            b'f' => {
                let length = usize::from(self.byte()?);
                let text = String::from_utf8_lossy(self.take(length)?);
                Value::Float(text.parse().map_err(|_| self.damaged("a number is none"))?)
            }
            b'z' | b'Z' => {
                let length = usize::from(self.byte()?);
                self.text(length)?
            }
            b'u' | b't' | b'a' | b'A' => {
                let length = self.length()?;
                self.text(length)?
            }
            b's' => {
                let length = self.length()?;
                self.take(length)?;
                Value::Other
            }
            b')' => {
                let length = usize::from(self.byte()?);
                self.tuple(length, depth)?
            }
            b'(' => {
                let length = self.length()?;
                self.tuple(length, depth)?
            }
            b'{' => self.dict(depth)?,
            b'r' => {
                let number = self.length()?;
                let known = self.references.get(number).cloned().flatten();
                known.ok_or_else(|| self.damaged("a reference leads nowhere"))?
            }
            _ => return Err(self.damaged("a value is of a kind that profiles do not have")),
        };
        if let Some(reference) = reference {
            self.references[reference] = Some(value.clone());
        }
        Ok(value)
    }

    fn tuple(&mut self, length: usize, depth: usize) -> Result<Value, ImportError> {
        // Each item takes a byte at least.
        if length > self.bytes.len() - self.position {
            return Err(self.damaged("a tuple is longer than the file"));
        }
        let items: Result<Vec<Value>, ImportError> = (0..length).map(|_| self.value(depth + 1)).collect();
        Ok(Value::Tuple(Rc::new(items?)))
    }

    fn dict(&mut self, depth: usize) -> Result<Value, ImportError> {
        let mut items = Vec::new();
        loop {
            match self.value(depth + 1)? {
                Value::End => return Ok(Value::Dict(Rc::new(items))),
                key => items.push((key, self.value(depth + 1)?)),
            }
        }
    }

    /// Digits of 15 bits, the lowest first; the sign is that of their count.
    fn long(&mut self) -> Result<Value, ImportError> {
        let count = self.word()?;
        let mut number: i64 = 0;
        for index in 0..count.unsigned_abs() {
            let mut digit = [0; 2];
            digit.copy_from_slice(self.take(2)?);
            let digit = i64::from(u16::from_le_bytes(digit) & 0x7fff);
            let weighed =
                index.checked_mul(15).filter(|&shift| shift < 63).map(|shift| i128::from(digit) << shift);
            let sum = weighed.map_or(i128::from(i64::MAX), |weighed| i128::from(number) + weighed);
            number = if digit == 0 { number } else { i64::try_from(sum).unwrap_or(i64::MAX) };
        }
        Ok(Value::Int(if count < 0 { -number } else { number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> MarshalReader<'_> {
        MarshalReader::new(bytes, MemoryWatch::new())
    }

    #[test]
    fn numbers_of_any_size_are_read() {
        // marshal.dumps of each, by CPython 3.11.
        let read = |bytes: &[u8]| reader(bytes).read().ok();
        assert_eq!(read(b"\xe9\xff\xff\xff\xff"), Some(Value::Int(-1)));
        assert_eq!(read(b"\xec\x03\x00\x00\x00\x00\x00\x00\x00\x04\x00"), Some(Value::Int(1 << 32)));
        assert_eq!(read(b"l\xfd\xff\xff\xff\x01\x00\x00\x00\x04\x00"), Some(Value::Int(-(1 << 32) - 1)));
        assert_eq!(
            read(b"l\x09\x00\x00\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0"),
            Some(Value::Int(i64::MAX))
        );
    }

    #[test]
    fn references_lead_to_what_came_before() {
        let Some(Value::Tuple(items)) = reader(b")\x03\xfa\x01xr\0\0\0\0z\x01y").read().ok() else {
            panic!("a tuple");
        };
        assert_eq!(items[0], items[1]);
        assert!(reader(b"r\0\0\0\0").read().is_err());
        assert!(reader(b"\xa9\x01r\0\0\0\0").read().is_err(), "a tuple cannot contain itself");
    }
}
