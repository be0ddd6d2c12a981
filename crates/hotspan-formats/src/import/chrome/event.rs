//! One event of `traceEvents`, read from its bytes.
//!
//! The fields are scanned in whatever order they come; args go straight into the builder's columns. What the event then
//! adds to the trace is left to [`super::rows`], and events that are not valid JSON to [`super::repair`].

use hashbrown::HashMap;
use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, ArgOrigin, CategoryId, Ident, StringId, TraceBuilder, TrackId};

use super::fields::{Fields, IdField, Key, single, time};
use super::numbers::parse_int;
use super::rows::Open;
use super::scan::{Cursor, RawString, Stop, unescape};

/// Reads events into a builder.
pub(crate) struct EventReader<'b> {
    pub(crate) builder: &'b mut TraceBuilder,
    pub(super) pending: PendingArgs,
    /// Categories seen lately, by their bytes: there are few, and each event has one.
    categories: Vec<(Vec<u8>, CategoryId)>,
    /// Begin events that wait for their end.
    pub(super) open: HashMap<TrackId, Vec<Open>>,
}

impl<'b> EventReader<'b> {
    pub(crate) fn new(builder: &'b mut TraceBuilder) -> Self {
        Self { builder, pending: PendingArgs::default(), categories: Vec::new(), open: HashMap::new() }
    }

    /// Reads the event at the start of `bytes` and returns its length. Nothing is added unless the event is whole.
    pub(crate) fn read(&mut self, bytes: &[u8], offset: u64) -> Result<usize, Stop> {
        self.pending.clear();
        let mut cursor = Cursor::new(bytes);
        let mut fields = Fields::default();
        cursor.expect(b'{')?;
        if cursor.next_token()? == b'}' {
            cursor.at += 1;
        } else {
            loop {
                cursor.next_token()?;
                match Key::usual(&bytes[cursor.at..]) {
                    Some((key, length)) => {
                        cursor.at += length;
                        cursor.next_token()?;
                        self.field(&mut cursor, key, &mut fields, offset)?;
                    }
                    None => {
                        let name = cursor.key()?;
                        cursor.next_token()?;
                        match Key::of(name.bytes) {
                            Some(key) => self.field(&mut cursor, key, &mut fields, offset)?,
                            None if name.escaped => self.other(&mut cursor, &unescape(name.bytes), offset)?,
                            None => self.other(&mut cursor, name.bytes, offset)?,
                        }
                    }
                }
                match cursor.next_token()? {
                    b',' => cursor.at += 1,
                    b'}' => {
                        cursor.at += 1;
                        break;
                    }
                    _ => return Err(Stop::Bad),
                }
            }
        }
        let length = cursor.at;
        self.add(&fields, &bytes[..length], offset);
        Ok(length)
    }

