//! What the main thread waits for, and at which line: files and sockets, locks, other threads and processes, sleep.

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameKind, SampleState, StackId, Trace, TrackId};

use crate::overview::folder::ProgramFolder;
use crate::overview::hot::program_line;
use crate::report::Table;
use crate::report::schema::{Schema, share, unless_empty};
use crate::wall_time::kernel_call_of_wait;

/// Waits below this share of the wall time, in percent, are not worth a table.
const LEAST: f64 = 1.0;
const ROWS: usize = 6;

/// Waits outside of imports, by what and where.
pub(super) fn waits(trace: &Trace, main: Option<TrackId>, whole: Duration) -> Option<Table> {
    let mut times: HashMap<(String, String), Duration> = HashMap::new();
    let folder = ProgramFolder::of(trace);
    let mut calls: HashMap<StackId, Option<String>> = HashMap::new();
    for sample in trace.profile().samples.rows().filter(|row| Some(row.track) == main) {
        let kind = match sample.state {
            SampleState::Io => "I/O",
            SampleState::Lock => "lock",
            SampleState::Sleep => "sleep",
            SampleState::Waiting => "wait",
            SampleState::Running | SampleState::Unknown => continue,
        };
        let call = calls.entry(sample.stack).or_insert_with(|| kernel_call_of_wait(trace, sample.stack));
        let Some(call) = call else { continue };
        let what = if call.is_empty() { kind.to_owned() } else { format!("{kind}: {call}") };
        let line = line(trace, &folder, sample.stack);
        *times.entry((what, line)).or_default() += Duration(sample.weight.0.max(0));
    }
    let all: Duration = times.values().copied().sum();
    if all.0 as f64 * 100.0 < whole.0 as f64 * LEAST {
        return None;
    }
    let mut rows: Vec<_> = times.into_iter().collect();
    rows.sort_by(|(left, mine), (right, other)| (other, left).cmp(&(mine, right)));
    rows.truncate(ROWS);
    let table = Schema::<((String, String), Duration)>::new("waits", "What the main thread waited for")
        .duration("time", "Time", |row| row.1)
        .help("How long it waited.")
        .percent("share", "Share", move |row| share(row.1, whole))
        .help("The same as a share of the wall time.")
        .text("what", "What", |row| &row.0.0)
        .help("The kind of wait, and the system call.")
        .text("line", "Line", |row| unless_empty(&row.0.1))
        .help("The line of the program, or the innermost Python function.")
        .table(&rows);
    Some(table)
}

/// The line of the program, or the innermost Python function.
fn line(trace: &Trace, folder: &ProgramFolder, stack: StackId) -> String {
    let profile = trace.profile();
    let python = || {
        let mut frames = profile.stacks.frames(stack);
        frames.find(|&frame| profile.frames.row(frame).kind == FrameKind::Python)
    };
    let Some(row) = program_line(trace, stack).or_else(python).map(|frame| profile.frames.row(frame)) else {
        return String::new();
    };
    format!("{}:{}", folder.shorten(trace.str(row.file)), row.line)
}
