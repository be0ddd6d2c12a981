//! The columns of the file: declared once, written from here and compared with what a file says it has.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use crate::events::{Counters, Flows, Instants, Spans};
use crate::file::error::FileError;
use crate::file::packed::COLUMNS;
use crate::profile::{CallStats, Frames, LineStats, Samples, Stacks};

/// Readers refuse later major versions.
pub(super) const MAJOR: u32 = 2;
/// Grows when columns or fields are added.
const MINOR: u32 = 0;
/// The schema metadata key that makes an Arrow stream a `.hotspan` file.
pub(super) const VERSION_KEY: &str = "hotspan.version";

/// The column that holds the checksum of all others.
pub(super) const CHECKSUM: &str = "checksum";

/// Fields of a file's schema, all levels together, beyond which it is not ours: 1.1 has about 120.
const MAX_FIELDS: usize = 4_096;
/// Lists in structs in lists: 1.0 has 4 levels.
const MAX_DEPTH: usize = 8;

/// The schema of the files written by this version.
pub(super) static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let metadata = [
        (VERSION_KEY.to_owned(), format!("{MAJOR}.{MINOR}")),
        ("hotspan.writer".to_owned(), concat!("hotspan ", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    let is_written = |field: &Field| !OF_VERSION_1.contains(&field.name().as_str());
    let columns = columns().into_iter().filter(is_written).collect::<Vec<_>>();
    Arc::new(Schema::new_with_metadata(columns, metadata))
});

/// Tables that version 1 stored value by value, and that are packed since. They are read as they were, and are what packed
/// columns unpack to.
const OF_VERSION_1: [&str; 10] = [
    "values",
    "spans",
    "instants",
    "counters",
    "flows",
    "frames",
    "stacks",
    "samples",
    "call_stats",
    "line_stats",
];

/// Every column that a file of any version may have.
static KNOWN: LazyLock<Schema> = LazyLock::new(|| Schema::new(columns()));

/// The fields of a table.
pub(super) fn table_fields(table: &str) -> Fields {
    let fields = KNOWN.field_with_name(table).ok().and_then(|field| match field.data_type() {
        DataType::List(item) => match item.data_type() {
            DataType::Struct(fields) => Some(fields.clone()),
            _ => None,
        },
        _ => None,
    });
    fields.unwrap_or_default()
}

fn columns() -> Vec<Field> {
    use DataType::{Float64, Int64, UInt8, UInt16, UInt32, UInt64, Utf8};
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, false);
    let list = |name: &str, item: DataType| field(name, DataType::List(Arc::new(item_field(item))));
    let plain = |name: &str, fields: &[(&str, DataType)]| {
        let fields: Fields = fields.iter().map(|(name, data_type)| field(name, data_type.clone())).collect();
        field(name, DataType::Struct(fields))
    };
    let table = |name: &str, fields: &[(&str, DataType)]| list(name, plain(name, fields).data_type().clone());
    let events = |name: &str, fields: Vec<Field>| list(name, DataType::Struct(fields.into()));
    let numbers = |item: DataType| DataType::List(Arc::new(item_field(item)));
    vec![
        list("strings", Utf8),
        list("categories", UInt32),
        table(
            "processes",
            &[
                ("index", UInt32),
                ("ident", Int64),
                ("ident_is_text", UInt8),
                ("name", UInt32),
                ("labels", UInt32),
                ("sort_index", Int64),
                ("has_sort_index", UInt8),
            ],
        ),
        table(
            "tracks",
            &[
                ("index", UInt32),
                ("process", UInt32),
                ("ident", Int64),
                ("ident_is_text", UInt8),
                ("name", UInt32),
                ("sort_index", Int64),
                ("has_sort_index", UInt8),
            ],
        ),
        table("metadata", &[("key", Utf8), ("value", Utf8)]),
        table("source", &[("key", Utf8), ("value", Utf8)]),
        plain("clock", &[("origin", Int64), ("base_unix", Int64), ("has_base_unix", UInt8)]),
        table("layout_keys", &[("layout", UInt16), ("name", UInt32), ("place", UInt8), ("kind", UInt8)]),
        table("arg_rows", &[("layout", UInt16), ("count", UInt32)]),
        table(
            "values",
            &[
                ("layout", UInt16),
                ("position", UInt16),
                ("small", numbers(UInt32)),
                ("ints", numbers(Int64)),
                ("floats", numbers(Float64)),
                ("ids", numbers(UInt32)),
            ],
        ),
        table(
            COLUMNS,
            &[
                ("table", UInt8),
                ("layout", UInt16),
                ("column", UInt16),
                ("type", UInt8),
                ("rows", UInt32),
                ("method", UInt8),
                ("width", UInt8),
                ("first", Int64),
                ("base", Int64),
                ("bytes", numbers(UInt8)),
            ],
        ),
        events("spans", Spans::fields()),
        events("instants", Instants::fields()),
        events("counters", Counters::fields()),
        events("flows", Flows::fields()),
        events("frames", Frames::fields()),
        events("stacks", Stacks::fields()),
        events("samples", Samples::fields()),
        events("call_stats", CallStats::fields()),
        events("line_stats", LineStats::fields()),
        list("verbatim", UInt32),
        table("losses", &[("name", Utf8), ("count", UInt64), ("first_offset", Int64)]),
        field("complete", UInt8),
        field(CHECKSUM, UInt32),
    ]
}

/// The field inside a list.
pub(super) fn item_field(item: DataType) -> Field {
    Field::new("item", item, false)
}

