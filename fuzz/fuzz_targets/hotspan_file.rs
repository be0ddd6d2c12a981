//! Any bytes as a `.hotspan` file: an error or a trace, never a panic; and a trace must survive being written again.

#![no_main]

mod reading;

use hotspan_formats::import::hotspan::Hotspan;
use libfuzzer_sys::fuzz_target;
use reading::{read_as, survives_our_file};

fuzz_target!(|content: &[u8]| {
    if let Some(trace) = read_as(&Hotspan, content) {
        survives_our_file(&trace);
    }
});
