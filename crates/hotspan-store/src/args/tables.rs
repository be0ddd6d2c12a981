//! Args read by table and row, whether their tables are frozen or still grow.

use crate::args::growing::GrowingArgSchema;
use crate::args::{Arg, ArgKey, ArgSchema};

/// The arg schemas of a trace, or those of a recording that is being read.
#[derive(Clone, Copy)]
pub(crate) enum ArgTables<'a> {
    Frozen(&'a [ArgSchema]),
    Growing(&'a [GrowingArgSchema]),
}

impl<'a> ArgTables<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Frozen(tables) => tables.len(),
            Self::Growing(tables) => tables.len(),
        }
    }

    pub(crate) fn keys(self, table: usize) -> &'a [ArgKey] {
        match self {
            Self::Frozen(tables) => tables[table].keys(),
            Self::Growing(tables) => &tables[table].keys,
        }
    }

    #[inline]
    pub(crate) fn value(self, table: usize, position: usize, row: u32) -> Option<Arg> {
        match self {
            Self::Frozen(tables) => tables[table].value(position, row),
            Self::Growing(tables) => tables[table].value(position, row),
        }
    }
}
