//! `hotspan top`: what a running Python program spends its time on, live.
//!
//! Plain terminal codes: one screen, drawn anew each second; keys are read as they are pressed.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hotspan_analyze::sampled::{Sampled, SampledTime};
use hotspan_analyze::{Cell, SampledTimes, Table};
use hotspan_collect::sampler::{ProcessNumber, Recording, SampleOptions, Totals, signals};
use hotspan_collect::terminal::{RawTerminal, size};
use serde_json::json;

use crate::error::CommandError;
use crate::present::{self, printable};

const EXAMPLES: &str = "\
Examples:
  hotspan top --pid 1234
  hotspan top --pid 1234 -r 500 -s          # finer, with its children
  hotspan top --pid 1234 --once -d 5 --json # no screen: five seconds, as data

Keys: o own time, t total time, l lines or functions, i idle threads, g GIL only, c clear, q quit";

/// Show live which functions of a running Python program take the time
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The process to look at
    #[arg(short, long, value_name = "PID")]
    pid: u32,
    /// Samples a second
    #[arg(short, long, value_name = "HZ", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// Look at the children of the process too
    #[arg(short, long)]
    subprocesses: bool,
    /// Count only the thread that holds the GIL
    #[arg(short, long)]
    gil: bool,
    /// Count threads that wait, too
    #[arg(short, long)]
    idle: bool,
    /// Tell lines of a function apart
    #[arg(short, long)]
    lines: bool,
    /// Seconds between two screens
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    delay: f64,
    /// Stop after so many seconds
    #[arg(short, long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Print one table at the end instead of a live screen
    #[arg(long)]
    once: bool,
    /// With --once: print JSON, times in nanoseconds
    #[arg(long, requires = "once")]
    json: bool,
}

/// What the person has chosen with keys.
struct View {
    by_total: bool,
    lines: bool,
    idle: bool,
    gil: bool,
}

/// What was seen since the program was attached to, or since it was cleared.
#[derive(Default)]
struct Seen {
    recent: SampledTimes,
    all: SampledTimes,
    before: Totals,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut view = View { by_total: false, lines: arguments.lines, idle: arguments.idle, gil: arguments.gil };
    let mut recording = attach(arguments, &view)?;
    let delay = Duration::from_secs_f64(arguments.delay.clamp(0.05, 3600.0));
    let limit = arguments
        .duration
        .filter(|seconds| *seconds > 0.0)
        .map(|seconds| Duration::from_secs_f64(seconds.min(1e9)));
    signals::listen();
    if arguments.once {
        let limit = limit.unwrap_or(delay);
        return once(arguments, recording, limit, output);
    }
    if !io::stdout().is_terminal() {
        return Err(CommandError::Usage(
            "top draws on a terminal; with --once it prints a table (and JSON with --json)".to_owned(),
        ));
    }
    let _raw = RawTerminal::enter();
    let keys = keys();
    write!(output, "\x1b[?1049h\x1b[?25l")?;
    let ended = live(arguments, &mut view, &mut recording, delay, limit, &keys, output);
    write!(output, "\x1b[?25h\x1b[?1049l")?;
    output.flush()?;
    if ended? {
        writeln!(output, "process {} has ended", arguments.pid)?;
    }
    Ok(())
}

