//! What those are told who wait: how far a trace has been read, and what is being computed of it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hotspan_formats::Progress;

/// How much of a file has been read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    done: AtomicU64,
    total: AtomicU64,
}

impl Reading {
    /// Bytes that were read, and all there are.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

impl Progress for &Reading {
    fn advance(&mut self, done: u64, total: Option<u64>) -> ControlFlow<()> {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total.unwrap_or(0), Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}

/// What is being computed.
#[derive(Debug, Default)]
pub(crate) struct Computing {
    names: Mutex<Vec<String>>,
}

/// While it lives, something is being computed.
#[derive(Debug)]
pub(crate) struct Busy<'a> {
    computing: &'a Computing,
    name: String,
}

impl Computing {
    /// Begins to compute the answer of this name.
    pub(crate) fn begin(&self, answer: &str) -> Busy<'_> {
        let name = title(answer);
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        Busy { computing: self, name }
    }

    /// What is being computed now, in words, each once.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        names.sort();
        names.dedup();
        names
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut names = self.computing.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = names.iter().position(|known| *known == self.name) {
            names.swap_remove(place);
        }
    }
}

/// What people call an answer.
fn title(answer: &str) -> String {
    match answer {
        "advice" => "advice".to_owned(),
        "verdict" => "the verdict".to_owned(),
        "timeline" => "the timeline".to_owned(),
        "curves" => "memory over time".to_owned(),
        _ if answer.starts_with("flame") => "the flame graph".to_owned(),
        _ => answer.replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_is_told_until_it_is_done() {
        let computing = Computing::default();
        let busy = (computing.begin("advice"), computing.begin("flame {..}"), computing.begin("advice"));
        assert_eq!(computing.names(), ["advice", "the flame graph"]);
        drop(busy);
        assert!(computing.names().is_empty());
    }

    #[test]
    fn bytes_are_those_that_were_read() {
        let reading = Reading::default();
        assert!((&reading).advance(7, Some(10)).is_continue());
        assert_eq!(reading.bytes(), (7, 10));
    }
}
