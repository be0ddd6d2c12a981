//! The memory of the process over time, as a counter.

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, EventRow, Ident, Place, Timestamp, TraceBuilder};

use crate::agent::Source;
use crate::clock;

/// Memory that the process holds in RAM. Nothing is kept open between two looks: see `spool`.
#[derive(Debug)]
pub(super) struct Resident;

pub(super) fn resident_bytes() -> Option<i64> {
    // SAFETY: asks for a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = text.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page)
}

impl Source for Resident {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let Some(bytes) = resident_bytes() else { return };
        let process = Ident::Int(std::process::id().into());
        let track = builder.track(process, process);
        let (name, category) = (builder.intern("Process memory"), builder.category("memory"));
        let mut pending = PendingArgs::default();
        builder.push_arg(&mut pending, Place::Args, b"resident bytes", Arg::Int(bytes));
        let args = builder.commit_args(&mut pending);
        let time = Timestamp(clock::unix_now().0);
        builder.push_counter(EventRow { time, name, category, track, args });
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.drain(builder);
    }
}
