//! Any bytes that pass for collapsed stacks.
//!
//! `cargo +nightly fuzz run collapsed`

#![no_main]

mod round_trip;

use hotspan_formats::import::collapsed::Collapsed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| round_trip::round_trip(&Collapsed, content));