fn attach(arguments: &Arguments, view: &View) -> Result<Recording, CommandError> {
    let options = SampleOptions {
        period: Duration::from_nanos(1_000_000_000 / u64::from(arguments.rate)),
        subprocesses: arguments.subprocesses,
        idle: view.idle,
        gil_only: view.gil,
    };
    Ok(Recording::attach(ProcessNumber(arguments.pid), options)?)
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

/// Draws until someone quits; whether the program ended is the answer.
fn live(
    arguments: &Arguments,
    view: &mut View,
    recording: &mut Recording,
    delay: Duration,
    limit: Option<Duration>,
    keys: &Receiver<u8>,
    output: &mut dyn Write,
) -> Result<bool, CommandError> {
    let begun = Instant::now();
    let mut seen = Seen::default();
    let mut due = Instant::now() + delay.min(Duration::from_millis(300));
    draw(arguments, view, recording, &seen, output)?;
    loop {
        std::thread::sleep(recording.wait().min(Duration::from_millis(50)));
        let mut redraw = false;
        while let Ok(key) = keys.try_recv() {
            let attached = (view.idle, view.gil);
            match key {
                b'q' | b'Q' | 3 => return Ok(false),
                b'o' => view.by_total = false,
                b't' => view.by_total = true,
                b'l' => view.lines = !view.lines,
                b'i' => view.idle = !view.idle,
                b'g' => view.gil = !view.gil,
                b'c' => seen = Seen { before: recording.totals(), ..Seen::default() },
                _ => continue,
            }
            if key == b'l' {
                // Lines and functions are counted apart.
                seen = Seen { before: recording.totals(), ..Seen::default() };
            }
            if attached != (view.idle, view.gil) {
                *recording = attach(arguments, view)?;
                seen = Seen::default();
            }
            redraw = true;
        }
        if signals::take().is_some() || limit.is_some_and(|limit| begun.elapsed() >= limit) {
            return Ok(false);
        }
        if recording.wait().is_zero() && !recording.sample() {
            return Ok(true);
        }
        if Instant::now() >= due {
            due = Instant::now() + delay;
            let trace = recording.take();
            seen.recent = SampledTimes::default();
            seen.recent.add(&trace, view.lines);
            seen.all.add(&trace, view.lines);
            redraw = true;
        }
        if redraw {
            draw(arguments, view, recording, &seen, output)?;
        }
    }
}

fn draw(
    arguments: &Arguments,
    view: &View,
    recording: &Recording,
    seen: &Seen,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let (width, height) = size();
    let totals = recording.totals();
    let looks = (totals.looks - seen.before.looks.min(totals.looks)).max(1) as f64;
    let share = |now: u64, before: u64| (now - before.min(now)) as f64 * 100.0 / looks;
    let python =
        recording.reader().map(|reader| reader.interpreter().version.to_string()).unwrap_or_default();
    let mut lines = vec![
        format!(
            "hotspan top: process {}, Python {python}, {} samples a second",
            arguments.pid, arguments.rate
        ),
        format!(
            "GIL {:.1} %   active {:.1} %   threads {}   {} looks",
            share(totals.gil_held, seen.before.gil_held),
            share(totals.active, seen.before.active),
            totals.threads,
            totals.looks,
        ),
        String::new(),
        format!(
            "{:>7} {:>7} {:>11} {:>11}  {}",
            "Own %",
            "Total %",
            "Own",
            "Total",
            if view.lines { "Line" } else { "Function" }
        ),
    ];
    let all: std::collections::HashMap<&Sampled, SampledTime> = seen.all.rows().into_iter().collect();
    let mut rows = seen.recent.rows();
    if view.by_total {
        rows.sort_by_key(|(_, time)| std::cmp::Reverse(time.total));
    }
    let whole = seen.recent.total.0.max(1) as f64;
    for (key, time) in rows.into_iter().take(height.saturating_sub(6)) {
        let sum = all.get(key).copied().unwrap_or_default();
        lines.push(format!(
            "{:>6.1}% {:>6.1}% {:>11} {:>11}  {} ({}:{})",
            time.own.0 as f64 * 100.0 / whole,
            time.total.0 as f64 * 100.0 / whole,
            sum.own.to_string(),
            sum.total.to_string(),
            key.name,
            key.file,
            key.line
        ));
    }
    lines.resize(height.saturating_sub(1), String::new());
    let mark = |on: bool| if on { "*" } else { "" };
    lines.push(format!(
        "o own{}  t total{}  l lines{}  i idle{}  g gil{}  c clear  q quit",
        mark(!view.by_total),
        mark(view.by_total),
        mark(view.lines),
        mark(view.idle),
        mark(view.gil)
    ));
    let mut screen = String::from("\x1b[H");
    for (index, line) in lines.iter().take(height).enumerate() {
        let text: String = printable(line).replace('\n', " ").chars().take(width).collect();
        if index > 0 {
            screen.push_str("\r\n");
        }
        screen.push_str(&text);
        screen.push_str("\x1b[K");
    }
    output.write_all(screen.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// A table of what was seen in a while.
fn once(
    arguments: &Arguments,
    mut recording: Recording,
    limit: Duration,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let begun = Instant::now();
    while begun.elapsed() < limit && signals::take().is_none() {
        std::thread::sleep(recording.wait().min(limit.saturating_sub(begun.elapsed())));
        if recording.wait().is_zero() && !recording.sample() {
            break;
        }
    }
    let totals = recording.totals();
    let trace = recording.finish();
    let mut times = SampledTimes::default();
    times.add(&trace, arguments.lines);
    let mut table: Table = times.report();
    if arguments.json {
        let share =
            |part: u64| if totals.looks == 0 { 0.0 } else { part as f64 * 100.0 / totals.looks as f64 };
        let object = json!({
            "pid": arguments.pid,
            "samples": totals.samples,
            "threads": totals.threads,
            "gil_percent": share(totals.gil_held),
            "active_percent": share(totals.active),
            "rows": present::json_rows(&table),
        });
        writeln!(output, "{object:#}")?;
        return Ok(());
    }
    table.title = format!("{} samples of process {}", totals.samples, arguments.pid);
    table.rows.truncate(40);
    debug_assert!(table.rows.iter().all(|row| !matches!(row[4], Cell::Missing)));
    output.write_all(present::text(&table).as_bytes())?;
    Ok(())
}
