//! How results are shown: typed cells in titled columns, so that presenters need not know the analyses.

pub mod tree;

use std::cmp::Ordering;

use hotspan_store::{Bytes, Duration, Timestamp};
use serde_json::Value;

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

    /// `part` as a percentage of `whole`; missing when there is no whole.
    #[must_use]
    pub fn share(part: Duration, whole: Duration) -> Self {
        if whole.0 == 0 { Self::Missing } else { Self::Percent(part.0 as f64 * 100.0 / whole.0 as f64) }
    }
}

impl Cell {
    /// The order of two cells of a column; what is missing comes first.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
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
    /// Nanoseconds.
    Nanoseconds,
    /// Percent.
    Percent,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What programs call it.
    pub key: String,
    /// What people call it.
    pub title: String,
    /// On which side its values stand.
    pub align: Align,
    /// What its numbers count.
    pub unit: Unit,
}

impl Column {
    fn new(key: &str, title: &str, align: Align, unit: Unit) -> Self {
        Self { key: key.to_owned(), title: title.to_owned(), align, unit }
    }

    /// A column of words.
    #[must_use]
    pub fn text(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Left, Unit::None)
    }

    /// A column of counts.
    #[must_use]
    pub fn count(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Right, Unit::Count)
    }

    /// A column of times.
    #[must_use]
    pub fn duration(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Right, Unit::Nanoseconds)
    }

    /// A column of shares.
    #[must_use]
    pub fn percent(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Right, Unit::Percent)
    }

    /// A column of amounts of memory.
    #[must_use]
    pub fn bytes(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Right, Unit::Bytes)
    }

    /// A column of other numbers.
    #[must_use]
    pub fn number(key: &str, title: &str) -> Self {
        Self::new(key, title, Align::Right, Unit::None)
    }
}

/// A table: every row has one cell per column.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without columns.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column with its cells, from the first row down. Rows that are new have the columns before empty.
    pub fn add_column(&mut self, column: Column, cells: impl Iterator<Item = Cell>) {
        let before = self.columns.len();
        self.columns.push(column);
        for (index, cell) in cells.enumerate() {
            if index == self.rows.len() {
                self.rows.push(vec![Cell::Missing; before]);
            }
            self.rows[index].push(cell);
        }
        for row in &mut self.rows {
            row.resize(before + 1, Cell::Missing);
        }
    }

    /// Sorts the rows by a column, largest first; rows that are equal keep their order.
    ///
    /// # Errors
    /// The keys there are, when `key` is none of them.
    pub fn sort_by(&mut self, key: &str) -> Result<(), Vec<String>> {
        let Some(index) = self.columns.iter().position(|column| column.key == key) else {
            return Err(self.columns.iter().map(|column| column.key.clone()).collect());
        };
        self.rows.sort_by(|left, right| right[index].compare(&left[index]));
        Ok(())
    }

    /// Adds a row; cells beyond the columns are dropped, absent ones are missing.
    pub fn add_row(&mut self, mut cells: Vec<Cell>) {
        cells.resize(self.columns.len(), Cell::Missing);
        self.rows.push(cells);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_every_column() {
        let mut table = Table::new("t");
        table.add_column(Column::text("a", "A"), ["x", "y"].into_iter().map(Cell::text));
        table.add_column(Column::count("b", "B"), std::iter::once(Cell::Count(1)));
        assert_eq!(table.rows, [vec![Cell::text("x"), Cell::Count(1)], vec![Cell::text("y"), Cell::Missing]]);
    }

    #[test]
    fn a_share_of_nothing_is_missing() {
        assert_eq!(Cell::share(Duration(1), Duration(0)), Cell::Missing);
        assert_eq!(Cell::share(Duration(1), Duration(4)), Cell::Percent(25.0));
    }
}
