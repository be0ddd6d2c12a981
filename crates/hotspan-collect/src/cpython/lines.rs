//! Which line an instruction belongs to: the three tables that CPython has used.

use super::offsets::LineTable;

/// Where lines begin: offsets in bytes, ascending, each with the line from there on; 0 where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    starts: Vec<(u32, u32)>,
    /// Where the table ends, which may be before the code does.
    end: u32,
    first_line: u32,
}

impl Lines {
    /// Decodes a table. Bytes that make no sense end it.
    pub(crate) fn decode(kind: LineTable, table: &[u8], first_line: u32) -> Self {
        let mut lines = Self { starts: vec![(0, first_line)], end: u32::MAX, first_line };
        match kind {
            LineTable::Lnotab => lines.lnotab(table),
            LineTable::Pairs => lines.pairs(table),
            LineTable::Locations => lines.locations(table),
        }
        lines
    }

    /// The line of the instruction at an offset in bytes; the first line of the function where none is told.
    pub(crate) fn at(&self, offset: u32) -> u32 {
        if offset >= self.end {
            return self.first_line;
        }
        let after = self.starts.partition_point(|&(start, _)| start <= offset);
        // Where a compiler made instructions of no line, the line before is what a person expects.
        let lines = self.starts[..after].iter().rev().map(|&(_, line)| line);
        lines.into_iter().find(|&line| line != 0).unwrap_or(self.first_line)
    }

    fn push(&mut self, offset: u32, line: i64) {
        let line = u32::try_from(line).unwrap_or(0);
        match self.starts.last_mut() {
            Some(last) if last.0 == offset => last.1 = line,
            Some(last) if last.1 == line => {}
            _ => self.starts.push((offset, line)),
        }
    }

    /// To 3.9: pairs of bytes, how far the next line is away and by how much it differs.
    fn lnotab(&mut self, table: &[u8]) {
        let (mut offset, mut line) = (0, i64::from(self.first_line));
        for pair in table.chunks_exact(2) {
            offset += u32::from(pair[0]);
            line += i64::from(pair[1] as i8);
            self.push(offset, line);
        }
    }

    /// 3.10: pairs of bytes, how far the instructions go and how far the line moves; -128 is an instruction without a line.
    fn pairs(&mut self, table: &[u8]) {
        let (mut offset, mut line) = (0, i64::from(self.first_line));
        for pair in table.chunks_exact(2) {
            let step = pair[1] as i8;
            if step == i8::MIN {
                self.push(offset, 0);
            } else {
                line += i64::from(step);
                self.push(offset, line);
            }
            offset += u32::from(pair[0]);
        }
        self.end = offset;
    }

    /// From 3.11 on: entries of a kind, a length in instructions, and how far the line moves.
    fn locations(&mut self, table: &[u8]) {
        let (mut offset, mut line) = (0, i64::from(self.first_line));
        let mut bytes = table.iter().copied().peekable();
        while let Some(first) = bytes.next() {
            let kind = (first >> 3) & 15;
            line = line.saturating_add(match kind {
                13 | 14 => signed(&mut bytes),
                10..=12 => i64::from(kind) - 10,
                _ => 0,
            });
            self.push(offset, if kind == 15 { 0 } else { line });
            offset += (u32::from(first & 7) + 1) * 2;
            // What follows are columns; only the first byte of an entry has the highest bit.
            while bytes.next_if(|byte| byte & 0x80 == 0).is_some() {}
        }
        self.end = offset;
    }
}

/// Six bits a byte, the lowest first; the seventh bit says that more follow. The lowest bit of the number is its sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> i64 {
    let (mut value, mut shift) = (0_i64, 0);
    for byte in bytes {
        value |= i64::from(byte & 63) << shift;
        shift += 6;
        if byte & 64 == 0 || shift > 42 {
            break;
        }
    }
    if value & 1 == 1 { -(value >> 1) } else { value >> 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tables of `def f(x):\n  y = x\n\n  return y`, first line 1, as the interpreters compiled them.

    #[test]
    fn tables_to_3_9() {
        let lines = Lines::decode(LineTable::Lnotab, &[0, 1, 4, 2], 1);
        assert_eq!([0, 2, 4, 6].map(|offset| lines.at(offset)), [2, 2, 4, 4]);
    }

    #[test]
    fn tables_of_3_10_have_gaps() {
        let lines = Lines::decode(LineTable::Pairs, &[4, 1, 2, 0x80, 4, 2], 1);
        assert_eq!([0, 2, 4, 6, 8].map(|offset| lines.at(offset)), [2, 2, 2, 4, 4]);
    }

    #[test]
    fn tables_from_3_11() {
        // RESUME on line 1, then one line further (codes 11 and 12 step one and two lines).
        let table = [0x80, 0, 0x80 | (11 << 3) | 1, 4, 5, 0x80 | (12 << 3) | 1, 4, 5, 0x80 | (13 << 3), 3];
        let lines = Lines::decode(LineTable::Locations, &table, 1);
        assert_eq!([0, 2, 4, 6, 8, 10].map(|offset| lines.at(offset)), [1, 2, 2, 4, 4, 3]);
    }

    // Tables of `a = 1\n\n\nb = f(\n  1,\n  g)\n` as each version made them, with what its `co_lines()` says.

    #[test]
    fn a_module_of_3_10() {
        let lines = Lines::decode(LineTable::Pairs, &[4, 0, 2, 3, 2, 1, 2, 1, 8, 254], 1);
        let found = [0, 2, 4, 6, 8, 10, 16, 18].map(|offset| lines.at(offset));
        assert_eq!(found, [1, 1, 4, 5, 6, 4, 4, 1], "the first line beyond the end of a table");
    }

    #[test]
    fn a_module_of_3_11() {
        let table = [
            240, 3, 1, 1, 1, 216, 4, 5, 128, 1, 240, 6, 0, 5, 6, 128, 65, 216, 2, 3, 216, 2, 3, 241, 5, 2, 5,
            5, 244, 0, 2, 5, 5, 128, 1, 128, 1, 128, 1,
        ];
        let lines = Lines::decode(LineTable::Locations, &table, 1);
        let found = [0, 2, 6, 10, 12, 14, 26, 32, 34].map(|offset| lines.at(offset));
        // Line 0, of the first instruction of a module, is none.
        assert_eq!(found, [1, 1, 4, 5, 6, 4, 4, 4, 1]);
    }

    #[test]
    fn nonsense_ends_quietly() {
        for kind in [LineTable::Lnotab, LineTable::Pairs, LineTable::Locations] {
            for length in 0..64_u8 {
                let table: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(167) | 0x80).collect();
                Lines::decode(kind, &table, 1).at(1 << 20);
            }
        }
    }
}
