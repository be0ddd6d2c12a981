//! Which line an instruction belongs to: the three tables that CPython has used.

use super::layout::LineTable;

/// Where lines begin: offsets in bytes, ascending, each with the line from there on; 0 where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    starts: Vec<(u32, u32)>,
}

impl Lines {
    /// Decodes a table. Bytes that make no sense end it.
    pub(super) fn decode(kind: LineTable, table: &[u8], first_line: u32) -> Self {
        let mut lines = Self { starts: vec![(0, first_line)] };
        match kind {
            LineTable::Lnotab => lines.lnotab(table, first_line),
            LineTable::Pairs => lines.pairs(table, first_line),
            LineTable::Locations => lines.locations(table, first_line),
        }
        lines
    }

    /// The line of the instruction at an offset in bytes.
    pub(super) fn at(&self, offset: u32) -> u32 {
        let after = self.starts.partition_point(|&(start, _)| start <= offset);
        // Where a compiler made instructions of no line, the line before is what a person expects.
        self.starts[..after].iter().rev().map(|&(_, line)| line).find(|&line| line != 0).unwrap_or(0)
    }

    fn push(&mut self, offset: u32, line: i64) {
        let line = u32::try_from(line).unwrap_or(0);
        match self.starts.last_mut() {
            Some(last) if last.0 == offset => last.1 = line,
            Some(last) if last.1 == line => {}
            _ => self.starts.push((offset, line)),
        }
    }

    fn lnotab(&mut self, table: &[u8], first_line: u32) {
        let (mut offset, mut line) = (0_u32, i64::from(first_line));
        for pair in table.chunks_exact(2) {
            offset += u32::from(pair[0]);
            line += i64::from(pair[1] as i8);
            self.push(offset, line);
        }
    }

    fn pairs(&mut self, table: &[u8], first_line: u32) {
        let (mut offset, mut line) = (0_u32, i64::from(first_line));
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
    }

    fn locations(&mut self, table: &[u8], first_line: u32) {
        let (mut offset, mut line) = (0_u32, i64::from(first_line));
        let mut bytes = table.iter().copied();
        while let Some(first) = bytes.next() {
            let units = u32::from(first & 7) + 1;
            match (first >> 3) & 15 {
                15 => self.push(offset, 0),
                code => {
                    let step = match code {
                        14 => {
                            let step = signed(&mut bytes);
                            for _ in 0..3 {
                                unsigned(&mut bytes);
                            }
                            step
                        }
                        13 => signed(&mut bytes),
                        10..=12 => {
                            bytes.nth(1);
                            i64::from(code) - 10
                        }
                        _ => {
                            bytes.next();
                            0
                        }
                    };
                    line += step;
                    self.push(offset, line);
                }
            }
            offset += units * 2;
        }
    }
}

/// Six bits a byte, the lowest first; the seventh bit says that more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> i64 {
    let (mut value, mut shift) = (0_i64, 0);
    for byte in bytes {
        value |= i64::from(byte & 63) << shift;
        shift += 6;
        if byte & 64 == 0 || shift > 42 {
            break;
        }
    }
    value
}

/// The lowest bit is the sign.
fn signed(bytes: &mut impl Iterator<Item = u8>) -> i64 {
    let value = unsigned(bytes);
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
