//! A reader of the part of pickle that plain data with one object around it needs. It builds values and runs nothing: names of
//! classes and functions are not looked up, and instructions that only code needs are refused.
//!
//! There is no recursion. Each instruction makes at most one value, so memory is bounded by the size of the file.

use std::str;

/// The slot of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueId(u32);

/// A value; what it contains is referred to, and may be shared.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// None, a class, a mark: nothing we look into.
    Opaque,
    Int(i64),
    Float(f64),
    Text(String),
    /// A tuple or list.
    Items(Vec<ValueId>),
    Dict(Vec<(ValueId, ValueId)>),
    /// An object with its state, once that was given.
    Object(Option<ValueId>),
}

/// Why content is not such a pickle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PickleError {
    pub(super) reason: String,
    pub(super) offset: u64,
}

/// All values of a pickle.
#[derive(Debug, Default)]
pub(super) struct Pickle {
    values: Vec<Value>,
}

impl Pickle {
    /// Reads a pickle: its values, and which of them is the result.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, ValueId), PickleError> {
        let mut machine = Machine { bytes, ..Machine::default() };
        loop {
            let offset = machine.at as u64;
            let failed = |reason: String| PickleError { reason, offset };
            match machine.step() {
                Ok(None) => {}
                Ok(Some(result)) => return Ok((machine.pickle, result)),
                Err(reason) => return Err(failed(reason.to_owned())),
            }
        }
    }

    pub(super) fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// The entry of a dictionary under a text.
    pub(super) fn entry(&self, dict: ValueId, key: &str) -> Option<ValueId> {
        let Value::Dict(entries) = self.value(dict) else { return None };
        entries.iter().rev().find(|(name, _)| self.text(*name) == Some(key)).map(|&(_, value)| value)
    }

    pub(super) fn items(&self, id: ValueId) -> Option<&[ValueId]> {
        if let Value::Items(items) = self.value(id) { Some(items) } else { None }
    }

    pub(super) fn text(&self, id: ValueId) -> Option<&str> {
        if let Value::Text(text) = self.value(id) { Some(text) } else { None }
    }

    pub(super) fn integer(&self, id: ValueId) -> Option<i64> {
        if let Value::Int(number) = *self.value(id) { Some(number) } else { None }
    }

    pub(super) fn number(&self, id: ValueId) -> Option<f64> {
        match *self.value(id) {
            Value::Int(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    pickle: Pickle,
    stack: Vec<ValueId>,
    /// Heights of the stack at the marks.
    marks: Vec<usize>,
    memo: Vec<Option<ValueId>>,
}

type Step<T> = Result<T, &'static str>;

const CUT_OFF: &str = "the pickle is cut off";
const EMPTY: &str = "an instruction of the pickle has no values to work on";

impl<'a> Machine<'a> {
    /// Does one instruction; the result when it was the last.
    fn step(&mut self) -> Step<Option<ValueId>> {
        match self.take(1)?[0] {
            b'.' => return self.pop().map(Some),
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_mark()?),
            b'N' => self.push(Value::Opaque)?,
            0x88 => self.push(Value::Int(1))?,
            0x89 => self.push(Value::Int(0))?,
            b'K' => self.integer(1, false)?,
            b'M' => self.integer(2, false)?,
            b'J' => self.integer(4, true)?,
            0x8a => {
                let size = usize::from(self.take(1)?[0]);
                self.integer(size, true)?;
            }
            b'G' => {
                let bytes = self.take(8)?.try_into().map_err(|_| CUT_OFF)?;
                self.push(Value::Float(f64::from_be_bytes(bytes)))?;
            }
            0x8c => self.text(1)?,
            b'X' => self.text(4)?,
            0x8d => self.text(8)?,
            b')' | b']' => self.push(Value::Items(Vec::new()))?,
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b't' | b'l' => {
                let items = self.pop_mark()?;
                self.push(Value::Items(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.extend(vec![item])?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.extend(items)?;
            }
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }
            0x94 => self.remember(self.memo.len())?,
            b'q' => {
                let slot = self.size(1)?;
                self.remember(slot)?;
            }
            b'r' => {
                let slot = self.size(4)?;
                self.remember(slot)?;
            }
            b'h' => {
                let slot = self.size(1)?;
                self.recall(slot)?;
            }
            b'j' => {
                let slot = self.size(4)?;
                self.recall(slot)?;
            }
            b'c' => {
                self.line()?;
                self.line()?;
                self.push(Value::Opaque)?;
            }
            0x93 => self.replace_two(Value::Opaque)?,
            // A class or function and its arguments: an object, whatever they are.
            b'R' | 0x81 => self.replace_two(Value::Object(None))?,
            b'b' => self.build()?,
            _ => return Err("the pickle has an instruction that LineStats does not need"),
        }
        Ok(None)
    }

    fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(CUT_OFF)?;
        let taken = self.bytes.get(self.at..end).ok_or(CUT_OFF)?;
        self.at = end;
        Ok(taken)
    }

    fn line(&mut self) -> Step<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n').ok_or(CUT_OFF)?;
        self.at += length + 1;
        Ok(())
    }

    fn size(&mut self, width: usize) -> Step<usize> {
        let bytes = self.take(width)?;
        let size = bytes.iter().rev().fold(0_u64, |size, &byte| size << 8 | u64::from(byte));
        usize::try_from(size).map_err(|_| CUT_OFF)
    }

    fn push(&mut self, value: Value) -> Step<()> {
        let id = u32::try_from(self.pickle.values.len()).map_err(|_| "the pickle has too many values")?;
        self.pickle.values.push(value);
        self.stack.push(ValueId(id));
        Ok(())
    }

    /// Takes what is on top; never what lies below a mark.
    fn pop(&mut self) -> Step<ValueId> {
        if self.marks.last().is_some_and(|&mark| self.stack.len() <= mark) {
            return Err(EMPTY);
        }
        self.stack.pop().ok_or(EMPTY)
    }

    fn pop_mark(&mut self) -> Step<Vec<ValueId>> {
        let mark = self.marks.pop().ok_or("the pickle ends a list that was not begun")?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn top(&mut self) -> Step<&mut Value> {
        let id = *self.stack.last().ok_or(EMPTY)?;
        self.pickle.values.get_mut(id.0 as usize).ok_or(EMPTY)
    }

    /// A number in little endian order, of any width that fits 64 bits.
    fn integer(&mut self, width: usize, signed: bool) -> Step<()> {
        let bytes = self.take(width)?;
        if width > 8 {
            return Err("a number does not fit 64 bits");
        }
        let negative = signed && bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..width].copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(wide)))
    }

    fn text(&mut self, width: usize) -> Step<()> {
        let length = self.size(width)?;
        let bytes = self.take(length)?;
        // Python allows lone surrogates in file names.
        self.push(Value::Text(String::from_utf8_lossy(bytes).into_owned()))
    }

    fn tuple(&mut self, count: usize) -> Step<()> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Value::Items(items))
    }

    fn extend(&mut self, items: Vec<ValueId>) -> Step<()> {
        match self.top()? {
            Value::Items(known) => known.extend(items),
            _ => return Err("the pickle appends to what is no list"),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[ValueId]) -> Step<()> {
        match self.top()? {
            Value::Dict(known) if items.len().is_multiple_of(2) => {
                known.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => return Err("the pickle sets an item of what is no dictionary"),
        }
        Ok(())
    }

    fn remember(&mut self, slot: usize) -> Step<()> {
        // Places are given in order; one far beyond would only cost memory.
        if slot > self.memo.len() {
            return Err("the pickle remembers a value out of order");
        }
        let top = *self.stack.last().ok_or(EMPTY)?;
        match self.memo.get_mut(slot) {
            Some(known) => *known = Some(top),
            None => self.memo.push(Some(top)),
        }
        Ok(())
    }

    fn recall(&mut self, slot: usize) -> Step<()> {
        let known = self.memo.get(slot).copied().flatten();
        self.stack.push(known.ok_or("the pickle recalls a value it did not remember")?);
        Ok(())
    }

    fn replace_two(&mut self, value: Value) -> Step<()> {
        self.pop()?;
        self.pop()?;
        self.push(value)
    }

    /// Gives an object its state.
    fn build(&mut self) -> Step<()> {
        let state = self.pop()?;
        match self.top()? {
            Value::Object(slot) => *slot = Some(state),
            _ => return Err("the pickle gives a state to what is no object"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_data_and_runs_nothing() {
        // os.system("x") would be c os\nsystem\n ( X… t R: an object without meaning.
        let (pickle, result) = Pickle::parse(b"\x80\x02cos\nsystem\n(X\x01\0\0\0xtR.").unwrap();
        assert_eq!(pickle.value(result), &Value::Object(None));
    }

    #[test]
    fn hostile_content_is_refused() {
        let refused: [&[u8]; 12] = [
            b"",
            b".",
            b"\x80\x04",
            b"e.",
            b"a.",
            b"(u.",
            b"K\x01(a.",
            b"K\x01b.",
            b"r\xff\xff\xff\xff.",
            b"K\x01r\xff\xff\xff\xff.",
            b"X\xff\xff\xff\xffabc.",
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.",
        ];
        for bytes in refused {
            assert!(Pickle::parse(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_list_in_itself_ends() {
        let (pickle, result) = Pickle::parse(b"]q\0h\0a.").unwrap();
        assert_eq!(pickle.items(result), Some([result].as_slice()));
    }

    #[test]
    fn numbers_of_all_widths() {
        let integer = |bytes: &[u8]| Pickle::parse(bytes).map(|(pickle, id)| pickle.integer(id).unwrap());
        assert_eq!(integer(b"J\xff\xff\xff\xff."), Ok(-1));
        assert_eq!(integer(b"M\xff\xff."), Ok(65_535));
        assert_eq!(integer(b"\x8a\x05\0\0\0\0\x01."), Ok(1 << 32));
        assert_eq!(integer(b"\x8a\0."), Ok(0));
        assert!(integer(b"\x8a\x09\0\0\0\0\0\0\0\0\x01.").is_err());
    }
}
