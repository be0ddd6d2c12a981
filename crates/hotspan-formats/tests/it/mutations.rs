//! The fuzzers' corpora as ordinary test data, and mutations of it: the same in every run.

use std::path::Path;

/// The files of a fuzzer's corpus, with their names.
pub(crate) fn named_corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(folder).expect("the corpus is part of the repository");
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The files of a fuzzer's corpus.
pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
    named_corpus(name).into_iter().map(|(_, content)| content).collect()
}

/// Hands out contents that were cut, spliced with pieces of syntax, and had bits flipped.
pub(crate) fn for_each_mutation(
    contents: &[Vec<u8>],
    count: usize,
    pieces: &[&[u8]],
    mut exercise: impl FnMut(&[u8]),
) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for content in contents {
        for _ in 0..count {
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
