//! hotspan's own file; the format itself lives in `hotspan_store::file`.

use hotspan_store::{TraceBuilder, file};

use crate::error::ImportError;
use crate::import::{CountingReader, Importer, Sniff};
use crate::input::Input;

/// The importer of `.hotspan` files.
pub struct Hotspan;

impl Importer for Hotspan {
    fn name(&self) -> &'static str {
        "hotspan trace"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        if file::is_hotspan(head) { Sniff::Yes } else { Sniff::No }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let mut counted = CountingReader { reader: input, count: 0 };
        // Progress and Ctrl-C are the input's business: it ends when asked to.
        *builder = file::read_builder(&mut counted, &mut |_| true)?;
        builder.source.bytes = counted.count;
        builder.source.format.clear();
        Ok(())
    }
}
