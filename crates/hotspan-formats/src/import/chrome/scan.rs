//! Scanning JSON: strings and whole values in a slice that may end anywhere. [`super::numbers`] knows numbers.
//!
//! Nothing is copied and nothing is built: a scan gives the slice of what it found. Every function returns
//! [`Stop::NeedMore`] when the slice ends too early, so that the caller can retry with more bytes.

/// Nesting beyond this is refused: other JSON readers, our own of fragments among them, stop at 128.
pub(crate) const MAX_DEPTH: usize = 100;

/// Why a scan could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The slice ends before the value does.
    NeedMore,
    /// The bytes are not JSON.
    Bad,
    /// The value is nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// A string between its quotes, still escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawString<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) escaped: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::NeedMore)
    }

    /// Skips white space and returns the byte after it, not consumed.
    #[inline]
    pub(crate) fn next_token(&mut self) -> Result<u8, Stop> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Stop::NeedMore)
    }

    /// Skips white space and consumes `wanted`.
    #[inline]
    pub(crate) fn expect(&mut self, wanted: u8) -> Result<(), Stop> {
        if self.next_token()? != wanted {
            return Err(Stop::Bad);
        }
        self.at += 1;
        Ok(())
    }

    /// A string; the cursor stands on its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<RawString<'a>, Stop> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = find_special(self.bytes, at)?;
            match self.bytes[at] {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    let escape = *self.bytes.get(at + 1).ok_or(Stop::NeedMore)?;
                    at += match escape {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                        b'u' => {
                            let digits = self.bytes.get(at + 2..at + 6).ok_or(Stop::NeedMore)?;
                            if !digits.iter().all(u8::is_ascii_hexdigit) {
                                return Err(Stop::Bad);
                            }
                            6
                        }
                        _ => return Err(Stop::Bad),
                    };
                }
                _ => return Err(Stop::Bad), // a control character
            }
        }
        self.at = at + 1;
        Ok(RawString { bytes: &self.bytes[start..at], escaped })
    }

    /// `true`, `false` or `null`; the cursor stands on its first byte.
    pub(crate) fn literal(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        for word in [b"true".as_slice(), b"false", b"null"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(&rest[..word.len()]);
            }
            if word.starts_with(rest) {
                return Err(Stop::NeedMore);
            }
        }
        Err(Stop::Bad)
    }

    /// Any value, as its slice; the cursor stands on its first byte. Iterative: depth costs no stack.
    pub(crate) fn value(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        // One bit per open container: set for an object.
        let mut objects = [0_u64; MAX_DEPTH.div_ceil(64)];
        let mut depth = 0;
        loop {
            match self.next_token()? {
                b'"' => {
                    self.string()?;
                }
                b'-' | b'0'..=b'9' => {
                    self.number()?;
                }
                open @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(Stop::TooDeep);
                    }
                    let is_object = open == b'{';
                    let bit = 1 << (depth % 64);
                    let word = &mut objects[depth / 64];
                    *word = if is_object { *word | bit } else { *word & !bit };
                    depth += 1;
                    self.at += 1;
                    let close = if is_object { b'}' } else { b']' };
                    if self.next_token()? != close {
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    depth -= 1;
                }
                _ => {
                    self.literal()?;
                }
            }
            // A value is complete: go up as far as containers end, or on to the next value.
            loop {
                if depth == 0 {
                    return Ok(&self.bytes[start..self.at]);
                }
                let in_object = objects[(depth - 1) / 64] >> ((depth - 1) % 64) & 1 == 1;
                match (self.next_token()?, in_object) {
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        depth -= 1;
                    }
                    _ => return Err(Stop::Bad),
                }
            }
        }
    }

    /// A key and its colon.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<RawString<'a>, Stop> {
        if self.next_token()? != b'"' {
            return Err(Stop::Bad);
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }
}

/// The next quote, backslash or control character, eight bytes at a time.
#[inline]
fn find_special(bytes: &[u8], mut at: usize) -> Result<usize, Stop> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        // 0x22 is the quote, 0x5c the backslash.
        let quote = word ^ (ONES * 0x22);
        let backslash = word ^ (ONES * 0x5c);
        // The lowest flagged byte is exact; borrows only disturb those above it.
        let found = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let found = found & HIGHS;
        if found != 0 {
            return Ok(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            return Ok(at);
        }
        at += 1;
    }
    Err(Stop::NeedMore)
}

/// The text of an escaped string. Escapes were checked by the scan; lone surrogates become U+FFFD.
pub(crate) fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        if byte != b'\\' {
            text.push(byte);
            at += 1;
            continue;
        }
        let escape = raw.get(at + 1).copied().unwrap_or(b'\\');
        at += 2;
        match escape {
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'u' => {
                let mut code = hex4(raw, at).unwrap_or(0xFFFD);
                at += 4;
                let low = (raw.get(at..at + 2) == Some(b"\\u")).then(|| hex4(raw, at + 2)).flatten();
                if let (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) = (code, low) {
                    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                    at += 6;
                }
                let character = char::from_u32(code).unwrap_or('\u{FFFD}');
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => text.push(other),
        }
    }
    text
}

fn hex4(raw: &[u8], at: usize) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(raw.get(at..at + 4)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<usize, Stop> {
        Cursor::new(text.as_bytes()).value().map(<[u8]>::len)
    }

    #[test]
    fn values_end_where_they_end() {
        for text in [r#""a\"b\u00e9""#, "[1, [2, {}], {\"a\": [true, null]}]", "{}", "[]", "{\"k\": -1.5e+3}"]
        {
            let padded = format!("{text} ,");
            assert_eq!(value(&padded), Ok(text.len()), "{text}");
            for cut in 1..text.len() {
                assert_eq!(value(&text[..cut]), Err(Stop::NeedMore), "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn wrong_values_are_refused() {
        for text in
            ["[1,]", "{\"a\" 1}", "{1: 2}", "\"\\d\"", "\"\n\"", "01,", "-,", "1.e5,", "[}", "nul,", "NaN,"]
        {
            assert_eq!(value(text), Err(Stop::Bad), "{text}");
        }
        assert_eq!(value(&"[".repeat(MAX_DEPTH + 1)), Err(Stop::TooDeep));
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(br#"a\"\\\/\n\u00e9\ud83d\ude00\ud83d"#), "a\"\\/\né😀\u{FFFD}".as_bytes());
    }
}
