//! What every reader must do with any bytes: give an error or a trace, never a panic; and a trace must survive being
//! written and read again.

use std::io::Cursor;

use hotspan_formats::{Exporter, Importer, Input};
use hotspan_store::{Trace, TraceBuilder, first_difference};

/// Reads content with one importer, whoever else might know it.
pub(crate) fn read_as(importer: &dyn Importer, content: &[u8]) -> Option<Trace> {
    let mut progress = ();
    let length = Some(content.len() as u64);
    let mut input = Input::new(Cursor::new(content.to_vec()), None, length, &mut progress).ok()?;
    let mut builder = TraceBuilder::new();
    importer.read(&mut input, &mut builder).ok()?;
    Some(builder.finish())
}

/// What an exporter writes.
#[allow(dead_code, reason = "not every target exports")]
pub(crate) fn written(exporter: &dyn Exporter, trace: &Trace) -> Vec<u8> {
    let mut content = Vec::new();
    exporter.write(&trace.clone().into(), &mut content).expect("writing to memory cannot fail");
    content
}

/// A trace must be the same after it was written as our own file and read.
#[allow(dead_code, reason = "not every target has an exact copy")]
pub(crate) fn survives_our_file(trace: &Trace) {
    let mut content = Vec::new();
    hotspan_store::file::write_trace(trace, &mut content).expect("writing to memory cannot fail");
    let again =
        hotspan_store::file::read(content.as_slice(), &mut |_| true).expect("what was written can be read");
    // NaN, which no JSON can bring, differs from itself.
    if first_difference(trace, &trace.clone()).is_none() {
        assert_eq!(first_difference(trace, &again), None);
    }
}
