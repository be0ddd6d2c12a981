//! Flows from forward operators to the autograd nodes they made: same sequence number, and the thread that ran the
//! forward. Of several forward operators with one number the last one made the node.

use hashbrown::HashMap;
use hotspan_store::{EventRow, FlowPhase, FlowRow, Loss, Timestamp, TraceBuilder, TrackId};

/// How many forward operators wait for their nodes before the oldest are forgotten; a program that never goes backward
/// has no others.
const MOST_WAITING: usize = 1 << 18;

/// An operator that may be an end of a flow.
pub(super) struct Link {
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) torch_thread: u64,
    pub(super) forward_thread: u16,
    pub(super) sequence: i64,
}

/// Where a flow begins or ends: its number among all links, time and track.
#[derive(Clone, Copy)]
struct FlowEnd {
    number: u64,
    time: i64,
    track: TrackId,
}

/// The forward operators seen so far, by torch's thread and sequence number.
type Waiting = HashMap<(u64, i64), FlowEnd>;

/// The links so far, and those that wait for another.
#[derive(Default)]
pub(super) struct Flows {
    links: Vec<(u64, Link)>,
    pushed: u64,
    waiting: Waiting,
    /// Those that wait longest; forgotten when `waiting` is full again.
    older: Waiting,
    has_forgotten: bool,
    written: i64,
}

impl Flows {
    pub(super) fn push(&mut self, link: Link) {
        self.links.push((self.pushed, link));
        self.pushed += 1;
    }

    /// Writes the flows that end before this moment: by then all threads have told what they began.
    pub(super) fn settle(&mut self, builder: &mut TraceBuilder, before: i64) {
        if self.waiting.is_empty()
            && self.older.is_empty()
            && self.links.iter().all(|(_, link)| link.forward_thread == 0)
            && before == i64::MAX
        {
            self.links.clear();
            return;
        }
        // Each thread is in order already, so this merges a few sorted runs.
        self.links.sort_by_key(|(_, link)| link.time);
        let due = self.links.partition_point(|(_, link)| link.time < before);
        let mut ends: Vec<(FlowEnd, i64, FlowPhase)> = Vec::new();
        for (number, link) in self.links.drain(..due) {
            let end = FlowEnd { number, time: link.time, track: link.track };
            if link.forward_thread == 0 {
                if before != i64::MAX && self.waiting.len() >= MOST_WAITING {
                    self.has_forgotten |= !self.older.is_empty();
                    self.older = std::mem::take(&mut self.waiting);
                }
                self.waiting.insert((link.torch_thread, link.sequence), end);
                continue;
            }
            let key = (u64::from(link.forward_thread), link.sequence);
            match self.waiting.remove(&key).or_else(|| self.older.remove(&key)) {
                Some(start) => {
                    self.written += 1;
                    ends.extend([
                        (start, self.written, FlowPhase::Start),
                        (end, self.written, FlowPhase::End),
                    ]);
                }
                None if self.has_forgotten => builder.losses.add(Loss::ForgottenForward, None),
                None => {}
            }
        }
        if ends.is_empty() {
            return;
        }
        ends.sort_by_key(|(end, id, _)| (end.number, *id));
        let name = builder.intern("fwdbwd");
        let category = builder.category("fwdbwd");
        let args = builder.no_args();
        for (FlowEnd { time, track, .. }, id, phase) in ends {
            let event = EventRow { time: Timestamp(time), name, category, track, args };
            let binds_enclosing = phase == FlowPhase::End;
            builder.push_flow(FlowRow { event, id, phase, binds_enclosing });
        }
    }
}
