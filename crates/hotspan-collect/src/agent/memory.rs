//! The memory of the process over time, as a counter.

use std::fs::File;
use std::os::unix::fs::FileExt;

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, EventRow, Ident, Place, Timestamp, TraceBuilder};

use crate::agent::Source;
use crate::clock;

/// Memory that the process holds in RAM, read from `/proc/self/statm`.
#[derive(Debug)]
pub(super) struct Resident {
    statm: Option<File>,
    page: i64,
}

impl Resident {
    pub(super) fn new() -> Self {
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Self { statm: File::open("/proc/self/statm").ok(), page }
    }

    fn bytes(&self) -> Option<i64> {
        let mut text = [0; 128];
        let length = self.statm.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: i64 = text.split_whitespace().nth(1)?.parse().ok()?;
        pages.checked_mul(self.page)
    }
}

impl Source for Resident {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let Some(bytes) = self.bytes() else { return };
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
