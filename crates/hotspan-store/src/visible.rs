//! Text of others made safe to show: what a terminal would obey instead of showing is spelled out.
//!
//! A name in a trace may hold anything. Control characters move the cursor, set the clipboard or clear the screen; marks of
//! direction show words in another order than they have; characters without a width make two names look like one. They are
//! written as Rust and Python write them (`\x1b`, `\u{202e}`). Ordinary text is left as it is, backslashes included.

use std::borrow::Cow;

/// One line: ends of lines are spelled out too, so that no name can pretend to be a row of its own.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    spelled_out(text, |character| character == '\n' || is_unsafe_to_show(character))
}

/// Several lines: the ends of lines stay.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    spelled_out(text, is_unsafe_to_show)
}

/// Whether a character does something else than to appear. The end of a line does not count; its meaning depends on the place.
#[must_use]
pub fn is_unsafe_to_show(character: char) -> bool {
    match character {
        '\n' => false,
        // Joiners (U+200C, U+200D) stay: scripts and emoji are written with them.
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => true,
        _ => character.is_control(),
    }
}

fn spelled_out(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_hidden) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for character in text[first..].chars() {
        match character {
            _ if !is_hidden(character) => out.push(character),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if u32::from(character) < 0x100 => out.push_str(&format!("\\x{:02x}", u32::from(character))),
            _ => out.push_str(&format!("\\u{{{:x}}}", u32::from(character))),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        assert_eq!(visible("a\u{1b}]52;c;eA==\u{7}b"), "a\\x1b]52;c;eA==\\x07b");
        assert_eq!(visible("\u{9b}31m\u{7f}\0"), "\\x9b31m\\x7f\\x00");
        assert_eq!(visible("x\u{202e}y\u{2066}\u{200f}\u{2028}"), "x\\u{202e}y\\u{2066}\\u{200f}\\u{2028}");
        assert_eq!(visible("one\r\n\ttwo"), "one\\r\\n\\ttwo");
        assert_eq!(visible_lines("one\r\ntwo\n"), "one\\r\ntwo\n");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["aten::add", "C:\\new\\table", "größe", "שלום", "می\u{200c}خواهم", "👩\u{200d}🚀", ""]
        {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
