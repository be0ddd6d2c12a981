//! Kineto and Chrome traces: JSON with a `traceEvents` list, or the bare list.
//!
//! The JSON is never held as a tree, nor whole: a window slides over it, each event becomes a row as it passes, and
//! memory is what the trace itself takes. [`scan`] knows JSON, [`fields`] and [`event`] know events, [`repair`] knows what Kineto
//! gets wrong; this file walks the top level.

mod event;
mod fields;
mod repair;
mod scan;
mod window;

use std::io::Read;

use hotspan_store::{Loss, TraceBuilder};

use self::event::EventReader;
use self::scan::{Cursor, Stop, unescape};
use self::window::{Fill, Window};
use crate::error::ImportError;
use crate::import::{Importer, Sniff};
use crate::input::Input;

/// The importer of Kineto and Chrome traces.
pub struct Chrome;

impl Importer for Chrome {
    fn name(&self) -> &'static str {
        "Chrome trace"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') if memchr::memmem::find(head, b"\"traceEvents\"").is_some() => Sniff::Yes,
            Some(b'{' | b'[') => Sniff::Maybe,
            _ => Sniff::No,
        }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let bytes = read_json(&mut *input, builder, window::START)?;
        if input.broke().is_some() && builder.losses.count(Loss::TruncatedFile) == 0 {
            builder.losses.add(Loss::TruncatedFile, Some(bytes));
        }
        let kineto =
            ["schemaVersion", "deviceProperties"].iter().any(|key| builder.metadata.get(key).is_some());
        builder.source.format = if kineto { "Kineto trace" } else { "Chrome trace" }.to_owned();
        builder.source.bytes = bytes;
        Ok(())
    }
}

/// Reads the JSON through a window of the given size and returns how long it was.
fn read_json(content: impl Read, builder: &mut TraceBuilder, window: usize) -> Result<u64, ImportError> {
    let mut reader = TopLevel { window: Window::new(content, window), events: EventReader::new(builder) };
    reader.read()?;
    let bytes = reader.window.offset();
    reader.events.finish();
    Ok(bytes)
}

const BREAKS_OFF: &str = "the file breaks off before its events";

struct TopLevel<'b, R> {
    window: Window<R>,
    events: EventReader<'b>,
}

/// How a list of events ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// With its bracket.
    Closed,
    /// With the content.
    CutOff,
}

