//! The collector thread: takes samples out of the slots, looks at waiting threads, gives new threads a timer. It runs at
//! the sampling rate, blocks all signals, and needs nothing from the interpreter but its memory. Threads that cannot be
//! interrupted are read from outside (`outside.rs`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use hotspan_store::{Loss, SampleState};

use super::handler;
use super::options::Options;
use super::recorder::{Shared, Told};
use super::resolve::Resolver;
use super::rows::{Rows, Sample, StackNumber};
use super::signal::{self, Hold};
use super::slots::{self, STACK_BYTES};
use super::threads::{self, OpenWait, Thread};
use super::timer::{ThreadTimer, cpu_time, monotonic};
use super::unseen::Unseen;
use crate::clock::{self, Ticks};
use crate::own_threads;
use crate::syscalls::Blocked;

mod outside;

/// CPU timers are checked at the ticks of the kernel, so looking more often than this sees nothing new.
const SHORTEST_TURN: Duration = Duration::from_millis(4);
/// How often the list of threads is read even when nothing seems to have changed.
const FULL_LIST: i64 = 1_000_000_000;
/// When no thread was seen to use so much in a turn, threads come and go: they are looked for at once.
const UNSEEN_WORTH_A_LIST: i64 = 500_000;

/// How many turns of waiting are kept for when the thread is found waiting.
const TURNS_KEPT: i64 = 8;

/// The state of the collector thread.
pub(crate) struct Collector {
    shared: Arc<Shared>,
    options: Options,
    generation: u64,
    period: Duration,
    /// Whose the signal was in this turn.
    hold: Hold,
    /// Itself, which is not sampled.
    this: i32,
    /// Processor time of the threads that it ran on before.
    spent: i64,
    threads: Vec<Thread>,
    /// How many threads the last list had beside those: hotspan's own.
    own: u64,
    unseen: Unseen,
    listed: i64,
    /// When threads that block the signal were last asked whether they still do.
    asked: i64,
    /// The last look at all threads, on both clocks.
    looked: Ticks,
    last: i64,
    resolver: Resolver,
    stack: Vec<u8>,
    /// A number that differs from thread to thread, to spread their timers.
    spread: u32,
}

impl Collector {
    pub(crate) fn new(shared: Arc<Shared>, options: Options, generation: u64) -> Self {
        // SAFETY: takes nothing.
        let this = unsafe { libc::gettid() };
        Self {
            shared,
            options,
            generation,
            period: options.rate.period(),
            hold: Hold::Kept,
            this,
            spent: 0,
            threads: Vec::new(),
            own: 1,
            unseen: Unseen::default(),
            listed: 0,
            asked: 0,
            looked: clock::now(),
            last: monotonic(),
            resolver: Resolver::new(options.native, options.names_later),
            stack: vec![0; STACK_BYTES],
            spread: this as u32,
        }
    }

    /// Gives every thread a timer; recording begins here.
    pub(crate) fn begin(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut rows = shared.rows();
        self.hold_signal(&mut rows);
        self.list(&mut rows, monotonic());
        self.unseen.begin();
    }

    /// Records until it is told to stop, or to rest: then it goes on with the next call, on whatever thread.
    pub(crate) fn run(&mut self) -> Told {
        self.this = own_threads::number();
        let shared = Arc::clone(&self.shared);
        let turn = self.period.max(SHORTEST_TURN);
        loop {
            match shared.wait(turn) {
                Told::Turn => {}
                Told::Rest => {
                    self.spent += cpu_time(self.this).unwrap_or(0);
                    // Our threads have other numbers after it.
                    self.listed = 0;
                    return Told::Rest;
                }
                Told::Stop => break,
            }
            let mut rows = shared.rows();
            self.turn(&mut rows);
            shared.spool(rows);
            shared.spend(self.spent + cpu_time(self.this).unwrap_or(0));
        }
        self.finish();
        Told::Stop
    }

    /// Takes what is left.
    pub(crate) fn finish(&mut self) {
        let shared = Arc::clone(&self.shared);
        handler::GENERATION.compare_exchange(self.generation, 0, Ordering::AcqRel, Ordering::Acquire).ok();
        self.end(shared.rows());
        shared.spend(self.spent + cpu_time(self.this).unwrap_or(0));
    }

