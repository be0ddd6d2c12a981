//! Packing the columns of a chunk.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Fields};

use super::{ARGS, Method, Number, Type, is_fair};
use crate::args::{ArgColumn, ArgSchema};
use crate::file::chunk::{Pieces, numbers};

/// The pieces of columns in a chunk, packed.
#[derive(Debug, Default)]
pub(crate) struct PackedColumns {
    table: Vec<u8>,
    layout: Vec<u16>,
    column: Vec<u16>,
    kind: Vec<u8>,
    rows: Vec<u32>,
    method: Vec<u8>,
    width: Vec<u8>,
    first: Vec<i64>,
    base: Vec<i64>,
    bytes: Pieces<u8>,
    /// What the columns take when they are unpacked.
    unpacked: usize,
    /// Nothing is left out of the values, for a reader that would not believe it.
    in_full: bool,
}

/// Where a piece belongs.
#[derive(Clone, Copy)]
struct Place {
    table: u8,
    layout: u16,
    column: usize,
    kind: Type,
}

/// How a piece is stored.
struct Packing {
    method: Method,
    width: usize,
    first: i64,
    base: i64,
}

impl PackedColumns {
    /// As before, but each value as wide as it is in memory.
    pub(crate) fn in_full() -> Self {
        Self { in_full: true, ..Self::default() }
    }

    /// Whether a reader takes them: few bytes may not stand for very many.
    pub(crate) fn is_fair(&self) -> bool {
        is_fair(self.unpacked, self.bytes.values.len())
    }

    /// Adds some rows of every column of a layout.
    pub(crate) fn push_args(&mut self, layout: u16, schema: &ArgSchema, rows: Range<usize>) {
        for (column, values) in schema.columns.iter().enumerate() {
            let place = |kind| Place { table: ARGS, layout, column, kind };
            match values {
                ArgColumn::Small(values) => self.push(place(Type::UInt32), &values[rows.clone()]),
                ArgColumn::Int(values) => self.push(place(Type::Int64), &values[rows.clone()]),
                ArgColumn::Float(values) => self.push(place(Type::Float64), &values[rows.clone()]),
                ArgColumn::Id(values) => self.push(place(Type::Strings), &values[rows.clone()]),
            }
        }
    }

    /// Adds the columns of a table. In a table of events, the layout of each stands
    /// right before the row of its args.
    pub(crate) fn push_table(&mut self, table: usize, columns: &[ArrayRef], fields: &Fields) {
        let mut layouts: &[u16] = &[];
        for (column, (array, field)) in columns.iter().zip(fields).enumerate() {
            let place = |kind| Place { table: table as u8, layout: 0, column, kind };
            match array.data_type() {
                DataType::UInt8 => self.push(place(Type::UInt8), array.as_primitive::<UInt8Type>().values()),
                DataType::UInt16 => {
                    let values = array.as_primitive::<UInt16Type>().values();
                    layouts = values;
                    self.push(place(Type::UInt16), values);
                }
                DataType::UInt32 => {
                    let values = array.as_primitive::<UInt32Type>().values();
                    if field.name() == "arg_row" && !self.in_full {
                        self.push_counted(place(Type::UInt32), layouts, values);
                    } else {
                        self.push(place(Type::UInt32), values);
                    }
                }
                _ => self.push(place(Type::Int64), array.as_primitive::<Int64Type>().values()),
            }
        }
    }

    fn push<T: Number>(&mut self, place: Place, values: &[T]) {
        // Fractions have no distances that are smaller than themselves.
        let is_full = self.in_full || place.kind == Type::Float64;
        let packing = if is_full { Packing::full(place.kind) } else { Packing::of(values) };
        let bytes = &mut self.bytes.values;
        let begin = bytes.len();
        bytes.resize(begin + values.len() * packing.width, 0);
        let out = &mut bytes[begin..];
        match packing.width {
            0 => {}
            1 => packing.write::<T, 1>(values, out),
            2 => packing.write::<T, 2>(values, out),
            4 => packing.write::<T, 4>(values, out),
            _ => packing.write::<T, 8>(values, out),
        }
        self.describe(place, values.len(), &packing);
    }

