//! Any bytes as a Kineto or Chrome trace, compressed or not: an error or a trace, never a panic; and a trace must
//! survive being exported and imported again.

#![no_main]

mod reading;

use hotspan_formats::export::chrome;
use hotspan_formats::import::chrome::Chrome;
use hotspan_store::first_difference;
use libfuzzer_sys::fuzz_target;
use reading::{read_as, survives_our_file, written};

fuzz_target!(|content: &[u8]| {
    let Some(trace) = read_as(&Chrome, content) else { return };
    let again =
        read_as(&Chrome, &written(&chrome::Chrome, &trace)).expect("what was exported can be imported");
    assert_eq!(first_difference(&trace, &again), None);
    survives_our_file(&trace);
});