    fn turn(&mut self, rows: &mut Rows) {
        self.resolver.next_batch();
        self.hold_signal(rows);
        self.take_slots(rows);
        let now = monotonic();
        let unseen = self.look(rows, now);
        let is_changed = threads::count().is_some_and(|count| count != self.threads.len() as u64 + self.own);
        if is_changed || unseen > UNSEEN_WORTH_A_LIST || now - self.listed > FULL_LIST {
            self.list(rows, now);
            self.name_unseen(rows, outside::MOST_UNSEEN);
        }
        if now - self.asked > FULL_LIST {
            self.asked = now;
            self.ask_deaf_threads();
        }
    }

    /// Takes the signal back where the program has reset it; where the program has a handler, timers end and threads are
    /// read from outside.
    fn hold_signal(&mut self, rows: &mut Rows) {
        let before = std::mem::replace(&mut self.hold, signal::hold(handler::on_timer));
        if self.hold == Hold::Theirs && before != Hold::Theirs {
            rows.lose(Loss::SignalTaken, 1);
        }
        match (before, self.hold) {
            // A timer whose signal was ignored may not go on by itself (Linux 6.13).
            (_, Hold::Taken) => {
                self.disarm();
                self.ask_deaf_threads();
            }
            (Hold::Theirs | Hold::Lent, Hold::Kept) => self.ask_deaf_threads(),
            (_, Hold::Theirs | Hold::Lent) => self.disarm(),
            (_, Hold::Kept) => {}
        }
    }

