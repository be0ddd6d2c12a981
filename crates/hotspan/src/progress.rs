//! Progress on a terminal, and other talk: always stderr, never where data goes.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use hotspan_formats::Progress;
use hotspan_store::visible;

use crate::present::Outlet;

/// Short work shows no bar at all.
const PATIENCE: Duration = Duration::from_millis(300);
const INTERVAL: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// Says something to the person at the terminal, in one line.
pub(crate) fn say(text: &str) {
    let _ = writeln!(Outlet::stderr(), "{}", visible(text));
}

/// A bar that follows the reading of a file.
pub(crate) struct Bar {
    label: String,
    started: Instant,
    drawn: Option<Instant>,
    visible: bool,
}

impl Bar {
    pub(crate) fn new(label: &str) -> Self {
        Self {
            label: visible(label).into_owned(),
            started: Instant::now(),
            drawn: None,
            visible: io::stderr().is_terminal(),
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }

    fn draw(&mut self, done: u64, total: Option<u64>, now: Instant) {
        let rate = done as f64 / 1e6 / (now - self.started).as_secs_f64().max(1e-3);
        let line = match total.filter(|&total| total > 0) {
            Some(total) => {
                let share = (done as f64 / total as f64).min(1.0);
                let full = (share * WIDTH as f64) as usize;
                format!(
                    "[{}{}] {:3.0} %  {rate:.0} MB/s",
                    "#".repeat(full),
                    " ".repeat(WIDTH - full),
                    share * 100.0
                )
            }
            None => format!("{:.0} MB  {rate:.0} MB/s", done as f64 / 1e6),
        };
        let _ = write!(io::stderr().lock(), "\r\x1b[KReading {}  {line}", self.label);
        self.drawn = Some(now);
    }
}

impl Progress for Bar {
    fn advance(&mut self, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if self.visible {
            let now = Instant::now();
            let due = self.drawn.map_or(now - self.started > PATIENCE, |drawn| now - drawn > INTERVAL);
            if due {
                self.draw(done, total, now);
            }
        }
        ControlFlow::Continue(())
    }
}