impl<R: Read> TopLevel<'_, R> {
    fn read(&mut self) -> Result<(), ImportError> {
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

    /// The events, after the opening bracket.
    fn read_events(&mut self) -> Result<Ended, ImportError> {
        let mut refused = 0_u64;
        loop {
            match self.token()? {
                Some(b'{') => self.read_event()?,
                Some(b',') => self.window.consume(1),
                Some(b']') => {
                    self.window.consume(1);
                    return Ok(Ended::Closed);
                }
                Some(_) => {
                    // A number or list where an event should be. A file of nothing else is no trace.
                    refused += 1;
                    self.lose(Loss::NotAnEvent);
                    if refused > 1_000 && self.events.builder.event_count() == 0 {
                        return Err(self.not_a_trace("the list holds values that are not events"));
                    }
                    match self.scan(|cursor| cursor.value().map(<[u8]>::len)) {
                        Ok(Some(_)) => {}
                        Ok(None) => self.resynchronise()?,
                        Err(error) => return Err(error),
                    }
                }
                None => {
                    self.lose(Loss::TruncatedFile);
                    return Ok(Ended::CutOff);
                }
            }
        }
    }

    /// One event; the window begins with its brace.
    fn read_event(&mut self) -> Result<(), ImportError> {
        loop {
            let offset = self.window.offset();
            match self.events.read(self.window.bytes(), offset) {
                Ok(length) => {
                    self.window.consume(length);
                    return Ok(());
                }
                Err(Stop::NeedMore) => match self.window.fill()? {
                    Fill::More => {}
                    Fill::End => {
                        // Either the file is cut off here, or an unescaped quote swallowed the rest of it.
                        return self.repair_event(true);
                    }
                    Fill::Full => {
                        self.lose(Loss::OversizedEvent);
                        return self.resynchronise();
                    }
                },
                Err(Stop::Bad) => return self.repair_event(false),
                Err(Stop::TooDeep) => {
                    self.lose(Loss::OversizedEvent);
                    return self.resynchronise();
                }
            }
        }
    }

    /// An event that is not valid JSON: read as meant, or skip to the next.
    fn repair_event(&mut self, mut ended: bool) -> Result<(), ImportError> {
        loop {
            // A broken event must not swallow those after it: look no further than the next one begins.
            let bytes = self.window.bytes();
            let next = bytes.get(1..).and_then(|rest| repair::next_event(rest).ok());
            let (limit, bounded) = next.map_or((bytes.len(), ended), |next| (next + 1, true));
            match repair::repair(&bytes[..limit], bounded) {
                Ok((text, length, repairs)) => {
                    let offset = self.window.offset();
                    if self.events.read(&text, offset).is_ok() {
                        self.count_repairs(repairs);
                        self.window.consume(length);
                        return Ok(());
                    }
                }
                Err(Stop::NeedMore) => match self.window.fill()? {
                    Fill::More => continue,
                    Fill::End => {
                        ended = true;
                        continue;
                    }
                    Fill::Full => {}
                },
                Err(_) => {}
            }
            // Cut off in mid-event: the end of the list will say so.
            if next.is_some() || !ended {
                self.lose(Loss::BadEvent);
            }
            return self.resynchronise();
        }
    }

    /// Skips to the next event after the one the window begins with, or to the end of the content.
    fn resynchronise(&mut self) -> Result<(), ImportError> {
        self.window.consume(1);
        loop {
            let bytes = self.window.bytes();
            match repair::next_event(bytes) {
                Ok(next) => {
                    self.window.consume(next);
                    return Ok(());
                }
                Err(keep) => {
                    let skip = bytes.len() - keep;
                    self.window.consume(skip);
                    match self.window.fill()? {
                        Fill::More => {}
                        Fill::Full => self.window.consume(1),
                        Fill::End => {
                            self.window.consume(keep);
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// Runs a scan over the window, with more bytes as long as it asks for them, and consumes what it took.
    /// `None`: the content is broken or ends here.
    fn scan<T>(
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
    fn token(&mut self) -> Result<Option<u8>, ImportError> {
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

    fn lose(&mut self, loss: Loss) {
        let offset = self.window.offset();
        self.events.builder.losses.add(loss, Some(offset));
    }

    fn count_repairs(&mut self, repairs: repair::Repairs) {
        let offset = Some(self.window.offset());
        let losses = &mut self.events.builder.losses;
        if repairs.strings > 0 {
            losses.add_many(Loss::RepairedString, repairs.strings, offset);
        }
        if repairs.numbers > 0 {
            losses.add_many(Loss::NotANumber, repairs.numbers, offset);
        }
    }

    fn not_a_trace(&self, reason: &str) -> ImportError {
        ImportError::NotATrace { reason: reason.to_owned(), offset: self.window.offset() }
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::first_difference;

    use super::*;

    const TRACE: &str = r#"{"schemaVersion": 1, "note": "a \"quoted\" word", "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 10.5, "dur": 2.25,
         "args": {"External id": 3, "Input Dims": [[2, 3], []], "Concrete Inputs": ["", "1"]}},
        {"ph": "X", "cat": "kernel", "name": "broken "quote"", "pid": 0, "tid": 7, "ts": 11, "dur": 1, "args": {}},
        {"ph": "B", "name": "begin", "pid": 7, "tid": 7, "ts": 12}, {"ph": "E", "pid": 7, "tid": 7, "ts": 13},
        {"ph": "s", "id": 3, "pid": 7, "tid": 7, "ts": 10.5, "cat": "ac2g", "name": "ac2g"}
        ], "baseTimeNanoseconds": 1000, "traceName": "x"}"#;

    fn read(text: &[u8], window: usize) -> hotspan_store::Trace {
        let mut builder = TraceBuilder::new();
        read_json(text, &mut builder, window).unwrap();
        builder.finish()
    }

    #[test]
    fn the_size_of_the_window_does_not_matter() {
        let whole = read(TRACE.as_bytes(), TRACE.len() * 2);
        assert_eq!(whole.spans().len(), 3);
        assert_eq!(whole.losses().count(Loss::RepairedString), 1);
        for size in 1..TRACE.len() {
            let small = read(TRACE.as_bytes(), size);
            assert_eq!(first_difference(&whole, &small), None, "window of {size} bytes");
            assert_eq!(whole.losses(), small.losses(), "window of {size} bytes");
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_what_came_before() {
        let whole = read(TRACE.as_bytes(), 64);
        for cut in 0..TRACE.len() {
            let mut builder = TraceBuilder::new();
            if read_json(&TRACE.as_bytes()[..cut], &mut builder, 64).is_ok() {
                assert_ne!(builder.losses.count(Loss::TruncatedFile), 0, "cut at {cut}");
            }
            let spans = builder.finish();
            assert!(spans.spans().len() <= whole.spans().len(), "cut at {cut}");
        }
    }
}