    fn disarm(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.timer = None);
        signal::set_sends(false);
    }

    /// Gives threads a timer that had none and can have one now.
    fn ask_deaf_threads(&mut self) {
        let mut threads = std::mem::take(&mut self.threads);
        threads.iter_mut().filter(|thread| thread.timer.is_none()).for_each(|thread| self.arm(thread));
        self.threads = threads;
    }

    /// Gives a thread its timer. One that blocks the signal gets none.
    fn arm(&mut self, thread: &mut Thread) {
        if matches!(self.hold, Hold::Theirs | Hold::Lent) {
            return;
        }
        thread.is_deaf = thread.blocks_signal();
        if !thread.is_deaf {
            signal::set_sends(true);
            self.spread = self.spread.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let first = self.period.mul_f64(f64::from(self.spread >> 8) / f64::from(1_u32 << 24));
            thread.timer = ThreadTimer::start(thread.number, self.period, first);
        }
    }

    fn end(&mut self, mut rows: MutexGuard<'_, Rows>) {
        self.resolver.next_batch();
        let end = self.shared.end();
        if end > self.last {
            self.look(&mut rows, end);
        }
        // Timers end here; a signal that is on its way finds that nothing records.
        self.disarm();
        self.threads.clear();
        self.take_slots(&mut rows);
        signal::release(handler::on_timer);
        self.name_unseen(&mut rows, self.period.as_nanos() as i64);
        rows.lose(Loss::MissedSample, slots::MISSED.swap(0, Ordering::AcqRel));
        let losses = std::mem::take(&mut self.resolver.losses);
        rows.lose(Loss::BrokenStack, losses.broken);
        rows.lose(Loss::UnreadableFrame, losses.unreadable);
    }

    /// Samples of running threads.
    fn take_slots(&mut self, rows: &mut Rows) {
        let period = self.period.as_nanos() as i64;
        let waits_kept = TURNS_KEPT * self.period.max(SHORTEST_TURN).as_nanos() as i64;
        slots::drain(|slot| {
            if slot.generation != self.generation {
                return;
            }
            let Some(stack) = self.resolver.running(rows, slot) else { return };
            let mut weight = period * (i64::from(slot.overrun) + 1);
            if let Some(thread) = self.threads.iter_mut().find(|thread| thread.number == slot.thread) {
                thread.is_heard = true;
                thread.owed -= weight;
                // Time that it was ready for a processor belongs where it wanted to run.
                weight += std::mem::take(&mut thread.ready);
                // Short waits are found one time in many, for all. What piles up beyond that was no wait: a virtual
                // machine without its processor, for one.
                let excess = (thread.waited - waits_kept).max(0);
                thread.waited -= excess;
                weight += excess;
            }
            rows.samples.push(Sample {
                ticks: Ticks(slot.ticks),
                thread: slot.thread,
                stack,
                weight,
                state: SampleState::Running,
                gil: slot.has_gil,
            });
        });
    }

    /// Samples of waiting threads. Returns the processor time that no thread was seen to use.
    fn look(&mut self, rows: &mut Rows, now: i64) -> i64 {
        let since = std::mem::replace(&mut self.looked, clock::now());
        self.last = now;
        let mut unseen = self.unseen.look();
        let mut threads = std::mem::take(&mut self.threads);
        threads.retain_mut(|thread| {
            let Some(ran) = thread.look(now) else {
                self.unseen.time += thread.owed;
                return false;
            };
            unseen -= ran;
            if ran > 0 {
                thread.open = None;
                self.check_hearing(rows, thread, since);
            }
            if self.options.waiting {
                self.wait_sample(rows, thread, since);
            }
            true
        });
        self.threads = threads;
        self.unseen.time += unseen;
        unseen
    }

    fn wait_sample(&mut self, rows: &mut Rows, thread: &mut Thread, since: Ticks) {
        if thread.waited <= 0 {
            return;
        }
        // A thread that has not run since is where it was: its sample grows, and nothing is read again.
        if let Some(open) = &mut thread.open {
            let weight = std::mem::take(&mut thread.waited);
            let sample = rows.samples.get_mut(open.sample).filter(|_| open.taken == rows.taken);
            if let Some(sample) = sample {
                sample.weight += weight;
                return;
            }
            let (stack, state) = (open.stack, open.state);
            thread.open = Some(push_wait(rows, thread.number, since, stack, weight, state));
            return;
        }
        let Some(blocked) = thread.blocked() else { return };
        let (state, call) = blocked.reason();
        let losses = self.resolver.losses;
        let stack = self.waiting_stack(rows, thread, &blocked, call);
        // It may have woken up while its stack was read.
        if !thread.is_still() {
            self.resolver.losses = losses;
        } else if let Some(stack) = stack {
            let weight = std::mem::take(&mut thread.waited);
            thread.open = Some(push_wait(rows, thread.number, since, stack, weight, state));
        }
    }

    fn waiting_stack(
        &mut self,
        rows: &mut Rows,
        thread: &mut Thread,
        blocked: &Blocked,
        call: Option<&'static str>,
    ) -> Option<StackNumber> {
        thread.python = self.resolver.python_thread(thread.number, thread.python);
        self.resolver.waiting(rows, thread.python, blocked, call, &mut self.stack)
    }

    /// Finds new threads.
    fn list(&mut self, rows: &mut Rows, now: i64) {
        // One of ours would be taken for the program's. The next turn comes soon.
        if own_threads::is_one_starting() {
            return;
        }
        let is_first = self.listed == 0;
        self.listed = now;
        self.threads.retain(|thread| !own_threads::contains(thread.number));
        let known = self.threads.len();
        self.own = 0;
        for number in threads::list() {
            if number == self.this || own_threads::contains(number) {
                self.own += 1;
                continue;
            }
            if self.threads.iter().any(|thread| thread.number == number) {
                continue;
            }
            self.threads.extend(Thread::new(number, now));
        }
        let mut new = self.threads.split_off(known);
        if !is_first && !new.is_empty() {
            // At once, since some will be gone soon.
            self.account_unseen(rows, &mut new);
        }
        for thread in &mut new {
            self.arm(thread);
            rows.name_thread(thread.number, threads::name(thread.number));
        }
        self.threads.append(&mut new);
    }
}

fn push_wait(
    rows: &mut Rows,
    thread: i32,
    ticks: Ticks,
    stack: StackNumber,
    weight: i64,
    state: SampleState,
) -> OpenWait {
    rows.samples.push(Sample { ticks, thread, stack, weight, state, gil: false });
    OpenWait { sample: rows.samples.len() - 1, taken: rows.taken, stack, state }
}
