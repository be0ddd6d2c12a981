//! The fields of an event: which keys there are, and what was found under them before it is made a row.

use hotspan_store::Ident;

use super::scan::{Cursor, RawString, Stop};

/// The fields of an event, as slices of the content.
#[derive(Default)]
pub(super) struct Fields<'a> {
    pub(super) phase: Option<u8>,
    pub(super) name: Option<RawString<'a>>,
    pub(super) category: Option<RawString<'a>>,
    pub(super) process: Option<Ident>,
    pub(super) thread: Option<Ident>,
    pub(super) time: Option<Time<'a>>,
    pub(super) duration: Option<Time<'a>>,
    pub(super) scope: Option<u8>,
    pub(super) id: Option<IdField<'a>>,
    pub(super) binds_enclosing: bool,
    pub(super) args: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
pub(super) enum IdField<'a> {
    Int(i64),
    Text(RawString<'a>),
}

/// A time: nanoseconds where it was written plainly, else its text.
#[derive(Clone, Copy)]
pub(super) enum Time<'a> {
    Nanos(i64),
    Text(&'a [u8]),
}

/// The keys every event may have.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Phase,
    Name,
    Category,
    Process,
    Thread,
    Time,
    Duration,
    Scope,
    Binding,
    Id,
    Args,
}

impl Key {
    pub(super) fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"ph" => Self::Phase,
            b"name" => Self::Name,
            b"cat" => Self::Category,
            b"pid" => Self::Process,
            b"tid" => Self::Thread,
            b"ts" => Self::Time,
            b"dur" => Self::Duration,
            b"s" => Self::Scope,
            b"bp" => Self::Binding,
            b"id" => Self::Id,
            b"args" => Self::Args,
            _ => return None,
        })
    }

    /// The key at the start of `bytes` when it is written as every profiler writes it, and where its value begins: all
    /// such keys fit one word, quotes, colon and space included.
    #[inline]
    pub(super) fn usual(bytes: &[u8]) -> Option<(Self, usize)> {
        const fn word(text: &[u8; 8]) -> u64 {
            u64::from_le_bytes(*text)
        }
        const PHASE: u64 = word(b"\"ph\": \0\0");
        const TIME: u64 = word(b"\"ts\": \0\0");
        const ID: u64 = word(b"\"id\": \0\0");
        const PROCESS: u64 = word(b"\"pid\": \0");
        const THREAD: u64 = word(b"\"tid\": \0");
        const CATEGORY: u64 = word(b"\"cat\": \0");
        const DURATION: u64 = word(b"\"dur\": \0");
        const NAME: u64 = word(b"\"name\": ");
        const ARGS: u64 = word(b"\"args\": ");
        let found = u64::from_le_bytes(*bytes.first_chunk()?);
        match found & 0xff_ffff_ffff_ffff {
            PROCESS => return Some((Self::Process, 7)),
            THREAD => return Some((Self::Thread, 7)),
            CATEGORY => return Some((Self::Category, 7)),
            DURATION => return Some((Self::Duration, 7)),
            _ => {}
        }
        match found & 0xffff_ffff_ffff {
            PHASE => return Some((Self::Phase, 6)),
            TIME => return Some((Self::Time, 6)),
            ID => return Some((Self::Id, 6)),
            _ => {}
        }
        match found {
            NAME => Some((Self::Name, 8)),
            ARGS => Some((Self::Args, 8)),
            _ => None,
        }
    }
}

/// The one byte of a one-byte string.
pub(super) fn single(text: RawString<'_>) -> Option<u8> {
    match text.bytes {
        [byte] => Some(*byte),
        _ => None,
    }
}

/// A time, as a number or as a string that holds one.
#[inline]
pub(super) fn time<'a>(cursor: &mut Cursor<'a>) -> Result<Time<'a>, Stop> {
    if let Some(nanos) = cursor.short_micros() {
        return Ok(Time::Nanos(nanos));
    }
    Ok(Time::Text(match cursor.peek()? {
        b'"' => cursor.string()?.bytes,
        _ => cursor.value()?,
    }))
}
