//! Any bytes as a `.hotspan` file: an error or a trace, never a panic; and a trace must survive being written again.
//!
//! `cargo +nightly fuzz run hotspan_file`

#![no_main]

use hotspan_store::{file, first_difference};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = file::read(bytes, &mut |_| true) else { return };
    let mut again = Vec::new();
    file::write_trace(&trace, &mut again).expect("a trace that was read can be written");
    let again = file::read(again.as_slice(), &mut |_| true).expect("what was written can be read");
    // NaN, which no JSON can bring, differs from itself.
    if first_difference(&trace, &trace.clone()).is_none() {
        assert_eq!(first_difference(&trace, &again), None);
    }
});
