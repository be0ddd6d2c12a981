//! The fuzzers' corpus, as an ordinary test: no reader may panic on any of it, nor on mutations of it.

use std::path::Path;

use hotspan_store::first_difference;

use crate::{chrome_json, read};

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/chrome");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus is part of the repository")
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 10, "the corpus has {} files", files.len());
    files
}

/// Reads content; what can be read must also survive an export.
fn exercise(content: &[u8]) {
    if let Ok(trace) = read(content) {
        let again = read(chrome_json(&trace)).expect("the export is readable");
        assert_eq!(first_difference(&trace, &again), None, "{}", String::from_utf8_lossy(content));
    }
}

#[test]
fn the_corpus_is_read_without_a_panic() {
    for (name, content) in corpus() {
        println!("{name}");
        exercise(&content);
    }
}

#[test]
fn mutations_of_the_corpus_are_read_without_a_panic() {
    // A small generator of our own: the same mutations in every run.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let pieces = [
        &b"\""[..],
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\xff",
        b"\n",
        b"\"ph\"",
        b"1e999",
        b"-",
        b"NaN",
        b"null",
    ];
    for (_, content) in corpus() {
        for _ in 0..1_000 {
            let mut content = content.clone();
            for _ in 0..=random(4) {
                let at = random(content.len());
                match random(4) {
                    0 => content.truncate(at),
                    1 => {
                        let end = (at + random(40)).min(content.len());
                        content.drain(at..end);
                    }
                    2 => {
                        let piece = pieces[random(pieces.len())];
                        content.splice(at..at, piece.iter().copied());
                    }
                    _ => {
                        if let Some(byte) = content.get_mut(at) {
                            *byte ^= 1 << random(8);
                        }
                    }
                }
            }
            exercise(&content);
        }
    }
}
