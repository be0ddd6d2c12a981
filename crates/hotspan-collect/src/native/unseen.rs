//! Processor time that no thread was seen to use: that of threads which came and went between two looks, and what others used
//! before the first look at them and after the last.
//!
//! The clock of the process counts all of it, so the rest is exact: what the process used, less what threads were seen to use,
//! less our own.

use super::timer::{cpu_time, process_time};

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    process: i64,
    /// Our threads, and how much of their time is accounted for.
    own: Vec<(i32, i64)>,
    /// The time that no sample stands for. It may be less than nothing for a while: samples stand for whole periods.
    pub(crate) time: i64,
}

impl Unseen {
    /// Begins to count now.
    pub(crate) fn begin(&mut self, own: impl IntoIterator<Item = i32>) {
        self.process = process_time();
        self.own = own.into_iter().filter_map(|thread| Some((thread, cpu_time(thread)?))).collect();
        self.time = 0;
    }

    /// Threads of ours: all that they ever used is our own.
    pub(crate) fn set_own(&mut self, own: impl IntoIterator<Item = i32>) {
        let known = std::mem::take(&mut self.own);
        let before =
            |thread| known.iter().find(|&&(number, _)| number == thread).map_or(0, |&(_, time)| time);
        self.own = own.into_iter().map(|thread| (thread, before(thread))).collect();
    }

    /// Reads the clock of the process. Before the clocks of threads: what they use meanwhile is theirs, not unseen.
    pub(crate) fn look(&mut self) -> i64 {
        let used = process_time();
        let mut rest = used - std::mem::replace(&mut self.process, used);
        for (thread, before) in &mut self.own {
            if let Some(now) = cpu_time(*thread).filter(|now| now >= before) {
                rest -= now - std::mem::replace(before, now);
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_threads_that_nobody_saw_is_left_over() {
        let mut unseen = Unseen::default();
        unseen.begin([]);
        let burn = || {
            // SAFETY: takes nothing.
            let this = unsafe { libc::gettid() };
            while cpu_time(this).unwrap() < 20_000_000 {}
            cpu_time(this).unwrap()
        };
        let used = std::thread::spawn(burn).join().unwrap();
        let rest = unseen.look();
        assert!(rest >= used, "{rest} {used}");
    }

    #[test]
    fn all_that_a_new_thread_of_ours_used_is_our_own() {
        let mut unseen = Unseen { own: vec![(7, 40), (8, 50)], ..Unseen::default() };
        unseen.set_own([8, 9]);
        assert_eq!(unseen.own, [(8, 50), (9, 0)]);
    }
}
