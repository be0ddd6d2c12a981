//! The live screen of `hotspan top`: plain terminal codes, drawn anew each second, at a key and when the size changes.
//!
//! The terminal is put back whatever ends the screen: a key, Ctrl-C, a signal, an error, the end of the program.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hotspan_analyze::SampledTimes;
use hotspan_analyze::sampled::{Sampled, SampledTime, ThreadTime, thread_times};
use hotspan_collect::launch::Signals;
use hotspan_collect::sampler::{ProcessNumber, Recording, Totals};
use hotspan_collect::terminal::{RawTerminal, size};

use super::{Arguments, options};
use crate::error::CommandError;

/// No key waits longer than this to be seen.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Lines that are not rows: two of facts, an empty one, the heading, and the keys.
const OTHER_LINES: usize = 5;

/// What the person has chosen with keys.
pub(super) struct View {
    by_total: bool,
    pub(super) lines: bool,
    pub(super) idle: bool,
    pub(super) gil: bool,
    threads: bool,
}

impl View {
    pub(super) fn new(lines: bool, idle: bool, gil: bool) -> Self {
        Self { by_total: false, lines, idle, gil, threads: false }
    }
}

/// What was seen since the program was attached to, or since it was cleared.
#[derive(Default)]
struct Seen {
    recent: SampledTimes,
    threads: Vec<ThreadTime>,
    all: SampledTimes,
    before: Totals,
    /// How long it took to see what is recent.
    span: Duration,
}

/// What a key asked for.
enum Asked {
    Nothing,
    Redraw,
    Quit,
}

/// The screen while it is open.
pub(super) struct Screen<'a> {
    arguments: &'a Arguments,
    process: ProcessNumber,
    view: View,
    recording: Recording,
    seen: Seen,
    keys: Receiver<u8>,
    output: &'a mut dyn Write,
    _raw: RawTerminal,
}

impl<'a> Screen<'a> {
    pub(super) fn open(
        arguments: &'a Arguments,
        process: ProcessNumber,
        view: View,
        recording: Recording,
        output: &'a mut dyn Write,
    ) -> Result<Self, CommandError> {
        let raw = RawTerminal::enter();
        write!(output, "\x1b[?1049h\x1b[?25l")?;
        let seen = Seen::default();
        Ok(Self { arguments, process, view, recording, seen, keys: keys(), output, _raw: raw })
    }

