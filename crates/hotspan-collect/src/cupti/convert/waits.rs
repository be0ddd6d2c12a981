//! What is no work: waits for streams and events, and the time that CUPTI itself took.

use hashbrown::HashMap;
use hotspan_store::{Arg, Ident, keys};

use super::{Converter, NONE};
use crate::cupti::abi::{Overhead, Synchronization};
use crate::cupti::names;

impl Converter<'_> {
    pub(super) fn syncs(&mut self, syncs: &[Synchronization], recorded: &HashMap<(u32, u32), (u32, u32)>) {
        let category = self.builder.category("cuda_sync");
        for sync in syncs {
            let device = self.contexts.get(&sync.context).copied().unwrap_or(0);
            // Only a stream that waits for an event has the wait on its own row: a program that waits for a stream would
            // lie across that stream's work.
            let row = if sync.sync == names::STREAM_WAIT_EVENT { sync.stream } else { NONE };
            let track = self.stream(device, row);
            let name = self.builder.intern(names::sync(sync.sync));
            let launch = self.launches.get(&sync.correlation).copied();
            let external = launch.and_then(|launch| launch.around.innermost);
            let has_event = sync.event != NONE;
            let source = recorded.get(&(sync.context, sync.event)).filter(|_| has_event);
            let or_none = |value: Option<u32>| Arg::Int(value.map_or(-1, i64::from));
            let args = self.args(
                5,
                [
                    (keys::EXTERNAL_ID, external.map(|span| Arg::Int(span.external))),
                    ("cuda_sync_kind", Some(Arg::Text(name))),
                    ("wait_on_stream", has_event.then(|| or_none(source.map(|source| source.0)))),
                    (
                        "wait_on_cuda_event_record_corr_id",
                        has_event.then(|| source.map_or(Arg::Int(-1), |source| self.correlation(source.1))),
                    ),
                    ("wait_on_cuda_event_id", has_event.then(|| Arg::Int(i64::from(sync.event)))),
                    ("stream", Some(or_none(Some(sync.stream).filter(|&stream| stream != NONE)))),
                    (keys::CORRELATION, Some(self.correlation(sync.correlation))),
                    (keys::DEVICE, Some(Arg::Int(i64::from(device)))),
                    ("context", Some(Arg::Int(i64::from(sync.context)))),
                ],
            );
            self.span(category, name, track, (sync.start, sync.end), args);
        }
    }

    pub(super) fn overheads(&mut self, overheads: &[Overhead]) {
        if overheads.is_empty() {
            return;
        }
        let category = self.builder.category("overhead");
        let track = self.builder.track(Ident::Int(-1), Ident::Int(0));
        let name = self.builder.intern("CUPTI Overhead");
        self.builder.track_mut(track).name = Some(name);
        let args = self.builder.no_args();
        for overhead in overheads {
            let name = self.builder.intern(names::overhead(overhead.overhead));
            self.span(category, name, track, (overhead.start, overhead.end), args);
        }
    }
}