    #[inline]
    fn field<'a>(
        &mut self,
        cursor: &mut Cursor<'a>,
        key: Key,
        fields: &mut Fields<'a>,
        offset: u64,
    ) -> Result<(), Stop> {
        let first = cursor.peek()?;
        match key {
            Key::Phase if first == b'"' => fields.phase = single(cursor.string()?),
            Key::Name if first == b'"' => fields.name = Some(cursor.string()?),
            Key::Category if first == b'"' => fields.category = Some(cursor.string()?),
            Key::Process => fields.process = Some(self.ident(cursor, offset)?),
            Key::Thread => fields.thread = Some(self.ident(cursor, offset)?),
            Key::Time => fields.time = Some(time(cursor)?),
            Key::Duration => fields.duration = Some(time(cursor)?),
            Key::Scope if first == b'"' => fields.scope = single(cursor.string()?),
            Key::Binding if first == b'"' => fields.binds_enclosing = cursor.string()?.bytes == b"e",
            Key::Id => {
                fields.id = Some(match cursor.short_int() {
                    Some(number) => IdField::Int(number),
                    None => match first {
                        b'"' => IdField::Text(cursor.string()?),
                        _ => IdField::Text(RawString { bytes: cursor.value()?, escaped: false }),
                    },
                });
            }
            Key::Args if first == b'{' => {
                let start = cursor.at;
                self.args(cursor, offset)?;
                fields.args = Some(&cursor.bytes[start..cursor.at]);
            }
            // A known key with a value of an unknown kind.
            Key::Phase => self.other(cursor, b"ph", offset)?,
            Key::Name => self.other(cursor, b"name", offset)?,
            Key::Category => self.other(cursor, b"cat", offset)?,
            Key::Scope => self.other(cursor, b"s", offset)?,
            Key::Binding => self.other(cursor, b"bp", offset)?,
            Key::Args => self.other(cursor, b"args", offset)?,
        }
        Ok(())
    }

    /// A key that means nothing to us is kept beside the args.
    #[cold]
    fn other(&mut self, cursor: &mut Cursor<'_>, key: &[u8], offset: u64) -> Result<(), Stop> {
        let value = self.arg(cursor, offset)?;
        self.builder.push_arg(&mut self.pending, ArgOrigin::Event, key, value);
        Ok(())
    }

    fn args(&mut self, cursor: &mut Cursor<'_>, offset: u64) -> Result<(), Stop> {
        cursor.at += 1;
        if cursor.next_token()? == b'}' {
            cursor.at += 1;
            return Ok(());
        }
        loop {
            let key = cursor.key()?;
            cursor.next_token()?;
            let value = self.arg(cursor, offset)?;
            if key.escaped {
                let key = unescape(key.bytes);
                self.builder.push_arg(&mut self.pending, ArgOrigin::Args, &key, value);
            } else {
                self.builder.push_arg(&mut self.pending, ArgOrigin::Args, key.bytes, value);
            }
            match cursor.next_token()? {
                b',' => cursor.at += 1,
                b'}' => {
                    cursor.at += 1;
                    return Ok(());
                }
                _ => return Err(Stop::Bad),
            }
        }
    }

    /// One argument value.
    #[inline]
    fn arg(&mut self, cursor: &mut Cursor<'_>, offset: u64) -> Result<Arg, Stop> {
        let at = offset + cursor.at as u64;
        if let Some(number) = cursor.short_int() {
            return Ok(Arg::Int(number));
        }
        Ok(match cursor.peek()? {
            b'"' => {
                let text = cursor.string()?;
                Arg::Text(self.intern(text, at))
            }
            b'-' | b'0'..=b'9' => {
                let text = cursor.number()?;
                match parse_int(text) {
                    Some(number) => Arg::Int(number),
                    None => self.fraction(text, at),
                }
            }
            _ => {
                let text = cursor.value()?;
                Arg::Json(self.builder.intern_bytes(text, at))
            }
        })
    }

    /// A number that is not a whole one of 64 bits: a fraction, or kept as text when it would lose digits or overflow.
    fn fraction(&mut self, text: &[u8], offset: u64) -> Arg {
        let whole = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match number {
            Some(number) if number.is_finite() && !whole => Arg::Float(number),
            _ => Arg::Json(self.builder.intern_bytes(text, offset)),
        }
    }

    #[inline]
    pub(super) fn intern(&mut self, text: RawString<'_>, offset: u64) -> StringId {
        if text.escaped {
            self.builder.intern_bytes(&unescape(text.bytes), offset)
        } else {
            self.builder.intern_bytes(text.bytes, offset)
        }
    }

    /// A process or thread id; "25738" is 25738.
    #[inline]
    fn ident(&mut self, cursor: &mut Cursor<'_>, offset: u64) -> Result<Ident, Stop> {
        if let Some(number) = cursor.short_int() {
            return Ok(Ident::Int(number));
        }
        let raw = match cursor.peek()? {
            b'"' => cursor.string()?,
            b'-' | b'0'..=b'9' => RawString { bytes: cursor.number()?, escaped: false },
            _ => RawString { bytes: cursor.value()?, escaped: false },
        };
        Ok(match parse_int(raw.bytes) {
            Some(number) => Ident::Int(number),
            None => Ident::Text(self.intern(raw, offset)),
        })
    }

    #[inline]
    pub(super) fn category(&mut self, text: Option<RawString<'_>>, offset: u64) -> CategoryId {
        let text = text.unwrap_or(RawString { bytes: b"", escaped: false });
        if let Some((_, id)) = self.categories.iter().find(|(known, _)| known == text.bytes) {
            return *id;
        }
        let name = self.intern(text, offset);
        let id = self.builder.category_of(name);
        if self.categories.len() < 32 && !text.escaped {
            self.categories.push((text.bytes.to_vec(), id));
        }
        id
    }
}
