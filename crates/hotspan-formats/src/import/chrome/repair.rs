//! Broken JSON, read as it was meant.
//!
//! Kineto has written names with unescaped quotes and backslashes, raw control characters, and NaN. An event that is
//! not valid JSON is read once more by the rules here, rewritten as valid JSON, and handed back to the normal reader.
//! What cannot be read even so is skipped up to the next event, which [`super::next_event`] finds.

use super::numbers::is_number;
use super::scan::{MAX_DEPTH, Stop};

/// What a repair found wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repairs {
    pub(crate) strings: u64,
    pub(crate) numbers: u64,
}

/// The value at the start of `bytes` as valid JSON, its length in `bytes`, and what was wrong with it.
pub(crate) fn repair(bytes: &[u8], ended: bool) -> Result<(Vec<u8>, usize, Repairs), Stop> {
    let mut repair = Repair { bytes, at: 0, out: Vec::new(), repairs: Repairs::default(), ended };
    repair.value(0)?;
    Ok((repair.out, repair.at, repair.repairs))
}

struct Repair<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    repairs: Repairs,
    /// Whether nothing follows `bytes`: then what is missing will not come.
    ended: bool,
}

impl Repair<'_> {
    fn more(&self) -> Stop {
        if self.ended { Stop::Bad } else { Stop::NeedMore }
    }

    fn token(&mut self) -> Result<u8, Stop> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied().ok_or(self.more())
    }

    fn value(&mut self, depth: usize) -> Result<(), Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        match self.token()? {
            b'"' => self.string(),
            b'{' => self.container(b'{', b'}', depth),
            b'[' => self.container(b'[', b']', depth),
            _ => self.word(),
        }
    }

    fn container(&mut self, open: u8, close: u8, depth: usize) -> Result<(), Stop> {
        self.at += 1;
        self.out.push(open);
        let mut first = true;
        loop {
            let token = self.token()?;
            if token == close {
                self.at += 1;
                self.out.push(close);
                return Ok(());
            }
            if token == b',' {
                // Commas are written anew, so that doubled and trailing ones vanish.
                self.at += 1;
                continue;
            }
            if !first {
                self.out.push(b',');
            }
            first = false;
            if open == b'{' {
                if token != b'"' {
                    return Err(Stop::Bad);
                }
                self.string()?;
                if self.token()? != b':' {
                    return Err(Stop::Bad);
                }
                self.at += 1;
                self.out.push(b':');
            }
            self.value(depth + 1)?;
            if !matches!(self.token()?, b',' | b'}' | b']') {
                return Err(Stop::Bad);
            }
        }
    }

    /// A number, a literal, or something that should have been one.
    fn word(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let ends =
            |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']' | b'"' | b'{' | b'[');
        let length = self.bytes[start..].iter().position(ends).ok_or(self.more())?;
        let word = &self.bytes[start..start + length];
        self.at += length;
        let unsigned =
            word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word).to_ascii_lowercase();
        let not_a_number = unsigned.starts_with(b"nan") || unsigned == b"inf" || unsigned == b"infinity";
        if is_number(word) || [b"true".as_slice(), b"false", b"null"].contains(&word) {
            self.out.extend_from_slice(word);
        } else if not_a_number {
            self.repairs.numbers += 1;
            self.out.extend_from_slice(b"null");
        } else if let Some(number) = std::str::from_utf8(word).ok().and_then(|text| text.parse::<f64>().ok())
        {
            // "01", "1.", "+1": numbers to people, not to JSON.
            self.repairs.numbers += 1;
            let text = if number.is_finite() { number.to_string() } else { "null".to_owned() };
            self.out.extend_from_slice(text.as_bytes());
        } else {
            return Err(Stop::Bad);
        }
        Ok(())
    }

    /// A string whose end is where a string can end, whatever quotes come before. One backslash that escapes nothing
    /// means that none was meant to: `C:\new\dir` is a path, not a line break.
    fn string(&mut self) -> Result<(), Stop> {
        let (start, out_start) = (self.at, self.out.len());
        if !self.string_with(true)? {
            self.at = start;
            self.out.truncate(out_start);
            self.string_with(false)?;
        }
        Ok(())
    }

    /// A string with or without escapes; `false` when a backslash escapes nothing.
    fn string_with(&mut self, escapes: bool) -> Result<bool, Stop> {
        self.out.push(b'"');
        self.at += 1;
        let mut repaired = !escapes;
        loop {
            let byte = *self.bytes.get(self.at).ok_or(self.more())?;
            match byte {
                b'"' if self.string_may_end()? => break,
                b'"' => {
                    repaired = true;
                    self.out.extend_from_slice(b"\\\"");
                    self.at += 1;
                }
                b'\\' => {
                    let escape = *self.bytes.get(self.at + 1).ok_or(self.more())?;
                    let digits = self.bytes.get(self.at + 2..self.at + 6);
                    let length = match escape {
                        b'"' => 2,
                        _ if !escapes => 0,
                        b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                        b'u' if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => 6,
                        _ => return Ok(false),
                    };
                    if length > 0 {
                        self.out.extend_from_slice(&self.bytes[self.at..self.at + length]);
                        self.at += length;
                    } else {
                        self.out.extend_from_slice(b"\\\\");
                        self.at += 1;
                    }
                }
                0..0x20 => {
                    repaired = true;
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                    self.at += 1;
                }
                _ => {
                    self.out.push(byte);
                    self.at += 1;
                }
            }
        }
        self.out.push(b'"');
        self.at += 1;
        self.repairs.strings += u64::from(repaired);
        Ok(true)
    }

    /// Whether the quote at the cursor can close the string: a colon, a closing bracket, or a comma and something
    /// that begins a key or value must follow.
    fn string_may_end(&self) -> Result<bool, Stop> {
        let mut rest = self.bytes[self.at + 1..].iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        match rest.next().ok_or(self.more())? {
            b':' | b'}' | b']' => Ok(true),
            b',' => {
                let next = rest.next().ok_or(self.more())?;
                Ok(matches!(next, b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b']' | b'}'))
            }
            _ => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> (String, Repairs) {
        let (out, length, repairs) = repair(text.as_bytes(), true).unwrap();
        assert_eq!(length, text.len());
        serde_json::from_slice::<serde_json::Value>(&out).unwrap();
        (String::from_utf8(out).unwrap(), repairs)
    }

    #[test]
    fn quotes_inside_strings_are_kept() {
        let (text, repairs) = repaired(r#"{"name": "operator"" _a(std::string)", "ph": "X"}"#);
        assert_eq!(text, r#"{"name":"operator\"\" _a(std::string)","ph":"X"}"#);
        assert_eq!(repairs, Repairs { strings: 1, numbers: 0 });
    }

    #[test]
    fn backslashes_and_control_characters_are_kept() {
        let (text, _) =
            repaired("{\"name\": \"C:\\new\\x\ty\", \"ph\": \"X\", \"args\": {\"fine\": \"a\\nb\"}}");
        assert_eq!(text, r#"{"name":"C:\\new\\x\u0009y","ph":"X","args":{"fine":"a\nb"}}"#);
    }

    #[test]
    fn what_is_not_a_number_becomes_null() {
        let (text, repairs) = repaired(r#"{"a": -nan(ind), "b": [-Infinity, 01, 1.5, 01e999,], }"#);
        assert_eq!(text, r#"{"a":null,"b":[null,1,1.5,null]}"#);
        assert_eq!(repairs.numbers, 4);
    }
}
