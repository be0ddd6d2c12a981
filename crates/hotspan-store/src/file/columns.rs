//! The columns of a chunk that was read, by name and type.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};

use crate::file::checksum::checksum;
use crate::file::packed::{COLUMNS, unpack};
use crate::file::schema::CHECKSUM;

/// A chunk that is not what a writer wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

pub(super) type Checked<T> = Result<T, Damaged>;

/// The columns of a chunk whose checksum is right.
pub(super) struct Chunk {
    batch: RecordBatch,
    /// The tables that were packed.
    unpacked: Vec<(&'static str, StructArray)>,
}

impl Chunk {
    pub(super) fn new(batch: RecordBatch) -> Checked<Self> {
        let schema = batch.schema_ref();
        let columns = schema.fields().iter().map(AsRef::as_ref).zip(batch.columns());
        let columns = columns.filter(|(field, _)| field.name() != CHECKSUM);
        let found = checksum(columns).ok_or(Damaged)?.crc;
        let stored =
            batch.column_by_name(CHECKSUM).and_then(|column| column.as_primitive_opt::<UInt32Type>());
        match stored.and_then(|stored| stored.values().first().copied()) {
            // A fuzzer does not guess checksums, and what lies behind them must hold all the same.
            Some(stored) if stored == found || cfg!(fuzzing) => {}
            _ => return Err(Damaged),
        }
        let mut chunk = Self { batch, unpacked: Vec::new() };
        if let Some(packed) = chunk.table(COLUMNS)? {
            chunk.unpacked = unpack(&packed)?;
        }
        Ok(chunk)
    }

    pub(super) fn column(&self, name: &str) -> Option<&ArrayRef> {
        self.batch.column_by_name(name)
    }

    /// What the chunk adds to a table; `None` when the file does not have the column.
    pub(super) fn items(&self, name: &str) -> Checked<Option<ArrayRef>> {
        let Some(column) = self.column(name) else { return Ok(None) };
        let list = column.as_list_opt::<i32>().ok_or(Damaged)?;
        if list.len() == 1 { Ok(Some(list.value(0))) } else { Err(Damaged) }
    }

    pub(super) fn table(&self, name: &str) -> Checked<Option<StructArray>> {
        if let Some((_, table)) = self.unpacked.iter().find(|(table, _)| *table == name) {
            return Ok(Some(table.clone()));
        }
        let Some(items) = self.items(name)? else { return Ok(None) };
        items.as_struct_opt().cloned().map(Some).ok_or(Damaged)
    }

    pub(super) fn numbers(&self, name: &str) -> Checked<Vec<u32>> {
        let Some(items) = self.items(name)? else { return Ok(Vec::new()) };
        Ok(items.as_primitive_opt::<UInt32Type>().ok_or(Damaged)?.values().to_vec())
    }

    pub(super) fn strings(&self) -> Checked<StringArray> {
        let Some(items) = self.items("strings")? else { return Ok(StringArray::new_null(0)) };
        items.as_string_opt::<i32>().cloned().ok_or(Damaged)
    }

    pub(super) fn pairs(&self, name: &str) -> Checked<Vec<(String, String)>> {
        let Some(rows) = self.table(name)? else { return Ok(Vec::new()) };
        let pairs = text(&rows, "key")?.iter().flatten().zip(text(&rows, "value")?.iter().flatten());
        Ok(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

pub(super) fn cells<'a, A: ArrowPrimitiveType>(
    rows: &'a StructArray,
    name: &str,
) -> Checked<&'a [A::Native]> {
    let column = rows.column_by_name(name).and_then(|column| column.as_primitive_opt::<A>());
    column.map(|column| &column.values()[..]).ok_or(Damaged)
}

pub(super) fn text<'a>(rows: &'a StructArray, name: &str) -> Checked<&'a StringArray> {
    rows.column_by_name(name).and_then(|column| column.as_string_opt::<i32>()).ok_or(Damaged)
}

pub(super) fn lists<'a>(rows: &'a StructArray, name: &str) -> Checked<&'a ListArray> {
    rows.column_by_name(name).and_then(|column| column.as_list_opt::<i32>()).ok_or(Damaged)
}

pub(super) fn optional(rows: &StructArray, value: &str, has: &str) -> Checked<Vec<Option<i64>>> {
    let (values, has) = (cells::<Int64Type>(rows, value)?, cells::<UInt8Type>(rows, has)?);
    Ok(values.iter().zip(has).map(|(&value, &has)| (has != 0).then_some(value)).collect())
}

/// The pieces of arg columns in a chunk.
pub(super) struct Segments<'a> {
    pub(super) arg_schemas: &'a [u16],
    pub(super) positions: &'a [u16],
    pub(super) small: &'a ListArray,
    pub(super) ints: &'a ListArray,
    pub(super) floats: &'a ListArray,
    pub(super) ids: &'a ListArray,
}

impl<'a> Segments<'a> {
    pub(super) fn new(values: &'a StructArray) -> Checked<Self> {
        Ok(Self {
            arg_schemas: cells::<UInt16Type>(values, "layout")?,
            positions: cells::<UInt16Type>(values, "position")?,
            small: lists(values, "small")?,
            ints: lists(values, "ints")?,
            floats: lists(values, "floats")?,
            ids: lists(values, "ids")?,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.arg_schemas.len()
    }
}

pub(super) fn piece<A: ArrowPrimitiveType>(list: &ListArray, index: usize) -> Checked<PrimitiveArray<A>> {
    list.value(index).as_primitive_opt::<A>().cloned().ok_or(Damaged)
}
