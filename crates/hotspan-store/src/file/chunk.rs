//! One chunk on its way to the file: rows as Arrow columns in the order of the schema. What goes into which chunk is
//! decided by `write`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field};

use crate::args::{ArgKey, ArgSchema};
use crate::file::checksum::checksum;
use crate::file::error::FileError;
use crate::file::packed::{COLUMNS, PackedColumns};
use crate::file::schema::{CHECKSUM, SCHEMA, item_field, table_fields};
use crate::ids::{Ident, StringId};
use crate::losses::Losses;
use crate::metadata::Clock;
use crate::trace::{Process, Track};

/// The string id that stands for "none" in the file.
pub(super) const NO_STRING: u32 = u32::MAX;

/// A chunk may not be larger; a reader refuses to.
pub(super) const MAX_BODY: u64 = 1 << 30;

/// The tables made of plain columns, in the order of the schema.
pub(super) const EVENT_TABLES: [&str; 9] =
    ["spans", "instants", "counters", "flows", "frames", "stacks", "samples", "call_stats", "line_stats"];

/// What one chunk adds to each table.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    pub(super) strings: Vec<&'a str>,
    pub(super) categories: Vec<u32>,
    pub(super) processes: Vec<(usize, Process)>,
    pub(super) tracks: Vec<(usize, Track)>,
    pub(super) metadata: Vec<(&'a str, &'a str)>,
    pub(super) source: Vec<(&'static str, String)>,
    pub(super) layout_keys: Vec<(u16, ArgKey)>,
    pub(super) arg_rows: Vec<(u16, u32)>,
    /// Which rows of which layout those are.
    pub(super) args: Vec<(u16, &'a ArgSchema, Range<usize>)>,
    /// The columns of [`EVENT_TABLES`]; none where the chunk has no rows of them.
    pub(super) events: [Vec<ArrayRef>; EVENT_TABLES.len()],
    pub(super) verbatim: Vec<u32>,
}

/// Pieces of the columns of args, one after the other, as they are checked.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) layout: Vec<u16>,
    pub(super) position: Vec<u16>,
    pub(super) small: Pieces<u32>,
    pub(super) ints: Pieces<i64>,
    pub(super) floats: Pieces<f64>,
    pub(super) ids: Pieces<u32>,
}

/// Lists of numbers, one after the other.
#[derive(Debug)]
pub(super) struct Pieces<T> {
    pub(super) values: Vec<T>,
    lengths: Vec<usize>,
    /// Where the last piece ends.
    end: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl<T> Pieces<T> {
    /// With room for so many numbers.
    pub(super) fn with_capacity(numbers: usize) -> Self {
        Self { values: Vec::with_capacity(numbers), lengths: Vec::new(), end: 0 }
    }

    /// What was added since the last piece is the next one.
    pub(super) fn end_piece(&mut self) {
        let begin = std::mem::replace(&mut self.end, self.values.len());
        self.lengths.push(self.end - begin);
    }
}

impl Values {
    /// What was added to the list of its type is a piece of one key of a layout.
    pub(super) fn end_piece(&mut self, layout: u16, position: u16) {
        self.layout.push(layout);
        self.position.push(position);
        self.small.end_piece();
        self.ints.end_piece();
        self.floats.end_piece();
        self.ids.end_piece();
    }

