//! The growing table behind a layout: one typed column per key, frozen when the trace is.

use crate::args::{Arg, ArgColumn, ArgKey, ArgSchema, ArgType};
use crate::ids::StringId;

#[derive(Clone, Debug)]
pub(crate) enum GrowingColumn {
    Small(Vec<u32>),
    Int(Vec<i64>),
    Float(Vec<f64>),
    Id(Vec<u32>),
}

#[derive(Clone, Debug)]
pub(crate) struct GrowingArgSchema {
    pub(crate) keys: Vec<ArgKey>,
    pub(crate) columns: Vec<GrowingColumn>,
    /// The number of the first row still here; those before it were taken out.
    pub(crate) first: u32,
    /// The number of the next row.
    pub(crate) next: u32,
}

impl GrowingArgSchema {
    pub(super) fn new(keys: Vec<ArgKey>) -> Self {
        let columns = keys.iter().map(|key| GrowingColumn::new(key.kind)).collect();
        Self { keys, columns, first: 0, next: 0 }
    }

    /// The value of the key at `position` in row `row`, unless that row was taken out.
    pub(crate) fn value(&self, position: usize, row: u32) -> Option<Arg> {
        let index = row.checked_sub(self.first)? as usize;
        Some(match (self.columns.get(position)?, self.keys.get(position)?.kind) {
            (GrowingColumn::Small(values), _) => Arg::Int((*values.get(index)?).into()),
            (GrowingColumn::Int(values), _) => Arg::Int(*values.get(index)?),
            (GrowingColumn::Float(values), _) => Arg::Float(*values.get(index)?),
            (GrowingColumn::Id(values), ArgType::Text) => Arg::Text(StringId(*values.get(index)?)),
            (GrowingColumn::Id(values), _) => Arg::Json(StringId(*values.get(index)?)),
        })
    }

    /// Drops the rows before this one; the others keep their numbers.
    pub(crate) fn forget_before(&mut self, row: u32) {
        let count = row.min(self.next).saturating_sub(self.first);
        self.columns.iter_mut().for_each(|column| column.drop_first(count as usize));
        self.first += count;
    }

    /// Numbers rows from 0 on again, as a new file does. Those that are here keep their distance to the next.
    pub(crate) fn count_anew(&mut self) {
        (self.first, self.next) = (0, self.next - self.first);
    }

    pub(super) fn finish(self) -> ArgSchema {
        let columns = self.columns.into_iter().map(GrowingColumn::finish).collect();
        ArgSchema { keys: self.keys, columns, rows: self.next - self.first }
    }

    pub(super) fn take(&mut self) -> ArgSchema {
        let empty = self.keys.iter().map(|key| GrowingColumn::new(key.kind)).collect();
        let columns =
            std::mem::replace(&mut self.columns, empty).into_iter().map(GrowingColumn::freeze).collect();
        let rows = self.next - self.first;
        self.first = self.next;
        ArgSchema { keys: self.keys.clone(), columns, rows }
    }
}

impl GrowingColumn {
    fn new(kind: ArgType) -> Self {
        match kind {
            ArgType::Int => Self::Small(Vec::new()),
            ArgType::Float => Self::Float(Vec::new()),
            ArgType::Text | ArgType::Json => Self::Id(Vec::new()),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, value: Arg) {
        match (self, value) {
            (Self::Int(values), Arg::Int(number)) => values.push(number),
            (Self::Float(values), Arg::Float(number)) => values.push(number),
            (Self::Id(values), Arg::Text(id) | Arg::Json(id)) => values.push(id.0),
            (column, Arg::Int(number)) => column.push_int(number),
            // The tree gives each type a column of its own, so nothing else can arrive.
            _ => debug_assert!(false, "a value met a column of another type"),
        }
    }

    #[inline]
    fn push_int(&mut self, number: i64) {
        match self {
            Self::Small(values) => match u32::try_from(number) {
                Ok(small) => values.push(small),
                Err(_) => {
                    let mut wide: Vec<i64> = values.iter().map(|&small| small.into()).collect();
                    wide.push(number);
                    *self = Self::Int(wide);
                }
            },
            Self::Int(values) => values.push(number),
            Self::Float(_) | Self::Id(_) => debug_assert!(false, "a number met a column of another type"),
        }
    }

    fn drop_first(&mut self, count: usize) {
        match self {
            Self::Small(values) | Self::Id(values) => drop(values.drain(..count)),
            Self::Int(values) => drop(values.drain(..count)),
            Self::Float(values) => drop(values.drain(..count)),
        }
    }

    /// Appends whole numbers read from a file.
    pub(crate) fn extend_small(&mut self, numbers: &[u32]) {
        match self {
            Self::Small(values) => values.extend_from_slice(numbers),
            column => numbers.iter().for_each(|&number| column.push_int(number.into())),
        }
    }

    /// Appends whole numbers read from a file.
    pub(crate) fn extend_ints(&mut self, numbers: &[i64]) {
        match self {
            Self::Int(values) => values.extend_from_slice(numbers),
            column => numbers.iter().for_each(|&number| column.push_int(number)),
        }
    }

    /// Appends fractions read from a file.
    pub(crate) fn extend_floats(&mut self, numbers: &[f64]) {
        match self {
            Self::Float(values) => values.extend_from_slice(numbers),
            _ => debug_assert!(false, "a fraction met a column of another type"),
        }
    }

    /// Appends string ids read from a file.
    pub(crate) fn extend_ids(&mut self, ids: &[u32]) {
        match self {
            Self::Id(values) => values.extend_from_slice(ids),
            _ => debug_assert!(false, "a string met a column of another type"),
        }
    }

    fn finish(mut self) -> ArgColumn {
        match &mut self {
            Self::Small(values) | Self::Id(values) => values.shrink_to_fit(),
            Self::Int(values) => values.shrink_to_fit(),
            Self::Float(values) => values.shrink_to_fit(),
        }
        self.freeze()
    }

    fn freeze(self) -> ArgColumn {
        match self {
            Self::Small(values) => ArgColumn::Small(values.into()),
            Self::Int(values) => ArgColumn::Int(values.into()),
            Self::Float(values) => ArgColumn::Float(values.into()),
            Self::Id(values) => ArgColumn::Id(values.into()),
        }
    }
}
