//! Typed ids: a row number that knows which table it belongs to.

use crate::string_table::StringTable;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($native:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $native);

        impl $name {
            /// The row number.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a row number; rows beyond the id's range cannot exist because tables refuse to grow there.
            #[must_use]
            pub fn at(index: usize) -> Self {
                debug_assert!(index <= <$native>::MAX as usize);
                Self(index as $native)
            }
        }

        impl From<$native> for $name {
            fn from(row: $native) -> Self {
                Self(row)
            }
        }
    )*};
}

ids! {
    /// An interned string.
    StringId(u32);
    /// A row of [`crate::Spans`].
    SpanId(u32);
    /// A process, or what a trace calls one (a GPU, "Spans", "Traces").
    ProcessId(u32);
    /// A thread of a process or a stream of a device.
    TrackId(u32);
    /// A row of [`crate::Frames`].
    FrameId(u32);
    /// A row of [`crate::Stacks`].
    StackId(u32);
    /// A category as the file spells it; [`crate::Category`] is what it means.
    CategoryId(u16);
    /// A distinct list of argument keys.
    ArgSchemaId(u16);
}

impl FrameId {
    /// No frame.
    pub const NONE: Self = Self(u32::MAX);
}

impl StackId {
    /// The empty stack.
    pub const NONE: Self = Self(u32::MAX);
}

/// A process or thread id as traces write them: mostly numbers, sometimes words ("Spans").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ident {
    /// An operating system id, a device index, a stream number.
    Int(i64),
    /// A word.
    Text(StringId),
}

impl Ident {
    /// The id, where it is a number.
    #[must_use]
    pub fn number(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            Self::Text(_) => None,
        }
    }

    /// The id as a person reads it.
    #[must_use]
    pub fn display(self, strings: &StringTable) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::Text(text) => strings.get(text).to_owned(),
        }
    }
}
