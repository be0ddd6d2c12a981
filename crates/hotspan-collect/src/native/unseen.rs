//! Processor time that no thread was seen to use: that of threads which came and went between two looks, and what others used
//! before the first look at them and after the last.
//!
//! The clock of the process counts all of it, so the rest is exact: what the process used, less what threads were seen to use,
//! less our own.

use super::timer::process_time;
use crate::own_threads;

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    process: i64,
    own: i64,
    /// The time that no sample stands for. It may be less than nothing for a while: samples stand for whole periods.
    pub(crate) time: i64,
}

impl Unseen {
    /// Begins to count now.
    pub(crate) fn begin(&mut self) {
        *self = Self { process: process_time(), own: own_threads::processor_time(), time: 0 };
    }

    /// What the process used since the last look, less our own. Asked before the clocks of threads: what they use meanwhile
    /// is theirs, not unseen.
    pub(crate) fn look(&mut self) -> i64 {
        let (process, own) = (process_time(), own_threads::processor_time());
        let used = process - std::mem::replace(&mut self.process, process);
        used - (own - std::mem::replace(&mut self.own, own))
    }
}

#[cfg(test)]
mod tests {
    use super::super::timer::cpu_time;
    use super::*;

    #[test]
    fn time_of_threads_that_nobody_saw_is_left_over() {
        let mut unseen = Unseen::default();
        unseen.begin();
        let burn = || {
            let this = own_threads::number();
            while cpu_time(this).unwrap() < 20_000_000 {}
            cpu_time(this).unwrap()
        };
        let used = std::thread::spawn(burn).join().unwrap();
        let rest = unseen.look();
        assert!(rest >= used, "{rest} {used}");
    }
}
