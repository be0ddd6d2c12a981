//! Any bytes as a speedscope profile: an error or a trace, never a panic; and a trace must survive our own file.

#![no_main]

mod reading;

use hotspan_formats::import::speedscope::Speedscope;
use libfuzzer_sys::fuzz_target;
use reading::{read_as, survives_our_file};

fuzz_target!(|content: &[u8]| {
    if let Some(trace) = read_as(&Speedscope, content) {
        survives_our_file(&trace);
    }
});
