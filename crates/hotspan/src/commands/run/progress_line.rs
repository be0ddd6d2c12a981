//! The line on a terminal that says how a recorded program gets on.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::run_folder::recordings;

/// How it goes, on a terminal.
pub(super) struct ProgressLine {
    spool: PathBuf,
    started: Instant,
    visible: bool,
    drawn: bool,
}

impl ProgressLine {
    pub(super) fn new(spool: PathBuf) -> Self {
        Self { spool, started: Instant::now(), visible: io::stderr().is_terminal(), drawn: false }
    }

    pub(super) fn draw(&mut self) {
        // The program's own lines come first: a short one is never disturbed.
        if !self.visible || self.started.elapsed() < Duration::from_secs(2) {
            return;
        }
        let states: Vec<serde_json::Value> = recordings(&self.spool)
            .filter_map(|path| serde_json::from_slice(&fs::read(path.with_extension("status")).ok()?).ok())
            .collect();
        let sum = |key: &str| states.iter().filter_map(|state| state[key].as_f64()).sum::<f64>();
        let cost = states.iter().filter_map(|state| state["cost"].as_f64()).fold(0.0, f64::max);
        let line = format!(
            "hotspan: {:.0} s, {} process{}, {:.1} million events, recording costs {:.1} %, {:.0} MB in use",
            self.started.elapsed().as_secs_f64(),
            states.len(),
            if states.len() == 1 { "" } else { "es" },
            sum("events") / 1e6,
            cost * 100.0,
            sum("resident") / 1e6,
        );
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}\r");
        self.drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if self.drawn {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
