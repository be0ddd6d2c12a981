//! Text in XML and HTML: names from programs and files, which may be anything.

/// Text that can stand anywhere in XML. Characters that XML forbids altogether are replaced.
pub(in crate::export) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            character if character.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "</title><script>alert('1')</script>&\u{0}\u{1b}]]>\"";
        let safe = escaped(hostile);
        for bad in ['<', '>', '"', '\'', '\u{0}', '\u{1b}'] {
            assert!(!safe.contains(bad), "{safe}");
        }
    }
}
