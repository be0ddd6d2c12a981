//! Packed columns say what they said before, or are refused.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, StructArray};

use super::{COLUMNS, PackedColumns, unpack};
use crate::args::{ArgColumn, ArgSchema};
use crate::events::SpansBuilder;
use crate::file::columns::{Checked, lists};
use crate::file::schema::table_fields;
use crate::ids::{ArgSchemaId, CategoryId, StringId, TrackId};
use crate::table::Growing;
use crate::units::{Duration, Timestamp};

/// Time, duration, name, args schema and args row.
type Row = (i64, i64, u32, u16, u32);

fn table(packed: PackedColumns) -> StructArray {
    StructArray::new(table_fields(COLUMNS), packed.columns(), None)
}

fn spans(rows: &[Row]) -> StructArray {
    let mut spans = SpansBuilder::default();
    for &(time, duration, name, layout, arg_row) in rows {
        spans.push((
            Timestamp(time),
            Duration(duration),
            StringId(name),
            CategoryId(3),
            TrackId(5),
            ArgSchemaId(layout),
            arg_row,
        ));
    }
    StructArray::new(table_fields("spans"), spans.take().slice_columns(0, rows.len()), None)
}

fn packed(spans: &StructArray) -> PackedColumns {
    let mut packed = PackedColumns::default();
    packed.push_table(0, spans.columns(), &table_fields("spans"));
    packed
}

#[test]
fn extremes_survive() {
    let (least, most) = (i64::MIN, i64::MAX);
    let rows: [&[Row]; 5] = [
        &[(most, least, u32::MAX, u16::MAX, u32::MAX)],
        &[(least, most, 0, 0, 0), (most, least, u32::MAX, u16::MAX, u32::MAX), (0, -1, 7, 0, 9)],
        &[(5, 1, 1, 1, 10), (6, 2, 2, 2, 900), (8, 3, 1, 1, 11), (9, 300, 1, 2, 901)],
        &[(5, 1, 1, 1, 10), (5 + 70_000, 1, 1, 1, 9), (5 + 140_000, 1, 1, 1, 10)],
        &[(-5, 0, 0, 4, u32::MAX), (-4, 0, 0, 4, 0)],
    ];
    for rows in rows {
        let spans = spans(rows);
        let [(name, found), _] = <[_; 2]>::try_from(unpack(&table(packed(&spans))).unwrap()).unwrap();
        assert_eq!((name, &found), ("spans", &spans));
    }
}

#[test]
fn args_of_every_type_survive() {
    let columns = vec![
        ArgColumn::Small(vec![7, 8, 9].into()),
        ArgColumn::Int(vec![i64::MIN, 0, i64::MAX].into()),
        ArgColumn::Float(vec![f64::NAN, -0.0, f64::INFINITY].into()),
        ArgColumn::Id(vec![4, 4, 4].into()),
    ];
    let mut packed = PackedColumns::default();
    packed.push_args(9, &ArgSchema { keys: Vec::new(), columns, rows: 3 }, 1..3);
    let [(name, values)] = <[_; 1]>::try_from(unpack(&table(packed)).unwrap()).unwrap();
    assert_eq!(name, "values");
    assert_eq!(*lists(&values, "small").unwrap().value(0).as_primitive::<UInt32Type>().values(), [8, 9]);
    assert_eq!(*lists(&values, "ints").unwrap().value(1).as_primitive::<Int64Type>().values(), [0, i64::MAX]);
    let floats = lists(&values, "floats").unwrap().value(2);
    let floats = floats.as_primitive::<arrow_array::types::Float64Type>();
    assert_eq!(
        floats.values().iter().map(|value| value.to_bits()).collect::<Vec<_>>(),
        [(-0.0_f64).to_bits(), f64::INFINITY.to_bits()]
    );
    assert_eq!(*lists(&values, "ids").unwrap().value(3).as_primitive::<UInt32Type>().values(), [4, 4]);
}

#[test]
fn operators_take_few_bytes() {
    let rows: Vec<_> = (0..40_000_i64)
        .map(|row| (1_000_000_000 + row * 5_000, row % 7_000, 100 + row as u32 % 50, 1, row as u32))
        .collect();
    let packed = table(packed(&spans(&rows)));
    let bytes = lists(&packed, "bytes").unwrap().values().len();
    // Times go on evenly, durations need two bytes, names one; the rest is the same for all.
    assert_eq!(bytes, 40_000 * 3 + 4);
}

#[test]
fn few_bytes_that_stand_for_very_many_are_refused() {
    let rows: Vec<_> = (0..1 << 16).map(|row| (1, 1, 1, 1, row)).collect();
    let spans = spans(&rows);
    assert!(!packed(&spans).is_fair());
    let refused: Checked<_> = unpack(&table(packed(&spans)));
    assert!(refused.is_err());
    let mut in_full = PackedColumns::in_full();
    in_full.push_table(0, spans.columns(), &table_fields("spans"));
    assert!(in_full.is_fair());
    assert_eq!(unpack(&table(in_full)).unwrap()[0].1, spans);
}
