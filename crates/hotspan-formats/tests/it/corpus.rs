//! The fuzzers' corpus, as an ordinary test: no reader may panic on any of it, nor on mutations of it.

use hotspan_store::first_difference;

use crate::mutations::{corpus, for_each_mutation};
use crate::{chrome_json, read};

/// Reads content; what can be read must also survive an export.
fn exercise(content: &[u8]) {
    if let Ok(trace) = read(content) {
        let again = read(chrome_json(&trace)).expect("the export is readable");
        assert_eq!(first_difference(&trace, &again), None, "{}", String::from_utf8_lossy(content));
    }
}

#[test]
fn the_corpus_and_its_mutations_are_read_without_a_panic() {
    const PIECES: [&[u8]; 15] = [
        b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\xff", b"\n", b"\"ph\"", b"1e999", b"-", b"NaN",
        b"null",
    ];
    let contents = corpus("chrome");
    assert!(contents.len() >= 10, "the corpus has {} files", contents.len());
    contents.iter().for_each(|content| exercise(content));
    for_each_mutation(&contents, 1_000, &PIECES, exercise);
}
