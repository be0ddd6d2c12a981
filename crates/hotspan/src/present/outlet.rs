//! Where text leaves the program: stdout and stderr behind a last check.
//!
//! Presenters spell out what they quote, because they know where a line ends and how wide it is. Here nothing passes that they
//! forgot: of control characters only the ends of lines, tabs and, where colours are wanted, colours.

use std::io::{self, BufWriter, IsTerminal, Write};

use hotspan_store::{is_unsafe_to_show, visible_lines};

use super::Style;

/// A stream that people look at.
pub(crate) struct Outlet<W> {
    inner: W,
    style: Style,
}

impl Outlet<BufWriter<io::StdoutLock<'static>>> {
    /// For data.
    pub(crate) fn stdout() -> Self {
        let stdout = io::stdout();
        Self { style: Style::of(stdout.is_terminal()), inner: BufWriter::new(stdout.lock()) }
    }
}

impl Outlet<io::StderrLock<'static>> {
    /// For talk.
    pub(crate) fn stderr() -> Self {
        let stderr = io::stderr();
        Self { style: Style::of(stderr.is_terminal()), inner: stderr.lock() }
    }
}

impl<W> Outlet<W> {
    /// Whether it shows colours.
    pub(crate) fn style(&self) -> Style {
        self.style
    }
}

impl<W: Write> Write for Outlet<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        if text.contains(|character| is_unsafe_to_show(character) && character != '\t') {
            self.inner.write_all(checked(&text, self.style.color).as_bytes())?;
        } else {
            self.inner.write_all(text.as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A text with everything spelled out but tabs, ends of lines and colours that are wanted.
fn checked(text: &str, with_color: bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(['\x1b', '\t']) {
        out.push_str(&visible_lines(&rest[..at]));
        let from = &rest[at..];
        let kept = match color_length(from) {
            Some(length) if with_color => length,
            _ if from.starts_with('\t') => 1,
            _ => 0,
        };
        out.push_str(&from[..kept]);
        let spelled = usize::from(kept == 0);
        out.push_str(&visible_lines(&from[..spelled]));
        rest = &from[kept + spelled..];
    }
    out.push_str(&visible_lines(rest));
    out
}

/// The length of a sequence that sets a colour, at the beginning of a text.
fn color_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\x1b[")?;
    let end = parameters.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    parameters[end..].starts_with('m').then_some("\x1b[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, color: bool) -> String {
        let mut outlet = Outlet { inner: Vec::new(), style: Style { color } };
        outlet.write_all(text.as_bytes()).expect("memory");
        String::from_utf8(outlet.inner).expect("text")
    }

    #[test]
    fn only_wanted_colours_pass() {
        let text = "\x1b[1;33ma\x1b[0m\tb\n\x1b[2J\x1b]0;x\u{7}\u{202e}\x1b";
        assert_eq!(written(text, true), "\x1b[1;33ma\x1b[0m\tb\n\\x1b[2J\\x1b]0;x\\x07\\u{202e}\\x1b");
        assert_eq!(written("\x1b[1;33ma\x1b[0m\n", false), "\\x1b[1;33ma\\x1b[0m\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut outlet = Outlet { inner: Vec::new(), style: Style::default() };
        outlet.write_all(b"a\xff\x9b\n").expect("memory");
        assert_eq!(outlet.inner, "a\u{fffd}\u{fffd}\n".as_bytes());
    }
}
