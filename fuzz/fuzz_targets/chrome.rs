//! Any bytes as a Kineto or Chrome trace, compressed or not: an error or a trace, never a panic; and a trace must
//! survive being exported and imported again.
//!
//! `cargo +nightly fuzz run chrome`

#![no_main]

use std::io::Cursor;

use hotspan_formats::export::chrome::Chrome;
use hotspan_formats::{Exporter, ImportError, Input};
use hotspan_store::{Trace, first_difference};
use libfuzzer_sys::fuzz_target;

fn read(content: &[u8]) -> Result<Trace, ImportError> {
    hotspan_formats::read(Input::new(Cursor::new(content.to_vec()), None, None, &mut ())?)
}

fuzz_target!(|content: &[u8]| {
    let Ok(trace) = read(content) else { return };
    let mut json = Vec::new();
    Chrome.write(&trace.clone().into(), &mut json).expect("writing to memory cannot fail");
    let again = read(&json).expect("what was exported can be imported");
    assert_eq!(first_difference(&trace, &again), None);
});
