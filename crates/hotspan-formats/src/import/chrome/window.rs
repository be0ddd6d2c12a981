//! A sliding window over the content: the parser sees a slice, and asks for more when an event does not end in it.

use std::io::{self, Read};

/// Where the window begins; small enough for the cache, large enough that events rarely straddle its end.
pub(crate) const START: usize = 256 << 10;
/// The largest single event or metadata value.
pub(crate) const MAX: usize = 64 << 20;

/// What asking for more brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// More bytes.
    More,
    /// The content is at its end.
    End,
    /// The window is as large as it may get and still full.
    Full,
}

pub(crate) struct Window<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The offset of `buffer[0]` in the content.
    base: u64,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R, size: usize) -> Self {
        Self { reader, buffer: vec![0; size], start: 0, end: 0, base: 0 }
    }

    /// What has been read and not yet consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The offset of the first of [`Self::bytes`] in the content.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    pub(crate) fn fill(&mut self) -> io::Result<Fill> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            if self.buffer.len() >= MAX {
                return Ok(Fill::Full);
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        // Fill it whole: a retry of an unfinished event then sees much more than before.
        let before = self.end;
        while self.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.end..])? {
                0 => break,
                more => self.end += more,
            }
        }
        Ok(if self.end > before { Fill::More } else { Fill::End })
    }
}
