//! Columns of numbers in few bytes: each piece of a column is stored as distances from a base, in the width that they need.
//!
//! Times of a chunk lie within seconds, names are few, ids go on by one: a span that takes 32 bytes in memory, and its args, take
//! about a third of that here. Packing is one pass over the values and one to write them, without tables or a search, so
//! that it costs a recorded program less than the bytes it saves.

mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub(super) use pack::PackedColumns;
pub(super) use unpack::unpack;

/// The column of a chunk that holds all packed columns.
pub(super) const COLUMNS: &str = "columns";

/// The table number of args; those of other tables are their places in `EVENT_TABLES`.
const ARGS: u8 = 9;

/// A chunk may unpack to so many times its packed bytes, beside an allowance for small ones.
pub(super) const MOST_TIMES: usize = 32;
const ALLOWANCE: usize = 1 << 10;

/// Whether columns of so many bytes may be packed into so few.
fn is_fair(unpacked: usize, packed: usize) -> bool {
    unpacked <= MOST_TIMES * (packed + ALLOWANCE)
}

/// How the values of a piece follow from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// The base and what is stored.
    Plain = 0,
    /// The value before, the base and what is stored; the first stands apart.
    Steps = 1,
    /// One more than the value before of a row with the same layout, and what is stored. The first values of each layout, in
    /// the order of their appearance, stand before it.
    Counted = 2,
}

/// The type that a column has when it is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    UInt8 = 0,
    UInt16 = 1,
    UInt32 = 2,
    Int64 = 3,
    Float64 = 4,
    /// Numbers of strings, 32 bits.
    Strings = 5,
}

impl Type {
    const ALL: [Self; 6] =
        [Self::UInt8, Self::UInt16, Self::UInt32, Self::Int64, Self::Float64, Self::Strings];

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&known| known as u8 == code)
    }

    /// Bytes of a value.
    fn width(self) -> usize {
        match self {
            Self::UInt8 => 1,
            Self::UInt16 => 2,
            Self::UInt32 | Self::Strings => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

/// A number that columns hold, as 64 bits.
trait Number: Copy + PartialOrd {
    fn to_bits(self) -> i64;
    /// Whether 64 bits are such a number.
    fn fits(bits: i64) -> bool;
    /// The number; its lowest bits where it does not fit.
    fn from_bits(bits: i64) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Number for $number {
            #[inline]
            fn to_bits(self) -> i64 {
                i64::from(self)
            }
            #[inline]
            fn fits(bits: i64) -> bool {
                Self::try_from(bits).is_ok()
            }
            #[inline]
            fn from_bits(bits: i64) -> Self {
                bits as Self
            }
        }
    )*};
}
numbers!(u8, u16, u32, i64);

impl Number for f64 {
    #[inline]
    fn to_bits(self) -> i64 {
        Self::to_bits(self).cast_signed()
    }
    #[inline]
    fn fits(_bits: i64) -> bool {
        true
    }
    #[inline]
    fn from_bits(bits: i64) -> Self {
        Self::from_bits(bits.cast_unsigned())
    }
}