    fn push_counted(&mut self, place: Place, layouts: &[u16], rows: &[u32]) {
        let mut next: Vec<Option<u32>> = Vec::new();
        let mut differences: Vec<u32> = Vec::with_capacity(rows.len());
        for (&layout, &row) in layouts.iter().zip(rows) {
            if next.len() <= usize::from(layout) {
                next.resize(usize::from(layout) + 1, None);
            }
            let expected = next[usize::from(layout)].unwrap_or_else(|| {
                self.bytes.values.extend_from_slice(&row.to_le_bytes());
                row
            });
            differences.push(row.wrapping_sub(expected));
            next[usize::from(layout)] = Some(row.wrapping_add(1));
        }
        let is_exact = differences.iter().all(|&difference| difference == 0);
        let width = if is_exact { 0 } else { 4 };
        if !is_exact {
            self.bytes.values.extend(differences.iter().flat_map(|difference| difference.to_le_bytes()));
        }
        let packing = Packing { method: Method::Counted, width, first: 0, base: 0 };
        self.describe(place, rows.len(), &packing);
    }

    fn describe(&mut self, place: Place, rows: usize, packing: &Packing) {
        self.table.push(place.table);
        self.layout.push(place.layout);
        self.column.push(place.column as u16);
        self.kind.push(place.kind as u8);
        self.rows.push(rows as u32);
        self.method.push(packing.method as u8);
        self.width.push(packing.width as u8);
        self.first.push(packing.first);
        self.base.push(packing.base);
        self.bytes.end_piece();
        self.unpacked += rows * place.kind.width();
    }

    pub(crate) fn columns(self) -> Vec<ArrayRef> {
        vec![
            numbers::<UInt8Type>(self.table),
            numbers::<UInt16Type>(self.layout),
            numbers::<UInt16Type>(self.column),
            numbers::<UInt8Type>(self.kind),
            numbers::<UInt32Type>(self.rows),
            numbers::<UInt8Type>(self.method),
            numbers::<UInt8Type>(self.width),
            numbers::<Int64Type>(self.first),
            numbers::<Int64Type>(self.base),
            self.bytes.list::<UInt8Type>(),
        ]
    }
}

impl Packing {
    fn full(kind: Type) -> Self {
        Self { method: Method::Plain, width: kind.width(), first: 0, base: 0 }
    }

    /// The way that takes the fewest bytes. What fits one byte each is not looked at twice.
    fn of<T: Number>(values: &[T]) -> Self {
        let Some(&first) = values.first() else { return Self::full(Type::UInt8) };
        let (least, most) = values.iter().fold((first, first), |(least, most), &value| {
            (if value < least { value } else { least }, if value > most { value } else { most })
        });
        let (first, least, most) = (first.to_bits(), least.to_bits(), most.to_bits());
        let plain = Self { method: Method::Plain, width: width_of(least, most), first: 0, base: least };
        if plain.width <= 1 || values.len() < 2 {
            return plain;
        }
        let (mut smallest, mut largest) = (i64::MAX, i64::MIN);
        let mut before = first;
        for value in &values[1..] {
            let step = value.to_bits().wrapping_sub(before);
            smallest = smallest.min(step);
            largest = largest.max(step);
            before = before.wrapping_add(step);
        }
        let width = width_of(smallest, largest);
        if width < plain.width {
            return Self { method: Method::Steps, width, first, base: smallest };
        }
        plain
    }

    fn write<T: Number, const WIDTH: usize>(&self, values: &[T], out: &mut [u8]) {
        let (slots, _) = out.as_chunks_mut::<WIDTH>();
        if self.method == Method::Plain {
            for (slot, value) in slots.iter_mut().zip(values) {
                store(slot, value.to_bits().wrapping_sub(self.base));
            }
            return;
        }
        // The first stands apart, so its slot stays 0.
        let mut before = self.first;
        for (slot, value) in slots.iter_mut().zip(values).skip(1) {
            let value = value.to_bits();
            store(slot, value.wrapping_sub(before).wrapping_sub(self.base));
            before = value;
        }
    }
}

#[inline]
fn store<const WIDTH: usize>(slot: &mut [u8; WIDTH], value: i64) {
    slot.copy_from_slice(&value.to_le_bytes()[..WIDTH]);
}

/// Bytes for the distance of two numbers.
fn width_of(least: i64, most: i64) -> usize {
    match most.wrapping_sub(least).cast_unsigned() {
        0 => 0,
        1..=0xFF => 1,
        0x100..=0xFFFF => 2,
        0x1_0000..=0xFFFF_FFFF => 4,
        _ => 8,
    }
}
