//! Every file of the fuzzer's corpus goes through the reader.

use std::path::PathBuf;

use hotspan_store::{TraceBuilder, file};

use crate::sample::{read, trace, write};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/hotspan_file")
}

/// The files as this version writes them. `HOTSPAN_WRITE_CORPUS=1 cargo test` renews them.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let whole = write(&trace(30));
    let cut = whole[..whole.len() - 100].to_vec();
    let mut damaged = whole.clone();
    damaged[whole.len() - 2_000] ^= 0xFF;
    let empty = write(&TraceBuilder::new().finish());
    let (mut builder, mut writer) = (TraceBuilder::new(), file::Writer::create(Vec::new()).unwrap());
    for number in 0..3 {
        crate::sample::push_event(&mut builder, number);
        writer.append(&mut builder).unwrap();
    }
    let chunks = writer.finish(&mut builder).unwrap();
    vec![
        ("whole.hotspan", whole),
        ("cut.hotspan", cut),
        ("damaged.hotspan", damaged),
        ("empty.hotspan", empty),
        ("chunks.hotspan", chunks),
    ]
}

#[test]
fn no_corpus_file_breaks_the_reader() {
    if std::env::var_os("HOTSPAN_WRITE_CORPUS").is_some() {
        std::fs::create_dir_all(corpus()).unwrap();
        for (name, bytes) in seeds() {
            std::fs::write(corpus().join(name), bytes).unwrap();
        }
    }
    let mut paths: Vec<_> = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= seeds().len());
    for path in paths {
        // Whatever comes out, error or trace, must be possible to look at.
        if let Ok(trace) = read(&std::fs::read(&path).unwrap()) {
            assert_eq!(hotspan_store::first_difference(&trace, &trace.clone()), None, "{}", path.display());
            let again = read(&write(&trace)).unwrap();
            assert_eq!(hotspan_store::first_difference(&trace, &again), None, "{}", path.display());
        }
    }
}

#[test]
fn files_of_this_version_stay_readable() {
    let expected =
        [("whole.hotspan", true), ("empty.hotspan", true), ("chunks.hotspan", true), ("cut.hotspan", false)];
    for (name, whole) in expected {
        let trace = read(&std::fs::read(corpus().join(name)).unwrap()).unwrap();
        assert_eq!(trace.losses().count(hotspan_store::Loss::TruncatedFile) == 0, whole, "{name}");
    }
}
