//! Running threads that no signal interrupts: those that block it, all of them while the program has the signal, and those that
//! ended before they had a timer. Their Python frames are read from the collector's thread; sums stay exact, since
//! weights come from the clocks of threads and process.

use hotspan_store::{Loss, SampleState};

use super::{Collector, Rows, Sample, StackNumber, Thread, Ticks};
use crate::clock;
use crate::native::rows::ENDED_THREADS;
use crate::native::signal::Hold;

/// A thread that ran this long without one signal may not take them.
const DEAF_AFTER: i64 = 50_000_000;
/// Less than this makes no sample.
const LEAST_UNSEEN: i64 = 1_000_000;
/// So much is shown even when no thread was found that can stand for it.
pub(super) const MOST_UNSEEN: i64 = 1_000_000_000;

impl Collector {
    /// A thread that ran and got no signal for too long is read from outside.
    pub(super) fn check_hearing(&mut self, rows: &mut Rows, thread: &mut Thread, since: Ticks) {
        // However late this turn is.
        if std::mem::take(&mut thread.is_heard) {
            thread.unsignalled = 0;
        }
        let period = self.period.as_nanos() as i64;
        let is_signalled = self.hold == Hold::Kept && thread.timer.is_some();
        let patience = if is_signalled { DEAF_AFTER.max(period * 3) } else { period };
        if !thread.is_deaf && thread.unsignalled > patience {
            thread.unsignalled = 0;
            if self.hold != Hold::Theirs && thread.blocks_signal() {
                thread.is_deaf = true;
                thread.timer = None;
            } else {
                self.read_running(rows, thread, since, "[native code]");
            }
        }
        if thread.is_deaf {
            if !std::mem::replace(&mut thread.is_counted, true) {
                rows.lose(Loss::DeafThread, 1);
            }
            self.read_running(rows, thread, since, "[signals blocked]");
        }
    }

    fn read_running(&mut self, rows: &mut Rows, thread: &mut Thread, ticks: Ticks, instead: &str) {
        thread.python = self.resolver.python_thread(thread.number, thread.python);
        if let Some(stack) = self.resolver.outside(rows, thread.python, instead) {
            let ran = std::mem::take(&mut thread.owed);
            // A sample before stood for more than had run.
            thread.owed = ran.min(0);
            let weight = ran.max(0) + std::mem::take(&mut thread.ready);
            push(rows, thread.number, ticks, stack, weight);
        }
    }

    /// Threads that were just found stand for those that were never seen: whatever runs at the moment of a look does so as
    /// often as it takes time.
    pub(super) fn account_unseen(&mut self, rows: &mut Rows, new: &mut [Thread]) {
        if self.unseen.time < LEAST_UNSEEN {
            return;
        }
        self.resolver.list_again();
        let now = clock::now();
        let mut found = Vec::new();
        for thread in new.iter_mut().filter(|thread| thread.blocked().is_none()) {
            thread.python = self.resolver.python_thread(thread.number, None);
            let stack = self.resolver.outside(rows, thread.python, "[native code]");
            // One that waits for its first processor, or has nothing left to do but end, uses no time and stands for none.
            let is_at_work = thread.python.is_some() && thread.has_begun();
            let stack = stack.filter(|_| is_at_work || thread.has_run());
            found.extend(stack.map(|stack| (thread.number, stack)));
        }
        let Some(weight) = self.unseen.time.checked_div(found.len() as i64) else { return };
        for (thread, stack) in found {
            self.unseen.time -= weight;
            push(rows, thread, now, stack, weight);
        }
    }

    /// Time for which no thread was found has a name, when it is that much.
    pub(super) fn name_unseen(&mut self, rows: &mut Rows, least: i64) {
        if self.unseen.time >= least
            && let Some(stack) = self.resolver.note(rows, "[threads that ended between samples]")
        {
            push(rows, ENDED_THREADS, clock::now(), stack, std::mem::take(&mut self.unseen.time));
        }
    }
}

fn push(rows: &mut Rows, thread: i32, ticks: Ticks, stack: StackNumber, weight: i64) {
    let state = SampleState::Running;
    rows.samples.push(Sample { ticks, thread, stack, weight, state, gil: false });
}