    pub(super) fn table(self) -> Result<StructArray, ArrowError> {
        let columns = vec![
            numbers::<UInt16Type>(self.layout),
            numbers::<UInt16Type>(self.position),
            self.small.list::<UInt32Type>(),
            self.ints.list::<Int64Type>(),
            self.floats.list::<arrow_array::types::Float64Type>(),
            self.ids.list::<UInt32Type>(),
        ];
        StructArray::try_new(table_fields("values"), columns, None)
    }
}

impl<T: arrow_buffer::ArrowNativeType> Pieces<T> {
    pub(super) fn list<A: ArrowPrimitiveType<Native = T>>(self) -> ArrayRef {
        let offsets = OffsetBuffer::from_lengths(self.lengths);
        Arc::new(ListArray::new(Arc::new(item_field(A::DATA_TYPE)), offsets, numbers::<A>(self.values), None))
    }
}

impl Chunk<'_> {
    /// Whether the chunk adds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.strings.is_empty()
            && self.categories.is_empty()
            && self.processes.is_empty()
            && self.tracks.is_empty()
            && self.metadata.is_empty()
            && self.source.is_empty()
            && self.layout_keys.is_empty()
            && self.arg_rows.is_empty()
            && self.events.iter().all(Vec::is_empty)
            && self.verbatim.is_empty()
    }

    /// The record batch of the chunk.
    pub(super) fn encode(
        self,
        clock: Clock,
        losses: &Losses,
        complete: bool,
    ) -> Result<RecordBatch, FileError> {
        let columns: Vec<ArrayRef> = self.columns(clock, losses, complete)?;
        let fields = SCHEMA.fields().iter().map(AsRef::as_ref);
        let Some(sum) = checksum(fields.zip(&columns)) else {
            return Err(FileError::Encode(ArrowError::SchemaError("a column has no checksum".into())));
        };
        // Offsets and padding come on top of the values, hence the margin.
        if sum.bytes > MAX_BODY / 2 {
            return Err(FileError::TooLarge { bytes: sum.bytes });
        }
        let mut columns = columns;
        columns.push(numbers::<UInt32Type>(vec![sum.crc]));
        Ok(RecordBatch::try_new(Arc::clone(&SCHEMA), columns)?)
    }

    fn packed(&self) -> PackedColumns {
        let packed = self.packed_into(PackedColumns::default());
        if packed.is_fair() { packed } else { self.packed_into(PackedColumns::in_full()) }
    }

    fn packed_into(&self, mut packed: PackedColumns) -> PackedColumns {
        for (number, (name, columns)) in EVENT_TABLES.into_iter().zip(&self.events).enumerate() {
            if !columns.is_empty() {
                packed.push_table(number, columns, &table_fields(name));
            }
        }
        for (layout, schema, rows) in &self.args {
            packed.push_args(*layout, schema, rows.clone());
        }
        packed
    }

    fn columns(self, clock: Clock, losses: &Losses, complete: bool) -> Result<Vec<ArrayRef>, ArrowError> {
        let packed = self.packed();
        let mut rows: Vec<(&str, Vec<ArrayRef>)> = vec![
            ("strings", vec![strings(self.strings)]),
            ("categories", vec![numbers::<UInt32Type>(self.categories)]),
            ("processes", process_columns(&self.processes)),
            ("tracks", track_columns(&self.tracks)),
            ("metadata", pair_columns(self.metadata.into_iter())),
            ("source", pair_columns(self.source.iter().map(|(key, value)| (*key, value.as_str())))),
            ("clock", clock_columns(clock)),
            ("layout_keys", key_columns(&self.layout_keys)),
            ("arg_rows", {
                let (arg_schemas, counts) = self.arg_rows.into_iter().unzip();
                vec![numbers::<UInt16Type>(arg_schemas), numbers::<UInt32Type>(counts)]
            }),
            (COLUMNS, packed.columns()),
        ];
        rows.push(("verbatim", vec![numbers::<UInt32Type>(self.verbatim)]));
        rows.push(("losses", loss_columns(losses)));
        rows.push(("complete", vec![numbers::<UInt8Type>(vec![u8::from(complete)])]));
        debug_assert!(
            SCHEMA
                .fields()
                .iter()
                .map(|field| field.name())
                .eq(rows.iter().map(|(name, _)| *name).chain([CHECKSUM]))
        );
        SCHEMA.fields().iter().zip(rows).map(|(field, (_, columns))| column(field, columns)).collect()
    }
}

/// The one value of a top-level column, from the columns of the table in it.
fn column(field: &Field, mut columns: Vec<ArrayRef>) -> Result<ArrayRef, ArrowError> {
    let DataType::List(item) = field.data_type() else {
        return match field.data_type() {
            DataType::Struct(fields) => Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?)),
            _ => columns.pop().ok_or_else(|| ArrowError::SchemaError("a column is missing".into())),
        };
    };
    let values: ArrayRef = match item.data_type() {
        DataType::Struct(fields) if columns.is_empty() => Arc::new(StructArray::new_null(fields.clone(), 0)),
        DataType::Struct(fields) => Arc::new(StructArray::try_new(fields.clone(), columns, None)?),
        _ => columns.pop().ok_or_else(|| ArrowError::SchemaError("a column is missing".into()))?,
    };
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?))
}

