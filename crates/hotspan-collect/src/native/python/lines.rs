//! The line of an instruction, from the line tables that CPython keeps with its code.

/// The line at a byte offset; `None` where the compiler gave none, or the table is not one.
pub(crate) fn line_at(minor: u32, table: &[u8], first_line: u32, offset: usize) -> Option<u32> {
    let line =
        if minor >= 11 { locations(table, first_line, offset) } else { deltas(table, first_line, offset) };
    line.filter(|&line| line > 0)
}

/// 3.10: pairs of bytes, how far the instructions go and how far the line moves; -128 is an instruction without a line.
fn deltas(table: &[u8], first_line: u32, offset: usize) -> Option<u32> {
    let mut line = i64::from(first_line);
    let mut end = 0;
    for pair in table.chunks_exact(2) {
        end += usize::from(pair[0]);
        let delta = pair[1] as i8;
        if delta != i8::MIN {
            line += i64::from(delta);
        }
        if offset < end {
            return if delta == i8::MIN { None } else { u32::try_from(line).ok() };
        }
    }
    None
}

/// 3.11 and later: entries of a kind, a length in instructions, and how far the line moves.
fn locations(table: &[u8], first_line: u32, offset: usize) -> Option<u32> {
    let mut line = i64::from(first_line);
    let mut end = 0;
    let mut rest = table.iter().copied().peekable();
    while let Some(first) = rest.next() {
        let kind = (first >> 3) & 15;
        end += (usize::from(first & 7) + 1) * 2;
        let mut has_line = true;
        match kind {
            15 => has_line = false,
            13 | 14 => line += signed(number(&mut rest)),
            10..=12 => line += i64::from(kind - 10),
            _ => {}
        }
        if offset < end {
            return if has_line { u32::try_from(line).ok() } else { None };
        }
        // What follows are columns; only the first byte of an entry has the highest bit.
        while rest.next_if(|byte| byte & 0x80 == 0).is_some() {}
    }
    None
}

/// Six bits a byte, the seventh says that more follow.
fn number(bytes: &mut impl Iterator<Item = u8>) -> u64 {
    let (mut value, mut shift) = (0, 0);
    for byte in bytes {
        value |= u64::from(byte & 63) << shift;
        shift += 6;
        if byte & 64 == 0 || shift > 54 {
            break;
        }
    }
    value
}

fn signed(value: u64) -> i64 {
    let magnitude = (value >> 1) as i64;
    if value & 1 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tables of `a = 1\n\n\nb = f(\n  1,\n  g)\n` as each version made them, with what its `co_lines()` says.

    #[test]
    fn table_of_3_10() {
        let table = [4, 0, 2, 3, 2, 1, 2, 1, 8, 254];
        let lines = [0, 2, 4, 6, 8, 10, 16, 18].map(|offset| line_at(10, &table, 1, offset));
        assert_eq!(lines, [Some(1), Some(1), Some(4), Some(5), Some(6), Some(4), Some(4), None]);
        assert_eq!(line_at(10, &[4, 0, 4, 0x80, 4, 0xff], 7, 4), None, "an instruction without a line");
        assert_eq!(line_at(10, &[4, 0, 4, 0x80, 4, 0xff], 7, 8), Some(6));
    }

    #[test]
    fn table_of_3_11() {
        let table = [
            240, 3, 1, 1, 1, 216, 4, 5, 128, 1, 240, 6, 0, 5, 6, 128, 65, 216, 2, 3, 216, 2, 3, 241, 5, 2, 5,
            5, 244, 0, 2, 5, 5, 128, 1, 128, 1, 128, 1,
        ];
        let lines = [0, 2, 6, 10, 12, 14, 26, 32, 34].map(|offset| line_at(11, &table, 1, offset));
        let expected = [None, Some(1), Some(4), Some(5), Some(6), Some(4), Some(4), Some(4), None];
        assert_eq!(lines, expected, "line 0, of the first instruction of a module, is none");
        assert_eq!(line_at(11, &[], 9, 4), None);
        assert_eq!(line_at(11, &[0xff; 40], 9, 400), None);
    }
}
