//! Args: whatever an event carries beyond the fixed columns, known or unknown, kept without loss and in columns.
//!
//! Events of one kind carry the same keys in the same order, so a trace has few distinct key lists. Each such list is
//! a [`Layout`], and each layout is a table of its own with one typed column per key. An event holds its layout and its
//! row there: six bytes, no per-event keys, no empty cells. While a trace is built, layouts form a tree (one step per
//! key) that is walked as the keys of an event arrive; see [`build`].
//!
//! Lists and objects (`Input Dims`, `grid`) are interned as JSON text: shapes repeat, so they cost four bytes each.

pub(crate) mod build;
pub(crate) mod growing;
pub(crate) mod tables;

use arrow_buffer::ScalarBuffer;

use crate::ids::{ArgSchemaId, StringId};
use crate::string_table::StringTable;
use crate::trace::Trace;

pub use build::PendingArgs;

/// Where the args of one event are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Args {
    /// The table.
    pub schema: ArgSchemaId,
    /// The row in it.
    pub row: u32,
}

/// Where in the event a key stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgOrigin {
    /// Inside `"args"`.
    Args,
    /// Beside it, at the level of `"name"` and `"ts"`.
    Event,
    /// Not a key of the file: the whole of an event's args as one JSON object `{"args": {…}, "event": {…}}`, used once
    /// a file has more than a few thousand distinct key lists.
    Packed,
}

/// The type of an argument column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgType {
    /// Whole numbers.
    Int,
    /// Fractions; whole numbers too once the key has been seen with a fraction.
    Float,
    /// Strings.
    Text,
    /// Lists, objects, booleans, null and numbers that fit neither type, as JSON text.
    Json,
}

impl ArgOrigin {
    /// The origin that a file stores as this number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Args, Self::Event, Self::Packed].into_iter().find(|&origin| origin as u8 == code)
    }
}

impl ArgType {
    /// The type that a file stores as this number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Int, Self::Float, Self::Text, Self::Json].into_iter().find(|&kind| kind as u8 == code)
    }
}

/// A key of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgKey {
    /// Its name.
    pub name: StringId,
    /// Where it stood.
    pub origin: ArgOrigin,
    /// The type of its values.
    pub kind: ArgType,
}

/// One argument value as stored; strings by id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A string.
    Text(StringId),
    /// JSON text.
    Json(StringId),
}

/// One argument value as read; strings resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgValue<'a> {
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A string.
    Text(&'a str),
    /// JSON text.
    Json(&'a str),
}

impl Arg {
    /// The type of the column that holds it.
    #[must_use]
    pub fn kind(self) -> ArgType {
        match self {
            Self::Int(_) => ArgType::Int,
            Self::Float(_) => ArgType::Float,
            Self::Text(_) => ArgType::Text,
            Self::Json(_) => ArgType::Json,
        }
    }

    /// The value with its string looked up.
    #[must_use]
    pub fn resolve(self, strings: &StringTable) -> ArgValue<'_> {
        match self {
            Self::Int(number) => ArgValue::Int(number),
            Self::Float(number) => ArgValue::Float(number),
            Self::Text(id) => ArgValue::Text(strings.get(id)),
            Self::Json(id) => ArgValue::Json(strings.get(id)),
        }
    }
}

impl ArgValue<'_> {
    /// The value as JSON.
    #[must_use]
    pub fn to_json(self) -> serde_json::Value {
        match self {
            Self::Int(number) => number.into(),
            Self::Float(number) => number.into(),
            Self::Text(text) => text.into(),
            Self::Json(text) => serde_json::from_str(text).unwrap_or(serde_json::Value::Null),
        }
    }
}

/// The values of one key of one layout.
#[derive(Clone, Debug)]
pub(crate) enum ArgColumn {
    /// Whole numbers that all fit 32 bits, as nearly all do.
    Small(ScalarBuffer<u32>),
    /// Whole numbers.
    Int(ScalarBuffer<i64>),
    /// Fractions.
    Float(ScalarBuffer<f64>),
    /// String ids.
    Id(ScalarBuffer<u32>),
}

/// A distinct list of keys and the table of its values.
#[derive(Clone, Debug)]
pub struct ArgSchema {
    pub(crate) keys: Vec<ArgKey>,
    pub(crate) columns: Vec<ArgColumn>,
    pub(crate) rows: u32,
}

impl ArgSchema {
    /// The keys, in the order the file wrote them.
    #[must_use]
    pub fn keys(&self) -> &[ArgKey] {
        &self.keys
    }

