//! `.prof` files: those of the fuzzer's corpus and mutations of them, which no reader may panic on.

use std::path::Path;

use hotspan_formats::Exporter;
use hotspan_formats::export::prof::Prof;
use hotspan_store::{Loss, Trace};

use crate::mutations::for_each_mutation;
use crate::read;

fn content(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/prof").join(name)).unwrap()
}

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    Prof.write(&trace.clone().into(), &mut bytes).unwrap();
    bytes
}

#[test]
fn every_version_of_marshal_says_the_same() {
    let new = read(content("recursion.prof")).unwrap();
    let old = read(content("recursion_version_0.prof")).unwrap();
    assert_eq!(written(&new), written(&old));
    assert_eq!(new.source().format, "Python profile (.prof)");
    let calls: Vec<(i64, i64)> =
        new.profile().calls.rows().map(|row| (row.calls, row.primitive_calls)).collect();
    assert!(calls.contains(&(15, 1)), "{calls:?}");
    assert_eq!(written(&read(written(&new)).unwrap()), written(&new), "what is written is what is read");
    assert_eq!(read(content("sampled.prof")).unwrap().profile().calls.len(), new.profile().calls.len());
    assert_eq!(read(content("old_profile_module.prof")).unwrap().profile().calls.len(), 2);
}

#[test]
fn what_is_no_profile_is_an_error_or_a_loss() {
    for name in ["cut_off.prof", "bad_reference.prof", "long_tuple.prof", "nested.prof"] {
        assert!(read(content(name)).is_err(), "{name}");
    }
    let large = read(content("large_counts.prof")).unwrap();
    assert_eq!(large.losses().count(Loss::NotANumber), 1);
    assert_eq!(large.profile().calls.row(0).calls, i64::MAX);
    let trailing = [content("recursion.prof"), b"more".to_vec()].concat();
    assert_eq!(read(trailing).unwrap().losses().count(Loss::TrailingData), 1);
}

#[test]
fn mutations_are_read_without_a_panic() {
    // Types of marshal's values, with and without the flag of a reference, and lengths that are too large.
    let pieces =
        [&b"\xdb"[..], b"[\x00\x00\x00\x10", b")\xff", b"r\x00\x00\x00\x00", b"{", b"0", b"\xff\xff\xff\x7f"];
    let names = ["recursion.prof", "recursion_version_0.prof", "large_counts.prof", "nested.prof"];
    for_each_mutation(&names.map(content), 3_000, &pieces, |bytes| {
        if let Ok(trace) = read(bytes.to_vec()) {
            written(&trace);
        }
    });
}
