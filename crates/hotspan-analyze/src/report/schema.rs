//! The declaration of a table: each column says once what it is called, what it means, what it counts and which value of a row it shows.
//!
//! Text, JSON, CSV, Markdown, the dashboard, Python's rows and the keys of `--sort` are made from it.

use std::cmp::Ordering;

use hotspan_store::{Bytes, Duration};

use super::door::{Door, unless_shared};
use super::{Align, Cell, Column, Shown, Table, Unit};

/// Rows cannot be sorted by what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot sort by `{key}`; valid keys: {}{note}", valid.join(", "))]
pub struct SortError {
    /// What was asked for.
    pub key: String,
    /// What can be asked for.
    pub valid: Vec<&'static str>,
    /// What else is valid, in words.
    pub note: &'static str,
}

/// What of a table is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOptions {
    /// Sort by this column, largest first.
    pub sort: Option<String>,
    /// Show at most this many rows; `None` leaves it to the report.
    pub limit: Option<usize>,
    /// Show the columns that are left out by default, too.
    pub wide: bool,
    /// How many stack entries tell rows apart, in reports by stack; `None` for five.
    pub stack_depth: Option<usize>,
    /// Show the user's own code alone, in reports of functions and lines.
    pub my_code: bool,
}

/// A column of rows of type `R`.
pub struct ColumnOf<'a, R> {
    column: Column,
    value: Box<dyn Fn(&'a R) -> Cell + 'a>,
    /// Whether the data as a whole have something to show in it; `None` where the rows tell.
    is_wanted: Option<bool>,
    compare: Option<fn(&R, &R) -> Ordering>,
}

/// A table of rows of type `R`.
pub struct Schema<'a, R> {
    id: String,
    title: String,
    columns: Vec<ColumnOf<'a, R>>,
    default_sort: Option<&'static str>,
    door: Option<DoorOf<'a, R>>,
}

/// What a row leads to.
type DoorOf<'a, R> = Box<dyn Fn(&'a R) -> Option<Door> + 'a>;

impl<'a, R> ColumnOf<'a, R> {
    /// What the column is.
    #[must_use]
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// What a row shows in it.
    #[must_use]
    pub fn cell(&self, row: &'a R) -> Cell {
        (self.value)(row)
    }

