//! What a table is made of: columns of plain numbers, growing while built, shared once frozen.
//!
//! A frozen [`Column`] is reference-counted Arrow memory, so handing it to pyarrow, polars or DuckDB copies nothing.
//! A [`Cell`] is a typed id or unit together with the number that stores it.

use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::{ArrowNativeType, ScalarBuffer};

use crate::ids::{ArgSchemaId, CategoryId, FrameId, StackId, StringId, TrackId};
use crate::units::{Bytes, Duration, Timestamp};

/// A frozen column of plain numbers.
pub(crate) type Column<T> = ScalarBuffer<<T as Cell>::Native>;

/// A typed value that a column stores as a plain number.
pub(crate) trait Cell: Copy {
    /// The stored number.
    type Native: ArrowNativeType;
    /// Its Arrow type.
    type Arrow: ArrowPrimitiveType<Native = Self::Native>;
    fn to_native(self) -> Self::Native;
    fn from_native(native: Self::Native) -> Self;
}

macro_rules! cells {
    ($($name:ident => $native:ty, $arrow:ident;)*) => {$(
        impl Cell for $name {
            type Native = $native;
            type Arrow = arrow_array::types::$arrow;
            fn to_native(self) -> $native {
                self.0
            }
            fn from_native(native: $native) -> Self {
                Self(native)
            }
        }
    )*};
}

cells! {
    Timestamp => i64, Int64Type;
    Duration => i64, Int64Type;
    Bytes => i64, Int64Type;
    StringId => u32, UInt32Type;
    TrackId => u32, UInt32Type;
    FrameId => u32, UInt32Type;
    StackId => u32, UInt32Type;
    CategoryId => u16, UInt16Type;
    ArgSchemaId => u16, UInt16Type;
}

macro_rules! plain_cells {
    ($($native:ty, $arrow:ident;)*) => {$(
        impl Cell for $native {
            type Native = $native;
            type Arrow = arrow_array::types::$arrow;
            fn to_native(self) -> $native {
                self
            }
            fn from_native(native: $native) -> Self {
                native
            }
        }
    )*};
}

plain_cells! {
    i64, Int64Type;
    u32, UInt32Type;
    u8, UInt8Type;
}

/// Declares how the variants of an enum are stored: by their own numbers, of which unknown ones mean the last.
macro_rules! codes {
    ($($name:ident { $($code:literal => $variant:ident,)* _ => $other:ident })*) => {$(
        impl $crate::table::Cell for $name {
            type Native = u8;
            type Arrow = arrow_array::types::UInt8Type;
            fn to_native(self) -> u8 {
                self as u8
            }
            fn from_native(native: u8) -> Self {
                match native {
                    $($code => Self::$variant,)*
                    _ => Self::$other,
                }
            }
        }
    )*};
}
pub(crate) use codes;

/// A table that grows: every way in and out of it.
pub(crate) trait Growing {
    /// A row, as a tuple of its cells.
    type Row;
    /// The table once it is frozen.
    type Frozen;

    fn push(&mut self, row: Self::Row);

    fn row(&self, index: usize) -> Self::Row;

    /// Freezes the columns; their memory moves, it is not copied.
    fn finish(self) -> Self::Frozen;

    /// Moves the rows out and leaves none; nothing is copied.
    fn take(&mut self) -> Self::Frozen;

    /// A frozen copy of the rows from `first` on.
    fn copy_from(&self, first: usize) -> Self::Frozen;

    fn len(&self) -> usize;

    /// Appends the rows of a struct array read from a file. `None`: a column is missing or has another type.
    fn extend_from_arrow(&mut self, rows: &arrow_array::StructArray) -> Option<()>;
}

/// A frozen table: its rows, one or several.
pub(crate) trait Frozen {
    /// A row, as a tuple of its cells.
    type Row;

    fn cells(&self, index: usize) -> Self::Row;

    /// A copy of these rows.
    fn gather(&self, rows: &[usize]) -> Self;
}

/// Declares a table: the struct of growing columns, the struct of frozen ones, and the moves between them.
///
/// One line per column is all a new column needs: building, freezing, reading, the file format and its size in
/// memory follow from the declaration.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $table:ident, $builder:ident { $($(#[$column_doc:meta])* $column:ident: $cell:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $table {
            $(pub(crate) $column: $crate::table::Column<$cell>,)*
        }

        #[derive(Clone, Debug, Default)]
        pub(crate) struct $builder {
            $(pub(crate) $column: Vec<<$cell as $crate::table::Cell>::Native>,)*
        }

        impl $crate::table::Growing for $builder {
            type Row = ($($cell,)*);
            type Frozen = $table;

            fn push(&mut self, row: Self::Row) {
                let ($($column,)*) = row;
                $(self.$column.push($crate::table::Cell::to_native($column));)*
            }

            fn row(&self, index: usize) -> Self::Row {
                ($(<$cell as $crate::table::Cell>::from_native(self.$column[index]),)*)
            }

            fn finish(self) -> $table {
                $(let mut $column = self.$column; $column.shrink_to_fit();)*
                $table { $($column: $column.into(),)* }
            }

            fn take(&mut self) -> $table {
                $table { $($column: std::mem::take(&mut self.$column).into(),)* }
            }

            fn copy_from(&self, first: usize) -> $table {
                $table { $($column: self.$column[first..].to_vec().into(),)* }
            }

            fn len(&self) -> usize {
                let lengths = [$(self.$column.len(),)*];
                lengths[0]
            }

            fn extend_from_arrow(&mut self, rows: &arrow_array::StructArray) -> Option<()> {
                use arrow_array::cast::AsArray;
                $(let $column = rows
                    .column_by_name(stringify!($column))?
                    .as_primitive_opt::<<$cell as $crate::table::Cell>::Arrow>()?;)*
                $(self.$column.extend_from_slice($column.values());)*
                Some(())
            }
        }

        impl $crate::table::Frozen for $table {
            type Row = ($($cell,)*);

            fn cells(&self, index: usize) -> Self::Row {
                ($(<$cell as $crate::table::Cell>::from_native(self.$column[index]),)*)
            }

            fn gather(&self, rows: &[usize]) -> Self {
                Self { $($column: rows.iter().map(|&row| self.$column[row]).collect::<Vec<_>>().into(),)* }
            }
        }

        impl $table {
            /// How many rows there are.
            #[must_use]
            pub fn len(&self) -> usize {
                let lengths = [$(self.$column.len(),)*];
                lengths[0]
            }

            /// Whether there are no rows.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Bytes of memory held.
            #[must_use]
            pub fn heap_bytes(&self) -> usize {
                0 $(+ self.$column.inner().capacity())*
            }

            /// The fields of the file's schema.
            pub(crate) fn fields() -> Vec<arrow_schema::Field> {
                use arrow_array::types::ArrowPrimitiveType;
                vec![$(arrow_schema::Field::new(
                    stringify!($column),
                    <<$cell as $crate::table::Cell>::Arrow as ArrowPrimitiveType>::DATA_TYPE,
                    false,
                ),)*]
            }

            /// Rows `from..to` as Arrow columns that share this table's memory.
            pub(crate) fn slice_columns(&self, from: usize, to: usize) -> Vec<arrow_array::ArrayRef> {
                let to = to.min(self.len());
                let length = to.saturating_sub(from);
                vec![$(std::sync::Arc::new(
                    arrow_array::PrimitiveArray::<<$cell as $crate::table::Cell>::Arrow>::new(
                        self.$column.slice(from.min(to), length),
                        None,
                    ),
                ) as arrow_array::ArrayRef,)*]
            }
        }
    };
}
pub(crate) use table;
