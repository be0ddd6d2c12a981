//! Guesses: which stretches of memory the frames of a thread will lie in next time, from where they lay this time.
//!
//! A guess that holds saves one system call a frame, and all frames are then of the same moment.

use super::memory::Piece;
use crate::cpython::Address;

/// Frames nearer to each other than this are read as one stretch.
const NEAR: u64 = 2048;
/// Of a thread with a very deep stack only the innermost part is guessed.
const MOST_BYTES: u64 = 256 << 10;
const PAGE: u64 = 4096;
/// How far beyond the innermost frame new calls are expected.
const AHEAD: u64 = 1024;

/// A stretch of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: Address,
    pub(super) length: usize,
}

/// Covers frames, each `length` bytes long, with few stretches. `addresses` are innermost first, and sorted here. Frames
/// that lie on a stack of their own grow upwards: some memory beyond the innermost one is read as well, for new calls, but
/// not beyond its page, which might be the last.
pub(super) fn cover(addresses: &mut [Address], length: usize, on_stack: bool, spans: &mut Vec<Span>) {
    spans.clear();
    let Some(&innermost) = addresses.first() else { return };
    addresses.sort_unstable();
    for &address in addresses.iter() {
        let end = address.0.saturating_add(length as u64);
        match spans.last_mut() {
            Some(span) if address.0 <= span.start.0 + span.length as u64 + NEAR => {
                span.length = span.length.max((end - span.start.0) as usize);
            }
            _ => spans.push(Span { start: address, length }),
        }
    }
    if on_stack {
        let holds =
            |span: &&mut Span| (span.start.0..span.start.0 + span.length as u64).contains(&innermost.0);
        if let Some(span) = spans.iter_mut().find(holds) {
            let end = span.start.0 + span.length as u64;
            span.length += ((PAGE - end % PAGE) % PAGE).min(AHEAD) as usize;
        }
    }
    // The innermost part lies last on a stack; elsewhere any part is as good.
    let mut over = spans.iter().map(|span| span.length as u64).sum::<u64>().saturating_sub(MOST_BYTES);
    while over > 0 {
        let Some(first) = spans.first_mut() else { return };
        let length = first.length as u64;
        if over < length {
            first.start = first.start.plus(over);
            first.length -= over as usize;
            return;
        }
        over -= length;
        spans.remove(0);
    }
}

/// Pieces that were read, to be looked into.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) pieces: &'a [Piece],
    pub(super) buffer: &'a [u8],
}

impl<'a> View<'a> {
    /// The bytes at an address, when they were read.
    pub(super) fn get(&self, address: Address, length: usize) -> Option<&'a [u8]> {
        self.pieces.iter().find_map(|piece| {
            let offset = address.0.checked_sub(piece.address.0)? as usize;
            let fits = piece.read && offset.checked_add(length).is_some_and(|end| end <= piece.length);
            fits.then(|| self.buffer.get(piece.at + offset..piece.at + offset + length)).flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(addresses: &[u64], on_stack: bool) -> Vec<(u64, usize)> {
        let mut addresses: Vec<Address> = addresses.iter().copied().map(Address).collect();
        let mut spans = Vec::new();
        cover(&mut addresses, 80, on_stack, &mut spans);
        spans.iter().map(|span| (span.start.0, span.length)).collect()
    }

    #[test]
    fn near_frames_are_one_stretch_and_far_ones_are_not() {
        assert_eq!(covered(&[0x1100, 0x1000, 0x9000], false), [(0x1000, 0x100 + 80), (0x9000, 80)]);
        assert_eq!(covered(&[0x1100, 0x1000], true), [(0x1000, 0x100 + 80 + 1024)]);
        assert!(covered(&[], true).is_empty());
    }

    #[test]
    fn a_very_deep_stack_is_guessed_in_part() {
        let addresses: Vec<u64> = (0..10_000).rev().map(|index| 0x10_0000 + index * 100).collect();
        let spans = covered(&addresses, true);
        assert_eq!(spans.len(), 1);
        assert_eq!(spans[0].1 as u64, MOST_BYTES);
        assert!(spans[0].0 + spans[0].1 as u64 >= addresses[0] + 80);
    }
}
