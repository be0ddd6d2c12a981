//! Numbers in JSON: plain ones are scanned and read in one pass, the others checked against the grammar and read from
//! their text.

use super::scan::{Cursor, Stop};

impl<'a> Cursor<'a> {
    /// The bytes of a number; the cursor stands on its first. The slice is checked against JSON's grammar.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        let mut at = start;
        let mut plain = true;
        loop {
            // A number at the end of the slice may go on in the next.
            match *self.bytes.get(at).ok_or(Stop::NeedMore)? {
                b'0'..=b'9' => {}
                b'-' | b'+' | b'.' | b'e' | b'E' => plain = false,
                _ => break,
            }
            at += 1;
        }
        let text = &self.bytes[start..at];
        let plain_and_valid = plain && !text.is_empty() && (text[0] != b'0' || text.len() == 1);
        if !plain_and_valid && !is_number(text) {
            return Err(Stop::Bad);
        }
        self.at = at;
        Ok(text)
    }

    /// A plain whole number of at most 18 digits, scanned and read in one pass. `None` consumes nothing and says
    /// nothing: [`Self::number`] knows the rest of the grammar.
    #[inline]
    pub(crate) fn short_int(&mut self) -> Option<i64> {
        let negative = *self.bytes.get(self.at)? == b'-';
        let start = self.at + usize::from(negative);
        let (number, end) = digits(self.bytes, start);
        let length = end - start;
        let ends = !matches!(*self.bytes.get(end)?, b'.' | b'e' | b'E' | b'+' | b'-');
        if !ends || length == 0 || length > 18 || (length > 1 && self.bytes[start] == b'0') {
            return None;
        }
        self.at = end;
        Some(if negative { -number } else { number })
    }

    /// Microseconds with at most three decimals, as nanoseconds, in one pass. `None` consumes nothing and says nothing:
    /// [`parse_micros`] knows the rest.
    #[inline]
    pub(crate) fn short_micros(&mut self) -> Option<i64> {
        let (whole, dot) = digits(self.bytes, self.at);
        if dot == self.at || dot - self.at > 16 || (dot - self.at > 1 && self.bytes[self.at] == b'0') {
            return None;
        }
        let mut nanos = whole.checked_mul(1000)?;
        let mut end = dot;
        if *self.bytes.get(dot)? == b'.' {
            let (fraction, fraction_end) = digits(self.bytes, dot + 1);
            nanos += match fraction_end - dot - 1 {
                1 => fraction * 100,
                2 => fraction * 10,
                3 => fraction,
                _ => return None,
            };
            end = fraction_end;
        }
        if matches!(*self.bytes.get(end)?, b'.' | b'e' | b'E' | b'+' | b'-') {
            return None;
        }
        self.at = end;
        Some(nanos)
    }
}

/// The number that the digits from `at` on spell, and where they end. It wraps around after 18 digits.
#[inline]
fn digits(bytes: &[u8], mut at: usize) -> (i64, usize) {
    let mut number: i64 = 0;
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0'))
        && digit <= 9
    {
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        at += 1;
    }
    (number, at)
}

/// JSON's grammar for numbers.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent =
            exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

/// A whole number that fits 64 bits.
#[inline]
pub(crate) fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut number: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(digit.into())?;
    }
    if negative { 0_i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}

/// A time in microseconds as whole nanoseconds, exactly, and whether digits beyond them were rounded.
#[inline]
pub(crate) fn parse_micros(text: &[u8]) -> Option<(i64, bool)> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut number: i64 = 0;
    let mut index = 0;
    while let Some(digit) = digits.get(index).map(|byte| byte.wrapping_sub(b'0'))
        && digit <= 9
    {
        number = number.checked_mul(10)?.checked_add(digit.into())?;
        index += 1;
    }
    number = number.checked_mul(1000)?;
    let mut rounded = false;
    match digits.get(index) {
        None if index > 0 => {}
        Some(b'.') if index > 0 => {
            let fraction = &digits[index + 1..];
            let mut scale = 100;
            for (index, byte) in fraction.iter().enumerate() {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return parse_micros_slowly(text);
                }
                number = number.checked_add(i64::from(digit) * scale)?;
                scale /= 10;
                if index >= 3 {
                    if index == 3 && digit >= 5 {
                        number = number.checked_add(1)?;
                    }
                    rounded |= digit != 0;
                }
            }
        }
        _ => return parse_micros_slowly(text),
    }
    Some((if negative { -number } else { number }, rounded))
}

/// Exponents and the like.
#[cold]
fn parse_micros_slowly(text: &[u8]) -> Option<(i64, bool)> {
    let micros: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let nanos = micros * 1e3;
    (nanos.abs() < 9.2e18).then(|| (nanos.round() as i64, nanos.fract() != 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn micros_become_exact_nanos() {
        let nanos = |text: &str| parse_micros(text.as_bytes());
        assert_eq!(nanos("1623142623460111"), Some((1_623_142_623_460_111_000, false)));
        assert_eq!(nanos("701805216966.892"), Some((701_805_216_966_892, false)));
        assert_eq!(nanos("-1.5"), Some((-1_500, false)));
        assert_eq!(nanos("0.0006"), Some((1, true)));
        assert_eq!(nanos("0.1230"), Some((123, false)));
        assert_eq!(nanos("1e3"), Some((1_000_000, false)));
        assert_eq!(nanos("1e40"), None);
        assert_eq!(nanos("99999999999999999999"), None);
        assert_eq!(nanos(""), None);
    }

    #[test]
    fn whole_numbers_reach_both_ends_of_64_bits() {
        assert_eq!(parse_int(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_int(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_int(b"9223372036854775808"), None);
        assert_eq!(parse_int(b"1.0"), None);
    }

    #[test]
    fn short_numbers_are_read_as_long_ones_are() {
        for text in ["0", "7", "-3", "999999999999999999", "12345678901234567890", "1.5", "01", "-", "1e3"] {
            let padded = format!("{text},");
            let mut cursor = Cursor::new(padded.as_bytes());
            if let Some(number) = cursor.short_int() {
                assert_eq!(Some(number), parse_int(text.as_bytes()), "{text}");
                assert_eq!(cursor.at, text.len());
            } else {
                assert!(text.len() > 18 || parse_int(text.as_bytes()).is_none() || text == "01", "{text}");
            }
        }
        for text in
            ["0", "17", "1623142623460111", "3.5", "3.25", "701805216966.892", "0.001", "1.2345", "1e3", "-1"]
        {
            let padded = format!("{text},");
            let mut cursor = Cursor::new(padded.as_bytes());
            if let Some(nanos) = cursor.short_micros() {
                assert_eq!(Some((nanos, false)), parse_micros(text.as_bytes()), "{text}");
                assert_eq!(cursor.at, text.len());
            }
        }
        assert_eq!(Cursor::new(b"12").short_int(), None, "it may go on");
        assert_eq!(Cursor::new(b"12.5").short_micros(), None, "it may go on");
    }
}
