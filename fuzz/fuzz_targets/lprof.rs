//! Any bytes as a line_profiler file: an error or a trace, never a panic; and a trace must survive being exported and
//! imported again.
//!
//! `cargo +nightly fuzz run lprof`

#![no_main]

use std::io::Cursor;

use hotspan_formats::export::lprof::Lprof;
use hotspan_formats::{Exporter, ImportError, Input};
use hotspan_store::Trace;
use libfuzzer_sys::fuzz_target;

fn read(content: &[u8]) -> Result<Trace, ImportError> {
    hotspan_formats::read(Input::new(Cursor::new(content.to_vec()), None, None, &mut ())?)
}

fuzz_target!(|content: &[u8]| {
    let Ok(trace) = read(content) else { return };
    let mut written = Vec::new();
    Lprof.write(&trace.clone().into(), &mut written).expect("writing to memory cannot fail");
    let again = read(&written).expect("what was exported can be imported");
    let mut second = Vec::new();
    Lprof.write(&again.clone().into(), &mut second).expect("writing to memory cannot fail");
    assert_eq!(written, second);
});
