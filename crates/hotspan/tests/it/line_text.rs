//! Whatever can be read of a damaged line_profiler file can be shown.

use std::io::Cursor;

use hotspan::line_text::{LineReportOptions, line_report, memory_report};
use hotspan_formats::Input;

use crate::mutations::{corpus, for_each_mutation};

/// Shows content; returns whether it can be read.
fn show(content: &[u8]) -> bool {
    let mut progress = ();
    let input = Input::new(Cursor::new(content.to_vec()), None, None, &mut progress);
    let Ok(input) = input else { return false };
    let Ok(trace) = hotspan_formats::read(input) else { return false };
    let text = line_report(&trace, &LineReportOptions::default(), &|_| None);
    assert!(text.starts_with("Timer unit: 1e-09 s"), "{text}");
    let _ = memory_report(&trace, 3, &|_| None);
    true
}

#[test]
fn damaged_files_are_shown_without_a_panic() {
    // Opcodes of pickle that take something from the stack, the memo or the file, and lengths that are too large.
    const PIECES: [&[u8]; 8] = [b".", b"(", b"R", b"h\xff", b"\x8c\xff", b"X\xff\xff\xff\x7f", b"\x94", b"u"];
    let contents = corpus("lprof");
    assert!(contents.iter().filter(|content| show(content)).count() >= 7);
    for_each_mutation(&contents, 400, &PIECES, |content| {
        show(content);
    });
}