    fn is_shown(&self, rows: &[&'a R], wide: bool) -> bool {
        match self.column.shown {
            Shown::Always => true,
            Shown::WithValues => match self.is_wanted {
                Some(is_wanted) => is_wanted,
                None => rows.iter().any(|row| self.cell(row) != Cell::Missing),
            },
            Shown::Wide => wide,
            Shown::Never => false,
        }
    }

    fn compare(&self, left: &'a R, right: &'a R) -> Ordering {
        match self.compare {
            Some(compare) => compare(left, right),
            None => self.cell(left).compare(&self.cell(right)),
        }
    }
}

impl<'a, R> Schema<'a, R> {
    /// A table that programs call `id` and people `title`, without columns.
    #[must_use]
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), columns: Vec::new(), default_sort: None, door: None }
    }

    fn add(
        mut self,
        key: &'static str,
        title: impl Into<String>,
        (align, unit): (Align, Unit),
        value: impl Fn(&'a R) -> Cell + 'a,
    ) -> Self {
        let (title, shown) = (title.into(), Shown::Always);
        let column = Column { key, title, help: "", align, unit, shown, sort_key: key };
        self.columns.push(ColumnOf { column, value: Box::new(value), is_wanted: None, compare: None });
        self
    }

    /// Changes the column that was added last.
    fn change(mut self, change: impl FnOnce(&mut ColumnOf<'a, R>)) -> Self {
        self.columns.last_mut().map(change);
        self
    }

    /// Says what the last column means, in a sentence.
    #[must_use]
    pub fn help(self, help: &'static str) -> Self {
        self.change(|last| last.column.help = help)
    }

    /// Shows the last column only where a row has a value in it.
    #[must_use]
    pub fn if_any(self) -> Self {
        self.change(|last| last.column.shown = Shown::WithValues)
    }

    /// Shows the last column only where this holds for the data.
    #[must_use]
    pub fn when(self, is_wanted: bool) -> Self {
        self.if_any().change(|last| last.is_wanted = Some(is_wanted))
    }

    /// Shows the last column only in wide tables.
    #[must_use]
    pub fn wide(self) -> Self {
        self.change(|last| last.column.shown = Shown::Wide)
    }

    /// Does not show the last column: rows can be sorted by it.
    #[must_use]
    pub fn hidden(self) -> Self {
        self.change(|last| last.column.shown = Shown::Never)
    }

    /// Calls the last column so in `--sort`; its key works there, too.
    #[must_use]
    pub fn sorted_as(self, key: &'static str) -> Self {
        self.change(|last| last.column.sort_key = key)
    }

    /// Sorts by this order of rows where the last column is meant, since that of its cells is another.
    #[must_use]
    pub fn compared_by(self, compare: fn(&R, &R) -> Ordering) -> Self {
        self.change(|last| last.compare = Some(compare))
    }

    /// Sorts rows by this key when nobody names another. Without it they keep their order.
    #[must_use]
    pub fn sorted_by(mut self, key: &'static str) -> Self {
        self.default_sort = Some(key);
        self
    }

    /// Says what rows lead to.
    #[must_use]
    pub fn door(mut self, door: impl Fn(&'a R) -> Option<Door> + 'a) -> Self {
        self.door = Some(Box::new(door));
        self
    }

    /// The columns, shown or not.
    #[must_use]
    pub fn into_columns(self) -> Vec<ColumnOf<'a, R>> {
        self.columns
    }

    /// Sorts rows, largest first; rows that are equal keep their order.
    ///
    /// # Errors
    /// When there is no such key.
    pub fn sort(&self, rows: &mut [&'a R], key: &str) -> Result<(), SortError> {
        let sorts = |column: &&ColumnOf<'a, R>| column.column.sort_key == key || column.column.key == key;
        let Some(column) = self.columns.iter().find(sorts) else {
            let valid = self.columns.iter().map(|column| column.column.sort_key).collect();
            return Err(SortError { key: key.to_owned(), valid, note: "" });
        };
        rows.sort_by(|left, right| column.compare(right, left));
        Ok(())
    }

    /// The table of the rows in their order.
    #[must_use]
    pub fn table(&self, rows: impl IntoIterator<Item = &'a R>) -> Table {
        self.make(&rows.into_iter().collect::<Vec<_>>(), usize::MAX, false)
    }

    /// The table as it is wanted.
    ///
    /// # Errors
    /// When there is no such key to sort by.
    pub fn show(
        &self,
        rows: impl IntoIterator<Item = &'a R>,
        options: &ReportOptions,
    ) -> Result<Table, SortError> {
        let mut rows: Vec<&'a R> = rows.into_iter().collect();
        if let Some(key) = options.sort.as_deref().or(self.default_sort) {
            self.sort(&mut rows, key)?;
        }
        Ok(self.make(&rows, options.limit.unwrap_or(usize::MAX), options.wide))
    }

    /// Which columns are shown is up to all rows, `limit` of which are.
    fn make(&self, rows: &[&'a R], limit: usize, wide: bool) -> Table {
        let shown: Vec<&ColumnOf<'a, R>> =
            self.columns.iter().filter(|column| column.is_shown(rows, wide)).collect();
        let cells = |row: &&'a R| shown.iter().map(|column| column.cell(row)).collect();
        let doors = self.door.as_ref().map(|door| rows.iter().map(|row| door(row)).collect());
        Table {
            id: self.id.clone(),
            title: self.title.clone(),
            columns: shown.iter().map(|column| column.column.clone()).collect(),
            rows: rows.iter().take(limit).map(cells).collect(),
            doors: doors.map(unless_shared).unwrap_or_default(),
            declared: self.columns.iter().map(|column| column.column.clone()).collect(),
        }
    }
}

macro_rules! columns {
    ($($(#[$documentation:meta])* $name:ident: $value:ty, $align:ident, $unit:ident, $cell:expr;)*) => {
        impl<'a, R> Schema<'a, R> {
            $(
                $(#[$documentation])*
                #[must_use]
                pub fn $name<V: Into<$value>>(
                    self,
                    key: &'static str,
                    title: impl Into<String>,
                    value: impl Fn(&'a R) -> V + 'a,
                ) -> Self {
                    let cell: fn($value) -> Cell = $cell;
                    self.add(key, title, (Align::$align, Unit::$unit), move |row| cell(value(row).into()))
                }
            )*
        }
    };
}

columns! {
    /// Adds a column of words.
    text: Cell, Left, None, |cell| cell;
    /// Adds a column of times.
    duration: Option<Duration>, Right, Nanoseconds, |time| time.map_or(Cell::Missing, Cell::Duration);
    /// Adds a column of counts.
    count: Option<u64>, Right, Count, |count| count.map_or(Cell::Missing, Cell::Count);
    /// Adds a column of numbers that name something: lines, steps, processes.
    ordinal: Option<u64>, Right, Ordinal, |number| number.map_or(Cell::Missing, Cell::Count);
    /// Adds a column of shares, in percent.
    percent: Option<f64>, Right, Percent, |share| share.map_or(Cell::Missing, Cell::Percent);
    /// Adds a column of amounts of memory.
    bytes: Option<Bytes>, Right, Bytes, |bytes| bytes.map_or(Cell::Missing, Cell::Bytes);
    /// Adds a column of other numbers.
    number: Option<f64>, Right, None, |number| number.map_or(Cell::Missing, Cell::Number);
    /// Adds a column of identifiers that are numbers.
    index: Cell, Right, Count, |cell| cell;
    /// Adds a column of values of several kinds.
    mixed: Cell, Right, None, |cell| cell;
}

/// `part` as a percentage of `whole`; `None` when there is no whole.
#[must_use]
pub fn share(part: Duration, whole: Duration) -> Option<f64> {
    (whole.0 != 0).then(|| part.0 as f64 * 100.0 / whole.0 as f64)
}

/// A text, unless it is empty.
#[must_use]
pub fn unless_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// A time, unless it is zero.
#[must_use]
pub fn unless_zero(time: Duration) -> Option<Duration> {
    (time.0 != 0).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema<'a>() -> Schema<'a, (&'static str, u64)> {
        Schema::<(&'static str, u64)>::new("calls", "Calls")
            .text("name", "Name", |row| row.0)
            .sorted_as("key")
            .count("calls", "Calls", |row| row.1)
            .bytes("bytes", "Bytes", |_| None)
            .if_any()
            .number("double", "Double", |row| row.1 as f64 * 2.0)
            .wide()
    }

    #[test]
    fn columns_are_shown_where_they_have_something_to_say() {
        let rows = [("a", 1), ("b", 2)];
        let keys = |table: &Table| table.columns.iter().map(|column| column.key).collect::<Vec<_>>();
        assert_eq!(keys(&schema().table(&rows)), ["name", "calls"]);
        let options = ReportOptions { wide: true, limit: Some(1), ..ReportOptions::default() };
        let wide = schema().show(&rows, &options).unwrap();
        assert_eq!(keys(&wide), ["name", "calls", "double"]);
        assert_eq!(wide.rows, [[Cell::from("a"), Cell::Count(1), Cell::Number(2.0)]]);
        assert_eq!(wide.declared.len(), 4);
    }

    #[test]
    fn rows_are_sorted_by_any_column_and_an_unknown_key_lists_them() {
        let rows = [("a", 1), ("b", 3), ("c", 3)];
        let sorted = |key: &str| {
            let options = ReportOptions { sort: Some(key.to_owned()), ..ReportOptions::default() };
            let table = schema().show(&rows, &options)?;
            Ok(table.rows.into_iter().map(|mut row| row.swap_remove(0)).collect::<Vec<_>>())
        };
        assert_eq!(sorted("calls"), Ok(["b", "c", "a"].map(Cell::from).to_vec()));
        assert_eq!(sorted("key"), Ok(["c", "b", "a"].map(Cell::from).to_vec()));
        let error: SortError = sorted("speed").unwrap_err();
        assert_eq!(error.to_string(), "cannot sort by `speed`; valid keys: key, calls, bytes, double");
    }

    #[test]
    fn a_share_of_nothing_is_missing() {
        assert_eq!(share(Duration(1), Duration(0)), None);
        assert_eq!(share(Duration(1), Duration(4)), Some(25.0));
    }
}
