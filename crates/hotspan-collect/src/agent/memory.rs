//! The memory of the process over time, as a counter.

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, ArgOrigin, EventRow, Ident, Timestamp, TraceBuilder, keys};

use crate::agent::Source;
use crate::process_tree::resident_bytes;
use crate::{clock, process_memory};

/// Memory that the process holds in RAM. Nothing is kept open between two looks: see `spool`.
#[derive(Debug)]
pub(super) struct Resident;

impl Source for Resident {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let Some(bytes) = resident_bytes("self") else { return };
        let process = Ident::Int(std::process::id().into());
        let track = builder.track(process, process);
        let (name, category) = (builder.intern("Process memory"), builder.category(process_memory::CATEGORY));
        let mut pending = PendingArgs::default();
        builder.push_arg(&mut pending, ArgOrigin::Args, keys::RESIDENT_BYTES.as_bytes(), Arg::Int(bytes));
        let args = builder.commit_args(&mut pending);
        let time = Timestamp(clock::unix_now().0);
        builder.push_counter(EventRow { time, name, category, track, args });
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.drain(builder);
    }
}
