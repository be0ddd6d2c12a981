//! The descendants of a process as they come: who is to be looked at, and when again.
//!
//! A new process is noticed within a sample or two, since the system's youngest number is watched; what is not Python
//! when it is noticed may become so, and is tried again, soon at first.

use std::time::{Duration, Instant};

use hashbrown::HashMap;

use super::error::SamplerError;
use crate::process_tree::{BirthWatch, ProcessNumber};

/// How often the tree is walked although nothing seems to have been born.
const WALK_AGAIN: Duration = Duration::from_millis(250);
/// The tree is not walked more often than this, however many processes are born.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
/// How soon a process that is not Python is tried again; the pause doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A descendant that is not being sampled.
#[derive(Debug)]
struct Other {
    again: Instant,
    pause: Duration,
    /// Whether it was seen to be something else than Python, rather than not seen at all.
    is_known: bool,
}

/// Keeps the descendants of a process in sight.
#[derive(Debug)]
pub(super) struct Family {
    root: ProcessNumber,
    births: BirthWatch,
    walked: Option<Instant>,
    living: Vec<ProcessNumber>,
    others: HashMap<ProcessNumber, Other>,
    /// Whether something was born that the last walk did not see.
    is_stale: bool,
    unseen: u64,
}

impl Family {
    pub(super) fn of(root: ProcessNumber) -> Self {
        Self {
            root,
            births: BirthWatch::default(),
            walked: None,
            living: Vec::new(),
            others: HashMap::new(),
            is_stale: true,
            unseen: 0,
        }
    }

    /// The processes to look at now, the root among them, but for those that are sampled.
    pub(super) fn candidates(
        &mut self,
        now: Instant,
        is_sampled: impl Fn(ProcessNumber) -> bool,
    ) -> Vec<ProcessNumber> {
        self.is_stale |= self.births.is_changed();
        let since = self.walked.map_or(Duration::MAX, |walked| now.saturating_duration_since(walked));
        if since >= WALK_AGAIN || (self.is_stale && since >= SHORTEST_PAUSE) {
            self.walked = Some(now);
            self.is_stale = false;
            self.living = self.root.descendants();
            self.living.push(self.root);
            let (living, unseen) = (&self.living, &mut self.unseen);
            self.others.retain(|process, other| {
                let is_alive = living.contains(process);
                *unseen += u64::from(!is_alive && !other.is_known);
                is_alive
            });
        }
        let is_due =
            |process: &ProcessNumber| self.others.get(process).is_none_or(|other| now >= other.again);
        self.living.iter().copied().filter(|process| !is_sampled(*process) && is_due(process)).collect()
    }

    /// A candidate could not be sampled.
    pub(super) fn refuse(&mut self, process: ProcessNumber, now: Instant, error: &SamplerError) {
        let other =
            self.others.entry(process).or_insert(Other { again: now, pause: FIRST_PAUSE, is_known: false });
        other.is_known |= !matches!(error, SamplerError::Unreadable { .. } | SamplerError::NoProcess(_));
        other.again = now + other.pause;
        other.pause = (other.pause * 2).min(LONGEST_PAUSE);
    }

    /// A candidate is sampled from now on, or has ended.
    pub(super) fn forget(&mut self, process: ProcessNumber) {
        self.others.remove(&process);
    }

    /// How many processes came and went since the last time without one look into them.
    pub(super) fn take_unseen(&mut self) -> u64 {
        std::mem::take(&mut self.unseen)
    }

    /// Whether there may be something to sample, now or later.
    pub(super) fn is_alive(&self) -> bool {
        self.root.is_alive()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_offered_until_it_is_refused_and_again_after_a_pause() {
        let mut family = Family::of(ProcessNumber::own());
        let none = |_| false;
        let begun = Instant::now();
        family.candidates(begun, none);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = ProcessNumber(child.id());
        let soon = begun + SHORTEST_PAUSE;
        assert!(family.candidates(soon, none).contains(&number));
        assert!(!family.candidates(soon, |process| process == number).contains(&number));
        family.refuse(number, soon, &SamplerError::NoProcess(number));
        assert!(!family.candidates(soon, none).contains(&number));
        assert!(family.candidates(soon + FIRST_PAUSE, none).contains(&number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!family.candidates(soon + WALK_AGAIN, none).contains(&number));
        assert_eq!(family.take_unseen(), 1);
    }
}
