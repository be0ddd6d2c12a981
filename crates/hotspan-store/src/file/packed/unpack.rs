//! Unpacking the columns of a chunk into the tables that are checked and accepted. Sizes are checked before memory is taken.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, StructArray};
use arrow_schema::{DataType, Fields};

use super::{ARGS, Method, Number, Type, is_fair};
use crate::file::chunk::{EVENT_TABLES, Values, numbers};
use crate::file::columns::{Checked, Damaged, cells, lists};
use crate::file::schema::table_fields;

/// The tables of a chunk by name, `values` of args among them.
pub(crate) fn unpack(packed: &StructArray) -> Checked<Vec<(&'static str, StructArray)>> {
    let pieces = Packed::new(packed)?;
    let mut tables = Vec::new();
    let mut index = 0;
    for (number, name) in EVENT_TABLES.into_iter().enumerate() {
        let from = index;
        while pieces.table.get(index) == Some(&(number as u8)) {
            index += 1;
        }
        if index > from {
            tables.push((name, pieces.table(from, index, &table_fields(name))?));
        }
    }
    tables.push(("values", pieces.values(&mut index)?));
    if index == pieces.table.len() { Ok(tables) } else { Err(Damaged) }
}

/// The columns of packed columns.
struct Packed<'a> {
    table: &'a [u8],
    layout: &'a [u16],
    column: &'a [u16],
    kind: Vec<Type>,
    rows: &'a [u32],
    method: &'a [u8],
    width: &'a [u8],
    first: &'a [i64],
    base: &'a [i64],
    bytes: &'a ListArray,
}

impl<'a> Packed<'a> {
    fn new(packed: &'a StructArray) -> Checked<Self> {
        let kind = cells::<UInt8Type>(packed, "type")?.iter();
        let kind = kind.map(|&code| Type::from_code(code).ok_or(Damaged)).collect::<Checked<Vec<Type>>>()?;
        let pieces = Self {
            table: cells::<UInt8Type>(packed, "table")?,
            layout: cells::<UInt16Type>(packed, "layout")?,
            column: cells::<UInt16Type>(packed, "column")?,
            kind,
            rows: cells::<UInt32Type>(packed, "rows")?,
            method: cells::<UInt8Type>(packed, "method")?,
            width: cells::<UInt8Type>(packed, "width")?,
            first: cells::<Int64Type>(packed, "first")?,
            base: cells::<Int64Type>(packed, "base")?,
            bytes: lists(packed, "bytes")?,
        };
        let sizes = pieces.rows.iter().zip(&pieces.kind);
        let unpacked = sizes.map(|(&rows, kind)| rows as usize * kind.width()).sum();
        let stored = (0..pieces.table.len()).map(|index| pieces.bytes.value_length(index) as usize).sum();
        if is_fair(unpacked, stored) { Ok(pieces) } else { Err(Damaged) }
    }

