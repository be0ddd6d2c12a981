//! How results are shown: typed cells in titled columns, so that presenters need not know the analyses.

pub mod door;
pub mod schema;
pub mod tree;

use std::cmp::Ordering;

use hotspan_store::{Bytes, Duration, Timestamp};
use serde_json::Value;

use door::Door;

/// A value with its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// How many.
    Count(u64),
    /// How long.
    Duration(Duration),
    /// A share of something, in percent.
    Percent(f64),
    /// How much memory.
    Bytes(Bytes),
    /// Any other number.
    Number(f64),
    /// Nothing to say: not recorded, or not meaningful here.
    Missing,
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// The order of two cells of a column; what is missing comes first.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Count(left), Self::Count(right)) => left.cmp(right),
            (Self::Duration(left), Self::Duration(right)) => left.cmp(right),
            (left, right) => left.number().total_cmp(&right.number()),
        }
    }

    /// What its number counts.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match self {
            Self::Count(_) => Unit::Count,
            Self::Duration(_) => Unit::Nanoseconds,
            Self::Percent(_) => Unit::Percent,
            Self::Bytes(_) => Unit::Bytes,
            Self::Text(_) | Self::Number(_) | Self::Missing => Unit::None,
        }
    }

    fn number(&self) -> f64 {
        match self {
            Self::Count(count) => *count as f64,
            Self::Duration(duration) => duration.0 as f64,
            Self::Bytes(bytes) => bytes.0 as f64,
            Self::Percent(number) | Self::Number(number) => *number,
            Self::Text(_) | Self::Missing => f64::NEG_INFINITY,
        }
    }
}

/// A bare number in the cell's unit (nanoseconds, bytes, percent), words, or null.
impl From<&Cell> for Value {
    fn from(cell: &Cell) -> Self {
        match cell {
            Cell::Text(text) => text.as_str().into(),
            Cell::Count(count) => (*count).into(),
            Cell::Duration(duration) => duration.0.into(),
            Cell::Percent(number) | Cell::Number(number) => (*number).into(),
            Cell::Bytes(bytes) => bytes.0.into(),
            Cell::Missing => Self::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// On which side the values of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// What the numbers of a column count, for presenters that print bare numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Words, or numbers that count nothing in particular.
    None,
    /// Calls, events, operations.
    Count,
    /// Numbers that name something: lines, steps, processes.
    Ordinal,
    /// Nanoseconds.
    Nanoseconds,
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// What programs call it; empty for no unit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Count => "count",
            Self::Ordinal => "ordinal",
            Self::Nanoseconds => "ns",
            Self::Percent => "percent",
            Self::Bytes => "bytes",
        }
    }
}

/// When a column is part of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Always.
    Always,
    /// Where there is something to show in it.
    WithValues,
    /// Where somebody asked for more columns.
    Wide,
    /// Never: rows can be sorted by it.
    Never,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What programs call it.
    pub key: &'static str,
    /// What people call it.
    pub title: String,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// On which side its values stand.
    pub align: Align,
    /// What its numbers count.
    pub unit: Unit,
    /// When it is part of the table.
    pub shown: Shown,
    /// What `--sort` calls it; empty where rows cannot be sorted by it.
    pub sort_key: &'static str,
}

/// A table: every row has one cell per column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What programs call it.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// What each row leads to; empty where rows lead nowhere.
    pub doors: Vec<Option<Door>>,
    /// All columns that it can have, in order; those in `columns` too.
    pub declared: Vec<Column>,
}

impl Table {
    /// The same under another title.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Self {
        title.clone_into(&mut self.title);
        self
    }

    /// The table, where it has rows.
    #[must_use]
    pub fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// The same with only some of the columns.
    #[must_use]
    pub fn with_columns(mut self, keys: &[&str]) -> Self {
        let kept: Vec<usize> =
            (0..self.columns.len()).filter(|&index| keys.contains(&self.columns[index].key)).collect();
        self.columns = kept.iter().map(|&index| self.columns[index].clone()).collect();
        for row in &mut self.rows {
            *row = kept.iter().map(|&index| row[index].clone()).collect();
        }
        self
    }
}

/// One line of a [`Series`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What programs call it.
    pub key: String,
    /// What people call it.
    pub title: String,
    /// A value for each of the times; it holds until the next.
    pub values: Vec<i64>,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What it shows.
    pub title: String,
    /// What the values count.
    pub unit: Unit,
    /// When they changed.
    pub times: Vec<Timestamp>,
    /// The lines.
    pub lines: Vec<Line>,
}