pub(super) fn numbers<A: ArrowPrimitiveType>(values: Vec<A::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), None))
}

fn strings<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn pair_columns<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<ArrayRef> {
    let (keys, values): (Vec<&str>, Vec<&str>) = pairs.unzip();
    vec![strings(keys), strings(values)]
}

fn ident_columns(idents: impl Iterator<Item = Ident>) -> [ArrayRef; 2] {
    let stored = idents.map(|ident| match ident {
        Ident::Int(number) => (number, 0),
        Ident::Text(text) => (i64::from(text.0), 1),
    });
    let (values, is_text) = stored.unzip();
    [numbers::<Int64Type>(values), numbers::<UInt8Type>(is_text)]
}

fn name_column(names: impl Iterator<Item = Option<StringId>>) -> ArrayRef {
    numbers::<UInt32Type>(names.map(|name| name.map_or(NO_STRING, |name| name.0)).collect())
}

fn optional_columns(values: impl Iterator<Item = Option<i64>>) -> [ArrayRef; 2] {
    let (values, has) = values.map(|value| (value.unwrap_or(0), u8::from(value.is_some()))).unzip();
    [numbers::<Int64Type>(values), numbers::<UInt8Type>(has)]
}

fn process_columns(rows: &[(usize, Process)]) -> Vec<ArrayRef> {
    let [ident, is_text] = ident_columns(rows.iter().map(|(_, row)| row.ident));
    let [sort_index, has_sort_index] = optional_columns(rows.iter().map(|(_, row)| row.sort_index));
    vec![
        numbers::<UInt32Type>(rows.iter().map(|&(index, _)| index as u32).collect()),
        ident,
        is_text,
        name_column(rows.iter().map(|(_, row)| row.name)),
        name_column(rows.iter().map(|(_, row)| row.labels)),
        sort_index,
        has_sort_index,
    ]
}

fn track_columns(rows: &[(usize, Track)]) -> Vec<ArrayRef> {
    let [ident, is_text] = ident_columns(rows.iter().map(|(_, row)| row.ident));
    let [sort_index, has_sort_index] = optional_columns(rows.iter().map(|(_, row)| row.sort_index));
    vec![
        numbers::<UInt32Type>(rows.iter().map(|&(index, _)| index as u32).collect()),
        numbers::<UInt32Type>(rows.iter().map(|(_, row)| row.process.0).collect()),
        ident,
        is_text,
        name_column(rows.iter().map(|(_, row)| row.name)),
        sort_index,
        has_sort_index,
    ]
}

fn clock_columns(clock: Clock) -> Vec<ArrayRef> {
    let [base, has_base] = optional_columns([clock.base_unix].into_iter());
    vec![numbers::<Int64Type>(vec![clock.origin]), base, has_base]
}

fn key_columns(keys: &[(u16, ArgKey)]) -> Vec<ArrayRef> {
    vec![
        numbers::<UInt16Type>(keys.iter().map(|&(layout, _)| layout).collect()),
        numbers::<UInt32Type>(keys.iter().map(|(_, key)| key.name.0).collect()),
        numbers::<UInt8Type>(keys.iter().map(|(_, key)| key.origin as u8).collect()),
        numbers::<UInt8Type>(keys.iter().map(|(_, key)| key.kind as u8).collect()),
    ]
}

fn loss_columns(losses: &Losses) -> Vec<ArrayRef> {
    let counts = losses.counts();
    let offset = |offset: Option<u64>| offset.and_then(|offset| i64::try_from(offset).ok()).unwrap_or(-1);
    vec![
        strings(counts.iter().map(|known| known.loss.name())),
        numbers::<UInt64Type>(counts.iter().map(|known| known.count).collect()),
        numbers::<Int64Type>(counts.iter().map(|known| offset(known.first_offset)).collect()),
    ]
}
