//! The top level of the JSON: the bare list of events, or an object with metadata and the list somewhere among it.
//!
//! The events themselves are left to [`super::event_list`].

use std::io::Read;

use hotspan_store::Loss;

use super::event::EventReader;
use super::event_list::Ended;
use super::next_event::NextEvent;
use super::repair;
use super::scan::{Cursor, Stop, unescape};
use super::window::{Fill, Window};
use crate::error::ImportError;

const BREAKS_OFF: &str = "the file breaks off before its events";

pub(super) struct TopLevel<'b, R> {
    pub(super) window: Window<R>,
    pub(super) events: EventReader<'b>,
    pub(super) next_event: NextEvent,
}

impl<'b, R: Read> TopLevel<'b, R> {
    pub(super) fn new(window: Window<R>, events: EventReader<'b>) -> Self {
        Self { window, events, next_event: NextEvent::default() }
    }

    pub(super) fn read(&mut self) -> Result<(), ImportError> {
        self.window.fill()?;
        if self.window.bytes().starts_with(b"\xef\xbb\xbf") {
            self.window.consume(3);
        }
        match self.token()? {
            Some(b'[') => {
                self.window.consume(1);
                if self.read_events()? == Ended::Closed && self.token()?.is_some() {
                    self.lose(Loss::TrailingData);
                    self.drain()?;
                }
                if self.events.builder.event_count() == 0 && !self.events.builder.losses.is_empty() {
                    return Err(self.not_a_trace("the list holds no event that could be read"));
                }
                Ok(())
            }
            Some(b'{') => {
                self.window.consume(1);
                self.read_object()
            }
            _ => Err(self.not_a_trace("it is neither an object nor a list")),
        }
    }

    /// The keys of the top-level object: metadata, and `traceEvents` somewhere among it.
    fn read_object(&mut self) -> Result<(), ImportError> {
        let mut found = false;
        let mut keys: Vec<String> = Vec::new();
        loop {
            match self.token()? {
                Some(b'}') => {
                    self.window.consume(1);
                    if self.token()?.is_some() {
                        self.lose(Loss::TrailingData);
                        self.drain()?;
                    }
                    break;
                }
                Some(b',') => {
                    self.window.consume(1);
                    continue;
                }
                Some(b'"') => {}
                Some(_) if found => {
                    self.lose(Loss::TrailingData);
                    self.drain()?;
                    break;
                }
                Some(_) => return Err(self.not_a_trace("a key was expected")),
                None if found => {
                    self.lose(Loss::TruncatedFile);
                    break;
                }
                None => return Err(self.not_a_trace(BREAKS_OFF)),
            }
            let Some(key) = self.scan(|cursor| cursor.key().map(|key| unescape(key.bytes)))? else {
                if found {
                    self.lose(Loss::TruncatedFile);
                    break;
                }
                return Err(self.not_a_trace(BREAKS_OFF));
            };
            let key = String::from_utf8_lossy(&key).into_owned();
            let token = self.token()?;
            if key == "traceEvents" && token == Some(b'[') {
                self.window.consume(1);
                found = true;
                if self.read_events()? == Ended::CutOff {
                    break;
                }
            } else if !self.read_metadata(&key)? {
                break;
            }
            if keys.len() < 8 {
                keys.push(key);
            }
        }
        if found {
            return Ok(());
        }
        if self.events.builder.losses.count(Loss::TruncatedFile) > 0 {
            return Err(self.not_a_trace(BREAKS_OFF));
        }
        let seen =
            if keys.is_empty() { "no keys".to_owned() } else { format!("the keys {}", keys.join(", ")) };
        let chakra = keys.iter().any(|key| key == "nodes") && keys.iter().any(|key| key == "schema");
        let reason = if chakra {
            format!("it has {seen}: a PyTorch execution trace (Chakra), which holds no times")
        } else {
            format!("it has no \"traceEvents\" list but {seen}")
        };
        Err(self.not_a_trace(&reason))
    }