    /// Pieces `from..to` as a table with these fields; a later version may have more.
    fn table(&self, from: usize, to: usize, fields: &Fields) -> Checked<StructArray> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(fields.len());
        let mut layouts: Vec<u16> = Vec::new();
        for (position, field) in fields.iter().enumerate() {
            let index = from + position;
            let is_next = index < to
                && usize::from(self.column[index]) == position
                && self.rows[index] == self.rows[from];
            if !is_next {
                return Err(Damaged);
            }
            arrays.push(match (field.data_type(), self.kind[index]) {
                (DataType::UInt8, Type::UInt8) => self.array::<UInt8Type>(index, &layouts)?,
                (DataType::UInt16, Type::UInt16) => {
                    layouts = self.piece(index, &[])?;
                    numbers::<UInt16Type>(layouts.clone())
                }
                (DataType::UInt32, Type::UInt32) => self.array::<UInt32Type>(index, &layouts)?,
                (DataType::Int64, Type::Int64) => self.array::<Int64Type>(index, &layouts)?,
                _ => return Err(Damaged),
            });
        }
        StructArray::try_new(fields.clone(), arrays, None).map_err(|_| Damaged)
    }

    /// The pieces of args, from `index` on.
    fn values(&self, index: &mut usize) -> Checked<StructArray> {
        let mut values = Values::default();
        while self.table.get(*index) == Some(&ARGS) {
            let at = *index;
            let (mut small, mut ints, mut floats, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            match self.kind[at] {
                Type::UInt32 => small = self.piece(at, &[])?,
                Type::Int64 => ints = self.piece(at, &[])?,
                Type::Float64 => floats = self.piece(at, &[])?,
                Type::Strings => ids = self.piece(at, &[])?,
                Type::UInt8 | Type::UInt16 => return Err(Damaged),
            }
            values.push(self.layout[at], self.column[at], (&small, &ints, &floats, &ids));
            *index += 1;
        }
        values.table().map_err(|_| Damaged)
    }

    fn array<A: ArrowPrimitiveType<Native: Number>>(
        &self,
        index: usize,
        layouts: &[u16],
    ) -> Checked<ArrayRef> {
        Ok(numbers::<A>(self.piece(index, layouts)?))
    }

    /// The values of a piece.
    fn piece<T: Number>(&self, index: usize, layouts: &[u16]) -> Checked<Vec<T>> {
        let bytes = self.bytes.value(index);
        let bytes = bytes.as_primitive_opt::<UInt8Type>().ok_or(Damaged)?.values();
        let (rows, width) = (self.rows[index] as usize, usize::from(self.width[index]));
        match self.method[index] {
            code if code == Method::Counted as u8 => counted(bytes, rows, width, layouts),
            code if code == Method::Plain as u8 => {
                let base = self.base[index];
                let value = |stored: i64| T::from_bits(base.wrapping_add(stored));
                stored(bytes, rows, width)?.map(value).collect::<Option<_>>().ok_or(Damaged)
            }
            code if code == Method::Steps as u8 => {
                let (first, base) = (self.first[index], self.base[index]);
                // The first stands apart, so that the step to it is made undone.
                let mut before = first.wrapping_sub(base);
                let step = |stored: i64| {
                    before = before.wrapping_add(base).wrapping_add(stored);
                    T::from_bits(before)
                };
                stored(bytes, rows, width)?.map(step).collect::<Option<_>>().ok_or(Damaged)
            }
            _ => Err(Damaged),
        }
    }
}

/// The numbers that are stored for a piece.
fn stored(bytes: &[u8], rows: usize, width: usize) -> Checked<impl Iterator<Item = i64> + '_> {
    if ![0, 1, 2, 4, 8].contains(&width) || bytes.len() != rows * width {
        return Err(Damaged);
    }
    let number = move |row: usize| {
        let mut number = [0; 8];
        number[..width].copy_from_slice(&bytes[row * width..(row + 1) * width]);
        i64::from_le_bytes(number)
    };
    Ok((0..rows).map(number))
}

/// Rows that are counted by layout.
fn counted<T: Number>(bytes: &[u8], rows: usize, width: usize, layouts: &[u16]) -> Checked<Vec<T>> {
    let firsts = bytes.len().checked_sub(rows.checked_mul(width).ok_or(Damaged)?).ok_or(Damaged)?;
    if layouts.len() != rows || firsts % 4 != 0 || ![0, 4].contains(&width) {
        return Err(Damaged);
    }
    let (firsts, differences) = bytes.split_at(firsts);
    let (mut firsts, _) = firsts.as_chunks::<4>();
    let mut next: Vec<Option<u32>> = Vec::new();
    let mut values = Vec::with_capacity(rows);
    for (&layout, difference) in layouts.iter().zip(stored(differences, rows, width)?) {
        let layout = usize::from(layout);
        if next.len() <= layout {
            next.resize(layout + 1, None);
        }
        let expected = match next[layout] {
            Some(expected) => expected,
            None => {
                let (first, rest) = firsts.split_first().ok_or(Damaged)?;
                firsts = rest;
                u32::from_le_bytes(*first)
            }
        };
        let row = expected.wrapping_add(difference as u32);
        next[layout] = Some(row.wrapping_add(1));
        values.push(T::from_bits(row.into()).ok_or(Damaged)?);
    }
    if firsts.is_empty() { Ok(values) } else { Err(Damaged) }
}
