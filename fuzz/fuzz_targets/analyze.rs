//! Any bytes as a trace of any format, then every analysis and exporter on it. The first byte picks which.

#![no_main]

mod everything;

use std::io::Cursor;

use hotspan_formats::{Input, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    let Some((&choice, content)) = content.split_first() else { return };
    let length = Some(content.len() as u64);
    let mut progress = ();
    let Ok(input) = Input::new(Cursor::new(content.to_vec()), None, length, &mut progress) else { return };
    if let Ok(trace) = read(input) {
        everything::everything(trace, choice);
    }
});
