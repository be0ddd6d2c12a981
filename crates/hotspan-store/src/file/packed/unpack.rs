//! Unpacking the columns of a chunk into the tables that are checked and accepted. Sizes are checked before memory is taken.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, ListArray, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Fields};

use super::{ARGS, Method, Number, Type, is_fair};
use crate::file::chunk::{EVENT_TABLES, Pieces, Values, numbers};
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
        let mut layouts: ScalarBuffer<u16> = ScalarBuffer::from(Vec::new());
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
                    let array = self.array::<UInt16Type>(index, &[])?;
                    layouts = array.as_primitive::<UInt16Type>().values().clone();
                    array
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
        let from = *index;
        let is_args = |&&table: &&u8| table == ARGS;
        *index += self.table.get(from..).map_or(0, |tables| tables.iter().take_while(is_args).count());
        let rows_of = |kind: Type| {
            let pieces = (from..*index).filter(|&at| self.kind[at] == kind);
            let rows: usize = pieces.map(|at| self.rows[at] as usize).sum();
            // Lists of Arrow cannot hold more.
            if i32::try_from(rows).is_ok() { Ok(rows) } else { Err(Damaged) }
        };
        let mut values = Values {
            small: Pieces::with_capacity(rows_of(Type::UInt32)?),
            ints: Pieces::with_capacity(rows_of(Type::Int64)?),
            floats: Pieces::with_capacity(rows_of(Type::Float64)?),
            ids: Pieces::with_capacity(rows_of(Type::Strings)?),
            ..Values::default()
        };
        for at in from..*index {
            match self.kind[at] {
                Type::UInt32 => self.piece(at, &[], &mut values.small.values)?,
                Type::Int64 => self.piece(at, &[], &mut values.ints.values)?,
                Type::Float64 => self.piece(at, &[], &mut values.floats.values)?,
                Type::Strings => self.piece(at, &[], &mut values.ids.values)?,
                Type::UInt8 | Type::UInt16 => return Err(Damaged),
            }
            values.end_piece(self.layout[at], self.column[at]);
        }
        values.table().map_err(|_| Damaged)
    }

    fn array<A: ArrowPrimitiveType<Native: Number>>(
        &self,
        index: usize,
        layouts: &[u16],
    ) -> Checked<ArrayRef> {
        let mut values = Vec::with_capacity(self.rows[index] as usize);
        self.piece(index, layouts, &mut values)?;
        Ok(numbers::<A>(values))
    }

    /// Appends the values of a piece.
    fn piece<T: Number>(&self, index: usize, layouts: &[u16], values: &mut Vec<T>) -> Checked<()> {
        let bytes = self.bytes.value(index);
        let bytes = bytes.as_primitive_opt::<UInt8Type>().ok_or(Damaged)?.values();
        let (rows, width) = (self.rows[index] as usize, usize::from(self.width[index]));
        let (first, base) = (self.first[index], self.base[index]);
        match self.method[index] {
            code if code == Method::Counted as u8 => counted(bytes, rows, width, layouts, values),
            _ if bytes.len() != rows * width => Err(Damaged),
            code if code == Method::Plain as u8 => with_width(bytes, rows, width, Plain { base, values }),
            code if code == Method::Steps as u8 => {
                // The first stands apart, so that the step to it is made undone.
                let before = first.wrapping_sub(base);
                with_width(bytes, rows, width, Steps { before, base, values })
            }
            _ => Err(Damaged),
        }
    }
}

/// What turns stored numbers into values and appends them. It is compiled for each width: a file is millions of them.
trait Append {
    /// Whether all of them are values of the type.
    fn append(self, stored: impl Iterator<Item = i64>) -> bool;
}

struct Plain<'v, T> {
    base: i64,
    values: &'v mut Vec<T>,
}

impl<T: Number> Append for Plain<'_, T> {
    fn append(self, stored: impl Iterator<Item = i64>) -> bool {
        let mut fits = true;
        self.values.extend(stored.map(|stored| {
            let bits = self.base.wrapping_add(stored);
            fits &= T::fits(bits);
            T::from_bits(bits)
        }));
        fits
    }
}

struct Steps<'v, T> {
    before: i64,
    base: i64,
    values: &'v mut Vec<T>,
}

impl<T: Number> Append for Steps<'_, T> {
    fn append(self, stored: impl Iterator<Item = i64>) -> bool {
        let (mut before, mut fits) = (self.before, true);
        self.values.extend(stored.map(|stored| {
            before = before.wrapping_add(self.base).wrapping_add(stored);
            fits &= T::fits(before);
            T::from_bits(before)
        }));
        fits
    }
}

/// Appends numbers that are stored in so many bytes each.
fn with_width(bytes: &[u8], rows: usize, width: usize, to: impl Append) -> Checked<()> {
    let fits = match width {
        0 => to.append(std::iter::repeat_n(0, rows)),
        1 => to.append(stored::<1>(bytes)),
        2 => to.append(stored::<2>(bytes)),
        4 => to.append(stored::<4>(bytes)),
        8 => to.append(stored::<8>(bytes)),
        _ => false,
    };
    if fits { Ok(()) } else { Err(Damaged) }
}

/// The numbers that are stored for a piece.
fn stored<const WIDTH: usize>(bytes: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let (numbers, _) = bytes.as_chunks::<WIDTH>();
    numbers.iter().map(|number| {
        let mut wide = [0; 8];
        wide[..WIDTH].copy_from_slice(number);
        i64::from_le_bytes(wide)
    })
}

/// Rows that are counted by layout.
fn counted<T: Number>(
    bytes: &[u8],
    rows: usize,
    width: usize,
    layouts: &[u16],
    values: &mut Vec<T>,
) -> Checked<()> {
    let firsts = bytes.len().checked_sub(rows.checked_mul(width).ok_or(Damaged)?).ok_or(Damaged)?;
    if layouts.len() != rows || firsts % 4 != 0 {
        return Err(Damaged);
    }
    let (firsts, differences) = bytes.split_at(firsts);
    let (firsts, _) = firsts.as_chunks::<4>();
    match width {
        0 => count(layouts.iter().zip(std::iter::repeat(0)), firsts, values),
        4 => count(layouts.iter().zip(stored::<4>(differences)), firsts, values),
        _ => Err(Damaged),
    }
}

fn count<'l, T: Number>(
    rows: impl Iterator<Item = (&'l u16, i64)>,
    mut firsts: &[[u8; 4]],
    values: &mut Vec<T>,
) -> Checked<()> {
    let mut next: Vec<Option<u32>> = Vec::new();
    for (&layout, difference) in rows {
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
        if !T::fits(row.into()) {
            return Err(Damaged);
        }
        values.push(T::from_bits(row.into()));
    }
    if firsts.is_empty() { Ok(()) } else { Err(Damaged) }
}
