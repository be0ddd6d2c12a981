//! `.prof` files, which pstats, snakeviz, tuna and gprof2dot open: functions with their calls, times and callers.
//!
//! One dict in Python's marshal format, without references, so that every version of Python reads it.

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_analyze::functions::{Calls, FunctionName, Functions};

use super::Exporter;

/// The exporter of `.prof` files.
pub struct Prof;

impl Exporter for Prof {
    fn name(&self) -> &'static str {
        "prof"
    }

    fn help(&self) -> &'static str {
        "functions with calls, times and callers, for pstats, snakeviz and gprof2dot"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let mut out = Marshal { bytes: Vec::new() };
        out.bytes.push(b'{');
        for row in Functions::of(model).rows() {
            out.function(&row.function);
            out.tuple(5);
            // Primitive calls come first here, and second below.
            out.int(row.sums.primitive);
            out.int(row.sums.calls);
            out.times(row.sums);
            out.bytes.push(b'{');
            for (caller, sums) in &row.callers {
                out.function(caller);
                out.tuple(4);
                out.int(sums.calls);
                out.int(sums.primitive);
                out.times(*sums);
            }
            out.bytes.push(b'0');
        }
        out.bytes.push(b'0');
        output.write_all(&out.bytes)
    }
}

struct Marshal {
    bytes: Vec<u8>,
}

impl Marshal {
    fn word(&mut self, number: i32) {
        self.bytes.extend(number.to_le_bytes());
    }

    fn tuple(&mut self, length: i32) {
        self.bytes.push(b'(');
        self.word(length);
    }

    fn function(&mut self, function: &FunctionName) {
        self.tuple(3);
        self.text(&function.file);
        self.int(i64::from(function.line));
        self.text(&function.name);
    }

    fn text(&mut self, text: &str) {
        // No name has 2 GB; the file must be readable all the same.
        let text = if text.len() > i32::MAX as usize { "" } else { text };
        self.bytes.push(b'u');
        self.word(text.len() as i32);
        self.bytes.extend(text.as_bytes());
    }

    fn int(&mut self, number: i64) {
        if let Ok(number) = i32::try_from(number) {
            self.bytes.push(b'i');
            return self.word(number);
        }
        // Digits of 15 bits, the lowest first; the sign is that of their count.
        let mut rest = number.unsigned_abs();
        let mut digits = Vec::new();
        while rest > 0 {
            digits.push((rest & 0x7fff) as u16);
            rest >>= 15;
        }
        self.bytes.push(b'l');
        let count = digits.len() as i32;
        self.word(if number < 0 { -count } else { count });
        for digit in digits {
            self.bytes.extend(digit.to_le_bytes());
        }
    }

    fn times(&mut self, sums: Calls) {
        for time in [sums.own, sums.total] {
            self.bytes.push(b'g');
            self.bytes.extend((time.0 as f64 / 1e9).to_le_bytes());
        }
    }
}
