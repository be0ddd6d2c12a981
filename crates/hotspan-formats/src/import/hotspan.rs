//! hotspan's own file; the format itself lives in `hotspan_store::file`.

use hotspan_store::{FileMerge, Survey, TraceBuilder, file};

use crate::error::ImportError;
use crate::import::{CountingReader, Importer, Sniff};
use crate::input::Input;
use crate::memory_limit::{memory_limit, most_events};

/// A byte of a file takes about so many in memory: an event has 11 or more there.
const GROWTH: u64 = 20;

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
        let fits = |length: u64| length.saturating_mul(GROWTH) <= memory_limit();
        let (read, bytes) = match input.rewindable().filter(|&length| !fits(length)) {
            Some(length) => (read_latest(input)?, length),
            None => {
                let mut counted = CountingReader { reader: input, count: 0 };
                // Progress and Ctrl-C are the input's business: it ends when asked to.
                (file::read_builder(&mut counted, &mut |_| true)?, counted.count)
            }
        };
        *builder = read;
        builder.source.bytes = bytes;
        builder.source.format.clear();
        Ok(())
    }
}

/// Reads a file that may not fit into memory: once to count its events, and again for as many of the latest as do fit.
fn read_latest(input: &mut Input<'_>) -> Result<TraceBuilder, ImportError> {
    let survey = Survey::of(&mut *input)?;
    input.rewind()?;
    if survey.events <= most_events() {
        return Ok(file::read_builder(input, &mut |_| true)?);
    }
    let mut merge = FileMerge::new([&survey]);
    merge.keep_latest([&survey], most_events());
    merge.add(input, &survey, &mut |_, _| None, &mut |_| Ok(()))?;
    Ok(merge.into_builder())
}