    /// Draws until someone quits; whether the program ended is the answer.
    pub(super) fn show(
        mut self,
        signals: &Signals,
        delay: Duration,
        limit: Option<Duration>,
    ) -> Result<bool, CommandError> {
        let begun = Instant::now();
        let mut drawn = begun;
        let mut due = begun + delay.min(Duration::from_millis(300));
        self.draw()?;
        loop {
            // A change of the size is a reason to draw; all other signals are reasons to go.
            let signal = signals.wait(self.recording.wait().min(LONGEST_WAIT));
            let mut redraw = match signal {
                Some(received) if !received.is_resize() => return Ok(false),
                signal => signal.is_some(),
            };
            while let Ok(key) = self.keys.try_recv() {
                match self.press(key)? {
                    Asked::Quit => return Ok(false),
                    Asked::Redraw => redraw = true,
                    Asked::Nothing => {}
                }
            }
            if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                return Ok(false);
            }
            if self.recording.wait().is_zero() && !self.recording.sample() {
                return Ok(true);
            }
            let now = Instant::now();
            if now >= due {
                due = now + delay;
                self.refresh(now.duration_since(std::mem::replace(&mut drawn, now)));
                redraw = true;
            }
            if redraw {
                self.draw()?;
            }
        }
    }

    fn press(&mut self, key: u8) -> Result<Asked, CommandError> {
        let view = &mut self.view;
        match key {
            b'q' | b'Q' | 3 => return Ok(Asked::Quit),
            b'o' => (view.by_total, view.threads) = (false, false),
            b't' => (view.by_total, view.threads) = (true, false),
            b'h' => view.threads = !view.threads,
            // Lines and functions are counted apart.
            b'l' => {
                view.lines = !view.lines;
                self.clear();
            }
            b'i' => {
                view.idle = !view.idle;
                self.attach_again()?;
            }
            b'g' => {
                view.gil = !view.gil;
                self.attach_again()?;
            }
            b'c' => self.clear(),
            _ => return Ok(Asked::Nothing),
        }
        Ok(Asked::Redraw)
    }

    fn clear(&mut self) {
        self.seen = Seen { before: self.recording.totals(), ..Seen::default() };
    }

    fn attach_again(&mut self) -> Result<(), CommandError> {
        self.recording = Recording::attach(self.process, options(self.arguments, &self.view))?;
        self.seen = Seen::default();
        Ok(())
    }

    /// Takes what was sampled since the last time.
    fn refresh(&mut self, span: Duration) {
        let trace = self.recording.take();
        let seen = &mut self.seen;
        seen.recent = SampledTimes::default();
        seen.recent.add(&trace, self.view.lines);
        seen.all.add(&trace, self.view.lines);
        seen.threads = thread_times(&trace);
        seen.span = span;
    }

    fn draw(&mut self) -> Result<(), CommandError> {
        let (width, height) = size();
        let mut lines = self.facts();
        let rows = if self.view.threads { self.threads() } else { self.functions() };
        // The heading stays however low the screen.
        lines.extend(rows.into_iter().take(height.saturating_sub(OTHER_LINES) + 1));
        lines.resize(height.saturating_sub(1), String::new());
        lines.push(self.help());
        let mut screen = String::from("\x1b[H");
        for (index, line) in lines.iter().take(height).enumerate() {
            if index > 0 {
                screen.push_str("\r\n");
            }
            screen.extend(hotspan_store::visible(line).chars().take(width));
            screen.push_str("\x1b[K");
        }
        screen.push_str("\x1b[J");
        self.output.write_all(screen.as_bytes())?;
        self.output.flush()?;
        Ok(())
    }

    fn facts(&self) -> Vec<String> {
        let (totals, before) = (self.recording.totals(), self.seen.before);
        let looks = totals.looks.saturating_sub(before.looks).max(1) as f64;
        let share = |now: u64, before: u64| now.saturating_sub(before) as f64 * 100.0 / looks;
        let version = self.recording.reader().map(|reader| reader.interpreter().version.to_string());
        let (process, rate) = (self.process, self.arguments.rate);
        vec![
            format!(
                "hotspan top: process {process}, Python {}, {rate} samples a second",
                version.unwrap_or_default()
            ),
            format!(
                "GIL {:.1} %   active {:.1} %   threads {}   {} looks",
                share(totals.gil_held, before.gil_held),
                share(totals.active, before.active),
                totals.threads,
                totals.looks,
            ),
            String::new(),
        ]
    }

    fn functions(&self) -> Vec<String> {
        let what = if self.view.lines { "Line" } else { "Function" };
        let heading = ["Own %", "Total %", "Own", "Total"];
        let [own, total, own_time, total_time] = heading;
        let mut lines = vec![format!("{own:>7} {total:>7} {own_time:>11} {total_time:>11}  {what}")];
        let all: HashMap<&Sampled, SampledTime> = self.seen.all.rows().into_iter().collect();
        let mut rows = self.seen.recent.rows();
        if self.view.by_total {
            rows.sort_by_key(|(_, time)| std::cmp::Reverse(time.total));
        }
        let whole = self.seen.recent.total.0.max(1) as f64;
        lines.extend(rows.into_iter().map(|(key, time)| {
            let sum = all.get(key).copied().unwrap_or_default();
            format!(
                "{:>6.1}% {:>6.1}% {:>11} {:>11}  {} ({})",
                time.own.0 as f64 * 100.0 / whole,
                time.total.0 as f64 * 100.0 / whole,
                sum.own.to_string(),
                sum.total.to_string(),
                key.name,
                key.location(),
            )
        }));
        lines
    }

    fn threads(&self) -> Vec<String> {
        let mut lines = vec![format!("{:>7} {:>7}  Thread", "Busy %", "GIL %")];
        let whole = self.seen.span.as_nanos().max(1) as f64;
        lines.extend(self.seen.threads.iter().map(|thread| {
            let share = |time: hotspan_store::Duration| time.0 as f64 * 100.0 / whole;
            format!("{:>6.1}% {:>6.1}%  {}", share(thread.busy), share(thread.gil), thread.name)
        }));
        lines
    }

    fn help(&self) -> String {
        let view = &self.view;
        let keys = [
            ("o own", !view.by_total && !view.threads),
            ("t total", view.by_total && !view.threads),
            ("l lines", view.lines),
            ("h threads", view.threads),
            ("i idle", view.idle),
            ("g gil", view.gil),
            ("c clear", false),
            ("q quit", false),
        ];
        keys.map(|(key, on)| format!("{key}{}", if on { "*" } else { "" })).join("  ")
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        let _ = write!(self.output, "\x1b[?25h\x1b[?1049l");
        let _ = self.output.flush();
    }
}

/// Keys as they come; the thread ends with the process.
fn keys() -> Receiver<u8> {
    let (send, keys) = channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while io::stdin().read(&mut byte).is_ok_and(|length| length == 1) {
            if send.send(byte[0]).is_err() {
                break;
            }
        }
    });
    keys
}
