//! What every reader must do with any bytes: give an error or a trace, never a panic; and a trace must survive being
//! written and read again.

use std::io::Cursor;

use hotspan_formats::{Importer, Input};
use hotspan_store::{TraceBuilder, first_difference};

/// Reads content with one importer, writes the trace as our own file and reads that.
pub(crate) fn round_trip(importer: &dyn Importer, content: &[u8]) {
    let mut progress = ();
    let Ok(mut input) = Input::new(Cursor::new(content.to_vec()), None, None, &mut progress) else { return };
    let mut builder = TraceBuilder::new();
    if importer.read(&mut input, &mut builder).is_err() {
        return;
    }
    let trace = builder.finish();
    let mut file = Vec::new();
    hotspan_store::file::write_trace(&trace, &mut file).expect("writing to memory cannot fail");
    let again = hotspan_formats::read(Input::new(Cursor::new(file), None, None, &mut ()).expect("readable"));
    assert_eq!(first_difference(&trace, &again.expect("what was written can be read")), None);
}