/// A type in words; also what the checksum covers, so that a damaged schema is noticed.
pub(super) fn describe(data_type: &DataType) -> String {
    let mut text = String::new();
    describe_into(&mut text, data_type);
    text
}

fn describe_into(text: &mut String, data_type: &DataType) {
    match data_type {
        DataType::List(item) => {
            text.push_str("list<");
            describe_into(text, item.data_type());
            text.push('>');
        }
        DataType::Struct(fields) => {
            text.push_str("struct<");
            for (index, field) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(field.name());
                text.push(':');
                describe_into(text, field.data_type());
            }
            text.push('>');
        }
        plain => text.push_str(&plain.to_string().to_ascii_lowercase()),
    }
}

/// Reads the schema of a file and compares it with ours: columns and fields we do not know are let through, those
/// we know must have their type.
pub(super) fn decode(schema: arrow_ipc::Schema<'_>, offset: u64) -> Result<SchemaRef, FileError> {
    let not_hotspan = |problem| FileError::NotHotspan { problem, offset };
    if schema.endianness() != arrow_ipc::Endianness::Little {
        return Err(not_hotspan("an Arrow stream that is not little-endian"));
    }
    check_version(schema).ok_or_else(|| not_hotspan("an Arrow stream without a hotspan.version"))??;
    let mut budget = MAX_FIELDS;
    let fields = schema.fields().ok_or_else(|| not_hotspan("a schema without columns"))?;
    let fields: Result<Vec<Field>, &'static str> =
        fields.iter().map(|field| decode_field(field, MAX_DEPTH, &mut budget)).collect();
    let fields = fields.map_err(not_hotspan)?;
    for (index, field) in fields.iter().enumerate() {
        if fields[..index].iter().any(|other| other.name() == field.name()) {
            return Err(not_hotspan("a schema with two columns of one name"));
        }
        if let Ok(ours) = KNOWN.field_with_name(field.name())
            && !takes(ours.data_type(), field.data_type())
        {
            return Err(FileError::ColumnType {
                column: field.name().clone(),
                found: describe(field.data_type()),
                expected: describe(ours.data_type()),
            });
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// `None`: there is no version.
fn check_version(schema: arrow_ipc::Schema<'_>) -> Option<Result<(), FileError>> {
    let entry = schema.custom_metadata()?.iter().find(|entry| entry.key() == Some(VERSION_KEY))?;
    let found = entry.value()?;
    let (major, minor) = found.split_once('.')?;
    let (major, _minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(if (1..=MAJOR).contains(&major) {
        Ok(())
    } else {
        Err(FileError::Version { found: found.to_owned(), supported: MAJOR })
    })
}

fn decode_field(
    field: arrow_ipc::Field<'_>,
    depth: usize,
    budget: &mut usize,
) -> Result<Field, &'static str> {
    *budget = budget.checked_sub(1).ok_or("a schema with too many columns")?;
    let depth = depth.checked_sub(1).ok_or("a schema nested too deeply")?;
    if field.dictionary().is_some() {
        return Err("a schema with dictionaries");
    }
    let unknown = "a schema with a type that .hotspan files do not use";
    let data_type = match field.type_type() {
        arrow_ipc::Type::Int => {
            let int = field.type_as_int().ok_or(unknown)?;
            match (int.bitWidth(), int.is_signed()) {
                (8, true) => DataType::Int8,
                (8, false) => DataType::UInt8,
                (16, true) => DataType::Int16,
                (16, false) => DataType::UInt16,
                (32, true) => DataType::Int32,
                (32, false) => DataType::UInt32,
                (64, true) => DataType::Int64,
                (64, false) => DataType::UInt64,
                _ => return Err(unknown),
            }
        }
        arrow_ipc::Type::FloatingPoint => {
            let float = field.type_as_floating_point().ok_or(unknown)?;
            match float.precision() {
                arrow_ipc::Precision::SINGLE => DataType::Float32,
                arrow_ipc::Precision::DOUBLE => DataType::Float64,
                _ => return Err(unknown),
            }
        }
        arrow_ipc::Type::Utf8 => DataType::Utf8,
        arrow_ipc::Type::List | arrow_ipc::Type::Struct_ => {
            let children = field.children().ok_or(unknown)?;
            let children: Vec<Field> =
                children.iter().map(|child| decode_field(child, depth, budget)).collect::<Result<_, _>>()?;
            match (field.type_type() == arrow_ipc::Type::List, children.len()) {
                (_, 0) => return Err("a schema with an empty list or struct"),
                (false, _) => DataType::Struct(children.into()),
                (true, 1) => DataType::List(Arc::new(item_field(children[0].data_type().clone()))),
                (true, _) => return Err("a schema with a list of two things"),
            }
        }
        _ => return Err(unknown),
    };
    Ok(Field::new(field.name().unwrap_or_default(), data_type, false))
}

/// Whether a column of type `theirs` has all that `ours` needs.
fn takes(ours: &DataType, theirs: &DataType) -> bool {
    match (ours, theirs) {
        (DataType::List(ours), DataType::List(theirs)) => takes(ours.data_type(), theirs.data_type()),
        (DataType::Struct(ours), DataType::Struct(theirs)) => ours.iter().all(|field| {
            theirs.find(field.name()).is_some_and(|(_, found)| takes(field.data_type(), found.data_type()))
        }),
        (ours, theirs) => ours == theirs,
    }
}
