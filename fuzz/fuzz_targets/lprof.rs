//! Any bytes as a line_profiler file: an error or a trace, never a panic; and what was exported is exported again as it was.

#![no_main]

mod reading;

use hotspan_formats::export::lprof;
use hotspan_formats::import::lprof::Lprof;
use libfuzzer_sys::fuzz_target;
use reading::{read_as, survives_our_file, written};

fuzz_target!(|content: &[u8]| {
    let Some(trace) = read_as(&Lprof, content) else { return };
    survives_our_file(&trace);
    let first = written(&lprof::Lprof, &trace);
    let again = read_as(&Lprof, &first).expect("what was exported can be imported");
    assert_eq!(first, written(&lprof::Lprof, &again));
});
