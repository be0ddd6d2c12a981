//! Entering Rust for long work: Ctrl-C gets through meanwhile.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use hotspan_formats::Progress;
use pyo3::prelude::*;

/// How often long work looks for signals: often enough to feel immediate, rarely enough to cost nothing.
const INTERVAL: Duration = Duration::from_millis(50);

/// Asks Python for pending signals while a file is read; keeps the exception that a signal raised.
#[derive(Default)]
pub(crate) struct Interruptible {
    looked: Option<Instant>,
    pub(crate) raised: Option<PyErr>,
}

impl Progress for Interruptible {
    fn advance(&mut self, _done: u64, _total: Option<u64>) -> ControlFlow<()> {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now - looked < INTERVAL) {
            return ControlFlow::Continue(());
        }
        self.looked = Some(now);
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the method holds for one lifetime only"
        )]
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }
}
