//! Text of JSON: strings, numbers and times, written straight into a line of bytes.

use std::fmt::Display;
use std::io::Write;

pub(super) fn write_display(line: &mut Vec<u8>, value: impl Display) {
    // Writing to memory cannot fail.
    let _ = write!(line, "{value}");
}

/// A JSON string, escaped where it must be.
pub(super) fn write_string(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        line.extend_from_slice(&bytes[start..index]);
        start = index + 1;
        match byte {
            b'"' => line.extend_from_slice(b"\\\""),
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b'\r' => line.extend_from_slice(b"\\r"),
            control => write_display(line, format_args!("\\u{control:04x}")),
        }
    }
    line.extend_from_slice(&bytes[start..]);
    line.push(b'"');
}

pub(super) fn write_number(line: &mut Vec<u8>, number: i64) {
    if number < 0 {
        line.push(b'-');
    }
    write_digits(line, number.unsigned_abs());
}

fn write_digits(line: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[start..]);
}

/// Nanoseconds as microseconds, exactly.
pub(super) fn write_micros(line: &mut Vec<u8>, nanos: i64) {
    if nanos < 0 {
        line.push(b'-');
    }
    let nanos = nanos.unsigned_abs();
    write_digits(line, nanos / 1000);
    let fraction = nanos % 1000;
    if fraction != 0 {
        let digit = |divisor: u64| b'0' + (fraction / divisor % 10) as u8;
        line.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut line = Vec::new();
        write(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn times_are_exact() {
        assert_eq!(written(|line| write_micros(line, 1_623_142_623_460_111_000)), "1623142623460111");
        assert_eq!(written(|line| write_micros(line, -1_005)), "-1.005");
        assert_eq!(written(|line| write_micros(line, i64::MIN)), "-9223372036854775.808");
    }

    #[test]
    fn strings_are_escaped_not_altered() {
        let text = "a\"b\\c\n\u{1}é";
        let json = written(|line| write_string(line, text));
        assert_eq!(json, r#""a\"b\\c\n\u0001é""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
