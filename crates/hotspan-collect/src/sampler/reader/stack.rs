//! The stack of one thread, out of what was fetched or read now.

use std::cell::Cell;

use super::super::error::SamplerError;
use super::super::memory::{Piece, ProcessMemory};
use super::super::spans::{Span, View, cover};
use super::{ProcessReader, Scratch};
use crate::cpython::{Address, Memory, Offsets, RawFrame, walk, word_at};

const ATTEMPTS: usize = 3;

/// Memory that was fetched where it was, and live memory elsewhere.
struct Fetched<'a> {
    view: View<'a>,
    live: &'a ProcessMemory,
    /// How often live memory was read.
    misses: Cell<usize>,
}

impl Memory for Fetched<'_> {
    type Error = SamplerError;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), SamplerError> {
        if let Some(bytes) = self.view.get(address, into.len()) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        self.misses.set(self.misses.get() + 1);
        self.live.read(address, into)
    }

    fn malformed(&self, what: &'static str) -> SamplerError {
        self.live.malformed(what)
    }
}

/// Where the frames may lie next time. `root` is what the thread points to, which need not be a frame.
pub(super) fn guess(
    offsets: &Offsets,
    root: Address,
    raw: &[RawFrame],
    addresses: &mut Vec<Address>,
    spans: &mut Vec<Span>,
) {
    addresses.clear();
    addresses.extend(raw.iter().map(|frame| frame.address));
    cover(addresses, offsets.frame_length(), !offsets.has_frame_objects(), spans);
    if let Some(offset) = offsets.c_frame
        && !root.is_null()
    {
        spans.push(Span { start: root, length: offset + 8 });
    }
}

/// The innermost Python frame of a thread, read now.
fn innermost_frame(
    memory: &ProcessMemory,
    offsets: &Offsets,
    thread: Address,
) -> Result<Address, SamplerError> {
    let mut innermost = Address(0);
    walk(offsets, memory, thread, |frame| {
        if !frame.code.is_null() {
            innermost = frame.address;
        }
        innermost.is_null()
    })?;
    Ok(innermost)
}

/// Reads the Python frames of a thread. How often live memory had to be read is the answer.
fn read_frames(
    live: &ProcessMemory,
    offsets: &Offsets,
    thread: Address,
    view: View<'_>,
    raw: &mut Vec<RawFrame>,
) -> Result<usize, SamplerError> {
    raw.clear();
    let memory = Fetched { view, live, misses: Cell::new(0) };
    walk(offsets, &memory, thread, |frame| {
        if !frame.code.is_null() {
            raw.push(frame);
        }
        true
    })?;
    Ok(memory.misses.get())
}

impl ProcessReader {
    /// Where a thread keeps the pointer to its innermost frame, as it was fetched; null where it was not.
    pub(super) fn frame_root(&self, index: usize) -> Address {
        let (first, count) = self.threads[index].pieces;
        let piece = self.pieces.get(first).filter(|piece| count > 0 && piece.read);
        let at = |piece: &Piece| piece.at + self.interpreter.offsets.thread_frame;
        piece.map_or(Address(0), |piece| Address(word_at(&self.buffer, at(piece))))
    }

    /// Reads the stack of one thread. Whether it stood still meanwhile is the answer.
    pub(super) fn read_stack(&mut self, index: usize) -> Result<bool, SamplerError> {
        let offsets = self.interpreter.offsets;
        let (first, count) = self.threads[index].pieces;
        let address = self.threads[index].address;
        let root = self.frame_root(index);
        let view = View { pieces: &self.pieces[first..first + count], buffer: &self.buffer };
        let mut outcome = read_frames(&self.memory, &offsets, address, view, &mut self.scratch.raw);
        for attempt in 1..=ATTEMPTS {
            match outcome {
                Ok(0) => return Ok(true),
                Ok(_) => {
                    // Some frames were read later than others: fine if the thread is still where it was.
                    let innermost = innermost_frame(&self.memory, &offsets, address)?;
                    let first = self.scratch.raw.first().map_or(Address(0), |frame| frame.address);
                    if innermost == first {
                        return Ok(true);
                    }
                    if attempt == ATTEMPTS {
                        return Ok(false);
                    }
                }
                Err(error) if error.is_end() || attempt == ATTEMPTS => return Err(error),
                Err(_) => {}
            }
            // Once more, all in one call, at the addresses just found.
            let Scratch { raw, addresses, spans, pieces, buffer, .. } = &mut self.scratch;
            guess(&offsets, root, raw, addresses, spans);
            pieces.clear();
            pieces.push(Piece { address, length: offsets.thread_length(), at: 0, read: false });
            let mut at = offsets.thread_length();
            for span in spans.iter() {
                pieces.push(Piece { address: span.start, length: span.length, at, read: false });
                at += span.length;
            }
            buffer.resize(at.max(buffer.len()), 0);
            self.memory.read_pieces(pieces, buffer)?;
            outcome = read_frames(&self.memory, &offsets, address, View { pieces, buffer }, raw);
        }
        Ok(false)
    }
}
