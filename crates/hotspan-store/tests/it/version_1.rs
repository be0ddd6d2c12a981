//! Files of format 1.1 are read as before.

use hotspan_store::file;

use crate::sample::{assert_same, read, trace, write};

/// What format 1.1 made of `trace(60)`.
const BYTES: &[u8] = include_bytes!("../data/format-1.1.hotspan");

#[test]
fn a_file_of_version_1_is_the_same_trace() {
    assert!(file::is_hotspan(BYTES));
    let old = read(BYTES).unwrap();
    assert_same(&trace(60), &old);
    assert_same(&read(&write(&old)).unwrap(), &old);
}