    /// One metadata value; `false` when the content breaks off in it.
    fn read_metadata(&mut self, key: &str) -> Result<bool, ImportError> {
        let offset = self.window.offset();
        let value = match self.scan(|cursor| {
            cursor.next_token()?;
            cursor.value().map(<[u8]>::to_vec)
        }) {
            Ok(Some(value)) => value,
            Ok(None) => match self.repair_metadata()? {
                Some(value) => value,
                None => {
                    self.lose(Loss::TruncatedFile);
                    self.drain()?;
                    return Ok(false);
                }
            },
            Err(error) => return Err(error),
        };
        let builder = &mut *self.events.builder;
        let text = String::from_utf8_lossy(&value);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            builder.losses.add(Loss::InvalidUtf8, Some(offset));
        }
        match (key, text.trim().parse::<i64>()) {
            ("baseTimeNanoseconds", Ok(base)) => builder.clock.base_unix = Some(base),
            _ => builder.metadata.set(key, &text),
        }
        Ok(true)
    }

    /// A metadata value that is not valid JSON, rewritten; `None` when even that fails.
    fn repair_metadata(&mut self) -> Result<Option<Vec<u8>>, ImportError> {
        loop {
            match repair::repair(self.window.bytes(), false) {
                Ok((value, length, repairs)) => {
                    self.count_repairs(repairs);
                    self.window.consume(length);
                    return Ok(Some(value));
                }
                Err(Stop::NeedMore) if self.window.fill()? == Fill::More => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Runs a scan over the window, with more bytes as long as it asks for them, and consumes what it took.
    /// `None`: the content is broken or ends here.
    pub(super) fn scan<T>(
        &mut self,
        mut scan: impl FnMut(&mut Cursor<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, ImportError> {
        loop {
            let mut cursor = Cursor::new(self.window.bytes());
            match scan(&mut cursor) {
                Ok(found) => {
                    let length = cursor.at;
                    self.window.consume(length);
                    return Ok(Some(found));
                }
                Err(Stop::NeedMore) => match self.window.fill()? {
                    Fill::More => {}
                    Fill::End => return Ok(None),
                    Fill::Full => {
                        self.lose(Loss::OversizedMetadata);
                        return Err(self.not_a_trace("a single value is larger than 64 MB"));
                    }
                },
                Err(Stop::Bad) => return Ok(None),
                Err(Stop::TooDeep) => {
                    return Err(self.not_a_trace("values are nested deeper than 100 levels"));
                }
            }
        }
    }

    /// The next byte that is not white space; `None` at the end.
    pub(super) fn token(&mut self) -> Result<Option<u8>, ImportError> {
        loop {
            let bytes = self.window.bytes();
            match bytes.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(space) => {
                    let token = bytes[space];
                    self.window.consume(space);
                    return Ok(Some(token));
                }
                None => {
                    let length = bytes.len();
                    self.window.consume(length);
                    if self.window.fill()? != Fill::More {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads to the end, so that the count of bytes is right and a broken end is noticed.
    fn drain(&mut self) -> Result<(), ImportError> {
        loop {
            let length = self.window.bytes().len();
            self.window.consume(length);
            if self.window.fill()? != Fill::More {
                return Ok(());
            }
        }
    }

    pub(super) fn lose(&mut self, loss: Loss) {
        let offset = self.window.offset();
        self.events.builder.losses.add(loss, Some(offset));
    }

    pub(super) fn count_repairs(&mut self, repairs: repair::Repairs) {
        let offset = Some(self.window.offset());
        let losses = &mut self.events.builder.losses;
        if repairs.strings > 0 {
            losses.add_many(Loss::RepairedString, repairs.strings, offset);
        }
        if repairs.numbers > 0 {
            losses.add_many(Loss::NotANumber, repairs.numbers, offset);
        }
    }

    pub(super) fn not_a_trace(&self, reason: &str) -> ImportError {
        ImportError::NotATrace { reason: reason.to_owned(), offset: self.window.offset() }
    }
}
