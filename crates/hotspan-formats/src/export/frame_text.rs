//! Frames as other tools write them: `function (file:line)`.

use hotspan_analyze::call_tree::Callee;

/// The text of a frame.
pub(crate) fn frame_text(callee: &Callee) -> String {
    match (callee.file.as_str(), callee.line) {
        ("", _) => callee.name.clone(),
        (file, 0) => format!("{} ({file})", callee.name),
        (file, line) => format!("{} ({file}:{line})", callee.name),
    }
}

/// A frame's name, file and line from its text; a text of another form is a name.
pub(crate) fn parse_frame(text: &str) -> (&str, &str, u32) {
    let parse = || {
        let (name, callee) = text.strip_suffix(')')?.rsplit_once(" (")?;
        let (file, line) = match callee.rsplit_once(':') {
            Some((file, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => {
                (file, line.parse().ok()?)
            }
            _ => (callee, 0),
        };
        // `thread (123)` and `operator (int)` name no file.
        (line != 0 || file.contains(['.', '/', '<'])).then_some((name, file, line))
    };
    parse().unwrap_or((text, "", 0))
}

#[cfg(test)]
mod tests {
    use super::parse_frame;

    #[test]
    fn frames_are_taken_apart() {
        assert_eq!(parse_frame("work (a b.py:12)"), ("work", "a b.py", 12));
        assert_eq!(parse_frame("<module> (/x/y.py)"), ("<module>", "/x/y.py", 0));
        assert_eq!(parse_frame("memcpy (libc.so.6)"), ("memcpy", "libc.so.6", 0));
        assert_eq!(parse_frame("thread (123)"), ("thread (123)", "", 0));
        assert_eq!(parse_frame("f (a.py:99999999999)"), ("f (a.py:99999999999)", "", 0));
        assert_eq!(parse_frame(""), ("", "", 0));
    }
}
