//! The list of events: one after another, and on to the next where one cannot be read.

use std::io::Read;

use hotspan_store::Loss;

use super::repair;
use super::scan::Stop;
use super::top_level::TopLevel;
use super::window::Fill;
use crate::error::ImportError;

/// How a list of events ended.
#[derive(PartialEq, Eq)]
pub(super) enum Ended {
    /// With its bracket.
    Closed,
    /// With the content.
    CutOff,
}

impl<R: Read> TopLevel<'_, R> {
    /// The events, after the opening bracket.
    pub(super) fn read_events(&mut self) -> Result<Ended, ImportError> {
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
            let after = self.window.offset() + 1;
            let next = bytes.get(1..).and_then(|rest| self.next_event.find(rest, after));
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
            match self.next_event.find_or_keep(bytes, self.window.offset()) {
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
}
