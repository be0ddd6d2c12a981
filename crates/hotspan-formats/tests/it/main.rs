//! Importers and exporters against real and broken files.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod broken;
mod chrome_events;
mod compression;
mod corpus;
mod everything;
mod lprof;
mod mutations;
mod prof;
mod real_traces;
mod stacks;

use std::io::Cursor;

use hotspan_formats::export::chrome::Chrome;
use hotspan_formats::{Exporter, ImportError, Input};
use hotspan_store::{Loss, Trace, first_difference};

/// Reads content as a file without a name.
fn read(content: impl Into<Vec<u8>>) -> Result<Trace, ImportError> {
    hotspan_formats::read(Input::new(Cursor::new(content.into()), None, None, &mut ())?)
}

/// The trace as Chrome JSON, checked to be valid.
fn chrome_json(trace: &Trace) -> Vec<u8> {
    let mut json = Vec::new();
    Chrome.write(&trace.clone().into(), &mut json).unwrap();
    if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&json) {
        panic!("exported JSON is not valid: {error}: {}", String::from_utf8_lossy(&json));
    }
    json
}

/// Reads content and proves that neither export loses anything of it.
#[track_caller]
fn check(content: impl Into<Vec<u8>>) -> Trace {
    let trace = check_hotspan(content);
    let again = read(chrome_json(&trace)).expect("the export is readable");
    assert_eq!(first_difference(&trace, &again), None, "Chrome round trip");
    trace
}

/// Reads content and proves that a .hotspan file loses nothing of it.
#[track_caller]
fn check_hotspan(content: impl Into<Vec<u8>>) -> Trace {
    let trace = read(content).expect("readable");
    let mut file = Vec::new();
    hotspan_store::file::write_trace(&trace, &mut file).unwrap();
    let again = read(file).expect("the .hotspan file is readable");
    assert_eq!(first_difference(&trace, &again), None, ".hotspan round trip");
    let cuts = |trace: &Trace| trace.losses().count(Loss::TruncatedFile);
    assert_eq!(cuts(&again), cuts(&trace));
    trace
}
