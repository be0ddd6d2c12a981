//! Spans as Arrow record batches, for pyarrow, polars and DuckDB.
//!
//! The fixed columns share the trace's memory. Names, categories, processes and threads are dictionary arrays whose
//! keys are the trace's own id columns, so they cost nothing per row either; where two ids have one label (the threads
//! of a process), the keys are numbered again, since readers expect each value of a dictionary once. Args become nullable columns
//! when asked for by key, and those are built on request.

use std::io::Write;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::{ArrowDictionaryKeyType, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{ArrowNativeType, ScalarBuffer};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field, Schema};
use hashbrown::HashMap;

use crate::args::{Arg, ArgOrigin, ArgType, ArgValue};
use crate::ids::Ident;
use crate::trace::Trace;

/// The columns every span has.
pub const SPAN_COLUMNS: [&str; 6] = ["name", "category", "start_ns", "duration_ns", "process", "thread"];

/// More keys than this are in files that mean no good; each would be a column with a value for every span.
const MOST_ARG_COLUMNS: usize = 64;

/// A column of an Arrow table: its name and values.
pub type ArrowColumn = (String, ArrayRef);

/// The spans of a trace: [`SPAN_COLUMNS`], then one column for each key of `args`.
///
/// # Errors
/// When a column cannot be expressed in Arrow; for whole traces that means a bug.
pub fn spans_batch(trace: &Trace, args: &[String]) -> Result<RecordBatch, ArrowError> {
    let spans = &trace.spans;
    let categories = trace.categories().map(|(_, name, _)| name);
    let show = |ident: Ident| ident.display(&trace.strings);
    let processes = trace.tracks.iter().map(|track| show(trace.process(track.process).ident));
    let threads = trace.tracks.iter().map(|track| show(track.ident));
    let times = |values: &ScalarBuffer<i64>| -> ArrayRef {
        Arc::new(arrow_array::Int64Array::new(values.clone(), None))
    };
    let mut columns: Vec<ArrowColumn> = vec![
        ("name".into(), dictionary::<UInt32Type, _>(&spans.name, trace.strings.iter())?),
        ("category".into(), dictionary::<UInt16Type, _>(&spans.category, categories)?),
        ("start_ns".into(), times(&spans.time)),
        ("duration_ns".into(), times(&spans.duration)),
        ("process".into(), dictionary::<UInt32Type, _>(&spans.track, processes)?),
        ("thread".into(), dictionary::<UInt32Type, _>(&spans.track, threads)?),
    ];
    columns.extend(args.iter().map(|key| (key.clone(), arg_column(trace, key))));
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, values)| {
            Field::new(name, values.data_type().clone(), !SPAN_COLUMNS.contains(&name.as_str()))
        })
        .collect();
    let columns = columns.into_iter().map(|(_, values)| values).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Writes the spans as an Arrow IPC file that any Arrow library opens: [`SPAN_COLUMNS`], then the args of all of them.
