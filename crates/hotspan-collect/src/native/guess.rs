//! Where a function returns to when its unwind tables do not tell. There are none for kernels of linear algebra written
//! in assembler and for code made at run time: the first word of the stack that points behind a call is taken. Tables
//! may need a frame pointer that is not known: the first pair of a frame pointer and such a word is taken. Guesses, but
//! ones that the rest of the stack soon proves or breaks.

use super::library::CodeBefore;

/// How far to look: kernels of OpenBLAS keep up to 32 KB on the stack.
const FARTHEST: usize = 40 * 1024;

/// A guessed caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) return_address: u64,
    /// The stack after returning.
    pub(crate) stack: u64,
    /// The frame pointer of the caller, where one was saved.
    pub(crate) frame: Option<u64>,
}

/// Looks in a copied stack that begins at `start`, from `from` on. `code` gives the known code that ends at an address, or
/// nothing when there is no function with unwind tables.
pub(crate) fn caller(
    stack: &[u8],
    start: u64,
    from: u64,
    code: impl Fn(u64) -> Option<CodeBefore>,
) -> Option<Caller> {
    let first = usize::try_from(from.checked_sub(start)?).ok()?;
    let within = stack.get(first..stack.len().min(first.checked_add(FARTHEST)?))?;
    let top = start.checked_add(stack.len() as u64)?;
    let mut frame = None;
    for (index, word) in within.chunks_exact(8).enumerate() {
        let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let address = from + index as u64 * 8;
        if value > 0xffff && code(value).is_some_and(|code| ends_with_call(&code)) {
            let after = address + 8;
            return Some(Caller {
                return_address: value,
                stack: after,
                frame: frame.filter(|&frame| frame >= after),
            });
        }
        if value > address && value < top && value % 8 == 0 {
            frame.get_or_insert(value);
        }
    }
    None
}

/// The caller of a function that keeps a frame pointer, which itself is not known: the function has saved that of its
/// caller below the address that it returns to.
pub(crate) fn caller_by_saved_frame(
    stack: &[u8],
    start: u64,
    from: u64,
    code: impl Fn(u64) -> Option<CodeBefore>,
) -> Option<Caller> {
    let first = usize::try_from(from.checked_sub(start)?).ok()?;
    let within = stack.get(first..stack.len().min(first.checked_add(FARTHEST)?))?;
    let top = start.checked_add(stack.len() as u64)?;
    let words = |pair: &[u8]| {
        let (frame, value) = pair.split_at(8);
        [frame, value].map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
    };
    within.windows(16).step_by(8).enumerate().find_map(|(index, pair)| {
        let [frame, return_address] = words(pair);
        let stack = from + index as u64 * 8 + 16;
        let is_frame = frame >= stack && frame < top && frame.is_multiple_of(8);
        let is_caller = is_frame
            && return_address > 0xffff
            && code(return_address).is_some_and(|code| ends_with_call(&code));
        is_caller.then_some(Caller { return_address, stack, frame: Some(frame) })
    })
}

/// Whether these instructions end with a call, as x86-64 encodes them.
fn ends_with_call(code: &[u8]) -> bool {
    matches!(
        code,
        [.., 0xe8, _, _, _, _]
            | [.., 0xff, 0xd0..=0xd7]
            | [.., 0xff, 0x14 | 0x50..=0x57, _]
            | [.., 0xff, 0x54, 0x24, _]
            | [.., 0xff, 0x15 | 0x90..=0x97, _, _, _, _]
            | [.., 0xff, 0x94, 0x24, _, _, _, _]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_word_behind_a_call() {
        let words: [u64; 6] = [7, 0x10_0028, 0x5000_0000, 0x6000_0000, 9, 9];
        let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = |address| match address {
            0x5000_0000 => Some([0x90, 0x90, 0x90, 0x90, 0x48, 0x89, 0xc0]),
            0x6000_0000 => Some([0x90, 0xff, 0x93, 1, 2, 3, 4]),
            _ => None,
        };
        let found = caller(&stack, 0x10_0000, 0x10_0000, code).unwrap();
        assert_eq!(found, Caller { return_address: 0x6000_0000, stack: 0x10_0020, frame: Some(0x10_0028) });
        assert_eq!(caller(&stack, 0x10_0000, 0x10_0020, code), None);
        assert_eq!(caller(&stack, 0x10_0000, 0x20_0000, code), None);
        // The pair must be one, and the frame above it.
        assert_eq!(caller_by_saved_frame(&stack, 0x10_0000, 0x10_0000, code), None);
        let words: [u64; 6] = [7, 0x10_0000, 0x6000_0000, 0x10_0028, 0x6000_0000, 9];
        let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = caller_by_saved_frame(&stack, 0x10_0000, 0x10_0000, code).unwrap();
        assert_eq!(found, Caller { return_address: 0x6000_0000, stack: 0x10_0028, frame: Some(0x10_0028) });
    }
}
