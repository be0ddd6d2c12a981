//! Traces as a profiler could have written them, made from the fuzzer's bytes, then every analysis and exporter on them.
//!
//! Mutated JSON is seldom a trace with launches, steps and memory in it. Here each byte is a choice, so that nearly every input is.

#![no_main]

mod everything;
mod generate;
mod reading;

use hotspan_formats::import::chrome::Chrome;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|choices: &[u8]| {
    let Some((&choice, choices)) = choices.split_first() else { return };
    let json = generate::trace(choices);
    let trace = reading::read_as(&Chrome, json.as_bytes()).expect("what was generated is a trace");
    everything::everything(trace, choice);
});