///
/// # Errors
/// When the output refuses.
pub fn write_spans(trace: &Trace, output: impl Write) -> Result<(), ArrowError> {
    let mut keys: Vec<&str> = Vec::new();
    for key in trace.arg_schemas.iter().flat_map(|layout| &layout.keys) {
        let name = trace.strings.get(key.name);
        if key.origin == ArgOrigin::Args && !keys.contains(&name) && !SPAN_COLUMNS.contains(&name) {
            keys.push(name);
        }
        if keys.len() == MOST_ARG_COLUMNS {
            break;
        }
    }
    let spans = spans_batch(trace, &[])?;
    let mut fields: Vec<Field> = spans.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = spans.columns().to_vec();
    for key in keys {
        let values = compact_arg_column(trace, key)?;
        // Args of other events have columns of their own.
        if values.null_count() < values.len() {
            fields.push(Field::new(key, values.data_type().clone(), true));
            columns.push(values);
        }
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let mut writer = FileWriter::try_new(output, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()
}

/// As [`arg_column`], but each text is there once: inputs of operators are long and repeat.
fn compact_arg_column(trace: &Trace, key: &str) -> Result<ArrayRef, ArrowError> {
    let reader = trace.arg(key);
    let is_text = |arg: Option<Arg>| matches!(arg, Some(Arg::Text(_) | Arg::Json(_)));
    if !trace.spans.ids().any(|span| is_text(reader.get(trace.spans.args(span)))) {
        return Ok(arg_column(trace, key));
    }
    let mut column = StringDictionaryBuilder::<UInt32Type>::new();
    for span in trace.spans.ids() {
        match reader.get(trace.spans.args(span)).map(|value| value.resolve(&trace.strings)) {
            None => column.append_null(),
            Some(ArgValue::Text(text) | ArgValue::Json(text)) => {
                column.append(text)?;
            }
            Some(ArgValue::Int(number)) => {
                column.append(number.to_string())?;
            }
            Some(ArgValue::Float(number)) => {
                column.append(number.to_string())?;
            }
        }
    }
    Ok(Arc::new(column.finish()))
}

/// Labels by their keys, each label once.
fn dictionary<K: ArrowDictionaryKeyType, L: AsRef<str>>(
    keys: &ScalarBuffer<K::Native>,
    labels: impl Iterator<Item = L>,
) -> Result<ArrayRef, ArrowError> {
    let labels: Vec<L> = labels.collect();
    let mut places: HashMap<&str, usize> = HashMap::with_capacity(labels.len());
    let mut distinct: Vec<&str> = Vec::with_capacity(labels.len());
    let mut place_of = |label| {
        *places.entry(label).or_insert_with(|| {
            distinct.push(label);
            distinct.len() - 1
        })
    };
    let renumbered: Vec<K::Native> =
        labels.iter().map(|label| K::Native::usize_as(place_of(label.as_ref()))).collect();
    let keys = if distinct.len() == labels.len() {
        keys.clone()
    } else {
        keys.iter().map(|key| renumbered[key.as_usize()]).collect()
    };
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(distinct));
    Ok(Arc::new(DictionaryArray::try_new(PrimitiveArray::<K>::new(keys, None), values)?))
}

/// One key of the args of every span, null where a span does not have it.
fn arg_column(trace: &Trace, key: &str) -> ArrayRef {
    let reader = trace.arg(key);
    let name = trace.strings.find(key);
    let kinds: Vec<ArgType> = trace
        .arg_schemas
        .iter()
        .flat_map(|layout| &layout.keys)
        .filter(|known| Some(known.name) == name && known.origin == ArgOrigin::Args)
        .map(|known| known.kind)
        .collect();
    let values = trace.spans.ids().map(|span| reader.get(trace.spans.args(span)));
    if !kinds.is_empty() && kinds.iter().all(|&kind| kind == ArgType::Int) {
        let mut column = Int64Builder::with_capacity(trace.spans.len());
        for value in values {
            column.append_option(match value {
                Some(Arg::Int(number)) => Some(number),
                _ => None,
            });
        }
        return Arc::new(column.finish());
    }
    if !kinds.is_empty() && kinds.iter().all(|&kind| matches!(kind, ArgType::Int | ArgType::Float)) {
        let mut column = Float64Builder::with_capacity(trace.spans.len());
        trace.spans.ids().for_each(|span| column.append_option(reader.float(trace.spans.args(span))));
        return Arc::new(column.finish());
    }
    let mut column = StringBuilder::new();
    for value in values {
        match value.map(|value| value.resolve(&trace.strings)) {
            None => column.append_null(),
            Some(ArgValue::Text(text) | ArgValue::Json(text)) => column.append_value(text),
            Some(ArgValue::Int(number)) => column.append_value(number.to_string()),
            Some(ArgValue::Float(number)) => column.append_value(number.to_string()),
        }
    }
    Arc::new(column.finish())
}