    /// How many events have these keys.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The value of the key at `position` for the event at `row`.
    #[must_use]
    pub fn value(&self, position: usize, row: u32) -> Option<Arg> {
        let row = row as usize;
        Some(match (self.columns.get(position)?, self.keys.get(position)?.kind) {
            (ArgColumn::Small(values), _) => Arg::Int((*values.get(row)?).into()),
            (ArgColumn::Int(values), _) => Arg::Int(*values.get(row)?),
            (ArgColumn::Float(values), _) => Arg::Float(*values.get(row)?),
            (ArgColumn::Id(values), ArgType::Text) => Arg::Text(StringId(*values.get(row)?)),
            (ArgColumn::Id(values), _) => Arg::Json(StringId(*values.get(row)?)),
        })
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let column = |column: &ArgColumn| match column {
            ArgColumn::Small(values) | ArgColumn::Id(values) => values.inner().capacity(),
            ArgColumn::Int(values) => values.inner().capacity(),
            ArgColumn::Float(values) => values.inner().capacity(),
        };
        self.columns.iter().map(column).sum::<usize>() + self.keys.len() * size_of::<ArgKey>()
    }
}

/// Reads one key of many events: the position of the key in each layout is looked up once.
///
/// ```
/// # let trace = hotspan_store::TraceBuilder::new().finish();
/// let correlation = trace.arg("correlation");
/// for span in trace.spans().ids() {
///     let _: Option<i64> = correlation.int(trace.spans().args(span));
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ArgReader<'a> {
    trace: &'a Trace,
    key: &'a str,
    /// For each layout, the position of the key.
    positions: Vec<Option<u16>>,
    packed: Vec<bool>,
}

impl<'a> ArgReader<'a> {
    pub(crate) fn new(trace: &'a Trace, key: &'a str) -> Self {
        let name = trace.strings().find(key);
        let arg_schemas = trace.arg_schemas();
        let position = |layout: &ArgSchema| {
            // The last one wins when a file repeats a key, as in every JSON reader.
            let position = layout
                .keys
                .iter()
                .rposition(|key| Some(key.name) == name && key.origin == ArgOrigin::Args)?;
            u16::try_from(position).ok()
        };
        let packed = |layout: &ArgSchema| layout.keys.iter().any(|key| key.origin == ArgOrigin::Packed);
        Self {
            trace,
            key,
            positions: arg_schemas.iter().map(position).collect(),
            packed: arg_schemas.iter().map(packed).collect(),
        }
    }

    /// Whether any event of the trace may have this key.
    #[must_use]
    pub fn occurs(&self) -> bool {
        self.positions.iter().any(Option::is_some) || self.packed.contains(&true)
    }

    /// The value as stored; args that were packed for want of layouts are not seen here, but by [`Self::json`].
    #[must_use]
    #[inline]
    pub fn get(&self, args: Args) -> Option<Arg> {
        let position = (*self.positions.get(args.schema.index())?)?;
        self.trace.arg_schemas()[args.schema.index()].value(position.into(), args.row)
    }

    /// The value as a whole number; text that is a number counts ("25738").
    #[must_use]
    #[inline]
    pub fn int(&self, args: Args) -> Option<i64> {
        match self.get(args) {
            Some(Arg::Int(number)) => Some(number),
            Some(Arg::Float(number)) => Some(number as i64),
            Some(Arg::Text(text)) => self.trace.str(text).parse().ok(),
            Some(Arg::Json(_)) => None,
            None => self.unpack(args)?.as_i64(),
        }
    }

    /// The value as a fraction.
    #[must_use]
    pub fn float(&self, args: Args) -> Option<f64> {
        match self.get(args) {
            Some(Arg::Int(number)) => Some(number as f64),
            Some(Arg::Float(number)) => Some(number),
            Some(_) => None,
            None => self.unpack(args)?.as_f64(),
        }
    }

    /// The id of the value's text, string or JSON: equal ids mean equal values, so it serves as a group key.
    #[must_use]
    pub fn text_id(&self, args: Args) -> Option<StringId> {
        match self.get(args) {
            Some(Arg::Text(id) | Arg::Json(id)) => Some(id),
            _ => None,
        }
    }

    /// The value as JSON, whatever its type.
    #[must_use]
    pub fn json(&self, args: Args) -> Option<serde_json::Value> {
        match self.get(args) {
            Some(value) => Some(value.resolve(self.trace.strings()).to_json()),
            None => self.unpack(args),
        }
    }

    #[cold]
    fn unpack(&self, args: Args) -> Option<serde_json::Value> {
        if self.packed.get(args.schema.index()) != Some(&true) {
            return None;
        }
        let Arg::Json(id) = self.trace.arg_schemas()[args.schema.index()].value(0, args.row)? else {
            return None;
        };
        let mut packed: serde_json::Value = serde_json::from_str(self.trace.str(id)).ok()?;
        Some(packed.get_mut("args")?.get_mut(self.key)?.take())
    }
}
