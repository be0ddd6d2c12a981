//! Where a function's source ends: what Python's `inspect.getblock` answers, found by indentation.
//!
//! Only as much of Python is understood as it takes to join physical lines to logical ones: strings, brackets,
//! continuations and comments.

/// How many lines the function has whose source begins with `lines`, decorators included.
pub(super) fn block_length(lines: &[&str]) -> usize {
    let mut logical = Logical { lines, next: 0 };
    let mut last = 0;
    // The decorators and the line that defines the function.
    let indent = loop {
        let Some(line) = logical.next() else { return last };
        match line.kind {
            Kind::Blank | Kind::Comment => {}
            Kind::Code => {
                last = line.end;
                if !line.starts_with_decorator {
                    break line.indent;
                }
            }
        }
    };
    let mut body: Option<usize> = None;
    for line in logical {
        match line.kind {
            Kind::Blank => {}
            Kind::Comment if body.is_some_and(|body| line.indent >= body) => last = line.end,
            Kind::Comment => {}
            Kind::Code if line.indent <= indent => break,
            Kind::Code => {
                body.get_or_insert(line.indent);
                last = line.end;
            }
        }
    }
    last
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Comment,
    Code,
}

struct LogicalLine {
    kind: Kind,
    indent: usize,
    starts_with_decorator: bool,
    /// The number of physical lines up to its end.
    end: usize,
}

/// Physical lines joined to logical ones.
struct Logical<'a> {
    lines: &'a [&'a str],
    next: usize,
}

impl Iterator for Logical<'_> {
    type Item = LogicalLine;

    fn next(&mut self) -> Option<LogicalLine> {
        let first = self.lines.get(self.next)?;
        let text = first.trim_start_matches([' ', '\t', '\x0c']);
        let indent = indentation(first);
        let kind = match text.chars().next() {
            None | Some('\n' | '\r') => Kind::Blank,
            Some('#') => Kind::Comment,
            Some(_) => Kind::Code,
        };
        let mut state = State::default();
        while let Some(line) = self.lines.get(self.next) {
            self.next += 1;
            if kind != Kind::Code || !state.continues_after(line) {
                break;
            }
        }
        Some(LogicalLine { kind, indent, starts_with_decorator: text.starts_with('@'), end: self.next })
    }
}

fn indentation(line: &str) -> usize {
    let mut column = 0;
    for character in line.chars() {
        match character {
            ' ' => column += 1,
            '\t' => column = (column / 8 + 1) * 8,
            '\x0c' => column = 0,
            _ => break,
        }
    }
    column
}

/// What is open at the end of a physical line.
#[derive(Default)]
struct State {
    brackets: usize,
    /// The quote of an open string, and whether it is a triple one.
    quote: Option<(u8, bool)>,
}

impl State {
    /// Reads a physical line; true when the logical line goes on after it.
    fn continues_after(&mut self, line: &str) -> bool {
        let bytes = line.trim_end_matches(['\n', '\r']).as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let triple = bytes.get(at..at + 3) == Some(&[byte; 3]);
            match (self.quote, byte) {
                (_, b'\\') if at + 1 == bytes.len() => return true,
                (Some(_), b'\\') => at += 1,
                (Some((quote, false)), _) if byte == quote => self.quote = None,
                (Some((quote, true)), _) if byte == quote && triple => {
                    self.quote = None;
                    at += 2;
                }
                (Some(_), _) => {}
                (None, b'#') => break,
                (None, b'"' | b'\'') => {
                    self.quote = Some((byte, triple));
                    at += if triple { 2 } else { 0 };
                }
                (None, b'(' | b'[' | b'{') => self.brackets += 1,
                (None, b')' | b']' | b'}') => self.brackets = self.brackets.saturating_sub(1),
                (None, _) => {}
            }
            at += 1;
        }
        // A string of one line ends with it, whatever the file says.
        if self.quote.is_some_and(|(_, triple)| !triple) {
            self.quote = None;
        }
        self.brackets > 0 || self.quote.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::block_length;

    fn length(source: &str) -> usize {
        block_length(&source.split_inclusive('\n').collect::<Vec<_>>())
    }

    #[test]
    fn a_function_ends_where_its_indentation_does() {
        assert_eq!(length("def f(n):\n    x = 1\n\n    return x\n\n# not ours\nprint(1)\n"), 4);
        assert_eq!(length("    def f(self):\n        return 1\n\n    def g(self):\n        pass\n"), 2);
        assert_eq!(length("@profile\n@other(\n    1)\nasync def f():\n    await x\ny = 1\n"), 5);
    }

    #[test]
    fn one_line_is_a_function_too() {
        assert_eq!(length("def f(): pass\nx = 1\n"), 1);
        assert_eq!(length("def f(a,\n      b): return a\nx = 1\n"), 2);
    }

    #[test]
    fn strings_brackets_and_continuations_hide_indentation() {
        assert_eq!(
            length(
                "def f():\n    x = '''\nnot the end\n'''\n    y = [\n1,\n2]\n    z = 1 + \\\n2\nend = 1\n"
            ),
            9
        );
        assert_eq!(length("def f():\n    a = \"#\" # (\n    return a\nx\n"), 3);
        assert_eq!(length("def f():\n    a = r'\\'' \n    return a\nx\n"), 3);
    }

    #[test]
    fn comments_belong_to_the_body_when_indented_like_it() {
        assert_eq!(length("def f():\n    x = 1\n    # ours\n# theirs\ny = 1\n"), 3);
        assert_eq!(length("def f():\n  # first\n  x = 1\n  def g():\n    pass\n# c\n  return g\n"), 7);
    }

    #[test]
    fn the_end_of_the_file_ends_everything() {
        assert_eq!(length(""), 0);
        assert_eq!(length("def f():\n    return (\n"), 2);
        assert_eq!(length("@only\n"), 1);
    }
}
