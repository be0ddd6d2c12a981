//! Any bytes that pass for a speedscope profile.
//!
//! `cargo +nightly fuzz run speedscope`

#![no_main]

mod round_trip;

use hotspan_formats::import::speedscope::Speedscope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| round_trip::round_trip(&Speedscope, content));
