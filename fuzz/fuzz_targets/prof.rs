//! Any bytes as a `.prof` file: an error or a trace, never a panic; and what was read must survive being written again.
//!
//! `cargo +nightly fuzz run prof`

#![no_main]

use std::io::Cursor;

use hotspan_formats::export::prof::Prof;
use hotspan_formats::{Exporter, Input, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let open = |bytes: Vec<u8>| Input::new(Cursor::new(bytes), None, None, &mut ()).and_then(read);
    let Ok(trace) = open(bytes.to_vec()) else { return };
    let mut written = Vec::new();
    Prof.write(&trace.clone().into(), &mut written).expect("a trace that was read can be written");
    open(written).expect("what was written can be read");
});
