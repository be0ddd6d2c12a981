//! Kineto and Chrome traces: JSON with a `traceEvents` list, or the bare list.
//!
//! The JSON is never held as a tree, nor whole: a window slides over it, each event becomes a row as it passes, and
//! memory is what the trace itself takes. [`top_level`] and [`event_list`] walk over it; [`scan`] and [`numbers`] know JSON,
//! [`event`], [`fields`] and [`rows`] know events, [`repair`] knows what Kineto gets wrong, and
//! [`next_event`] where to go on after what cannot be read.

mod event;
mod event_list;
mod fields;
mod next_event;
mod numbers;
mod repair;
mod rows;
mod scan;
mod top_level;
mod window;

use std::io::Read;

use hotspan_store::{Loss, TraceBuilder};

use self::event::EventReader;
use self::top_level::TopLevel;
use self::window::Window;
use crate::error::ImportError;
use crate::import::{Importer, Sniff};
use crate::input::Input;

/// The importer of Kineto and Chrome traces.
pub struct Chrome;

impl Importer for Chrome {
    fn name(&self) -> &'static str {
        "Chrome trace"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') if memchr::memmem::find(head, b"\"traceEvents\"").is_some() => Sniff::Yes,
            Some(b'{' | b'[') => Sniff::Maybe,
            _ => Sniff::No,
        }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let bytes = read_json(&mut *input, builder, window::START)?;
        if input.broke().is_some() && builder.losses.count(Loss::TruncatedFile) == 0 {
            builder.losses.add(Loss::TruncatedFile, Some(bytes));
        }
        let kineto =
            ["schemaVersion", "deviceProperties"].iter().any(|key| builder.metadata.get(key).is_some());
        builder.source.format = if kineto { "Kineto trace" } else { "Chrome trace" }.to_owned();
        builder.source.bytes = bytes;
        Ok(())
    }
}

/// Reads the JSON through a window of the given size and returns how long it was.
fn read_json(content: impl Read, builder: &mut TraceBuilder, window: usize) -> Result<u64, ImportError> {
    let mut reader = TopLevel::new(Window::new(content, window), EventReader::new(builder));
    reader.read()?;
    let bytes = reader.window.offset();
    reader.events.finish();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use hotspan_store::first_difference;

    use super::*;

    const TRACE: &str = r#"{"schemaVersion": 1, "note": "a \"quoted\" word", "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 10.5, "dur": 2.25,
         "args": {"External id": 3, "Input Dims": [[2, 3], []], "Concrete Inputs": ["", "1"]}},
        {"ph": "X", "cat": "kernel", "name": "broken "quote"", "pid": 0, "tid": 7, "ts": 11, "dur": 1, "args": {}},
        {"ph": "B", "name": "begin", "pid": 7, "tid": 7, "ts": 12}, {"ph": "E", "pid": 7, "tid": 7, "ts": 13},
        {"ph": "s", "id": 3, "pid": 7, "tid": 7, "ts": 10.5, "cat": "ac2g", "name": "ac2g"}
        ], "baseTimeNanoseconds": 1000, "traceName": "x"}"#;

    fn read(text: &[u8], window: usize) -> hotspan_store::Trace {
        let mut builder = TraceBuilder::new();
        read_json(text, &mut builder, window).unwrap();
        builder.finish()
    }

    #[test]
    fn the_size_of_the_window_does_not_matter() {
        let whole = read(TRACE.as_bytes(), TRACE.len() * 2);
        assert_eq!(whole.spans().len(), 3);
        assert_eq!(whole.losses().count(Loss::RepairedString), 1);
        for size in 1..TRACE.len() {
            let small = read(TRACE.as_bytes(), size);
            assert_eq!(first_difference(&whole, &small), None, "window of {size} bytes");
            assert_eq!(whole.losses(), small.losses(), "window of {size} bytes");
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_what_came_before() {
        let whole = read(TRACE.as_bytes(), 64);
        for cut in 0..TRACE.len() {
            let mut builder = TraceBuilder::new();
            if read_json(&TRACE.as_bytes()[..cut], &mut builder, 64).is_ok() {
                assert_ne!(builder.losses.count(Loss::TruncatedFile), 0, "cut at {cut}");
            }
            let spans = builder.finish();
            assert!(spans.spans().len() <= whole.spans().len(), "cut at {cut}");
        }
    }
}
