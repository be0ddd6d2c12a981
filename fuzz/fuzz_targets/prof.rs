//! Any bytes as a `.prof` file: an error or a trace, never a panic; and what was read must survive being written again.

#![no_main]

mod reading;

use hotspan_formats::export::prof;
use hotspan_formats::import::prof::Prof;
use libfuzzer_sys::fuzz_target;
use reading::{read_as, survives_our_file, written};

fuzz_target!(|content: &[u8]| {
    let Some(trace) = read_as(&Prof, content) else { return };
    survives_our_file(&trace);
    read_as(&Prof, &written(&prof::Prof, &trace)).expect("what was exported can be imported");
});
