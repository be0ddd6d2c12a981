//! What cost most according to samples: functions, and lines of the program's own files.
//!
//! The main thread counts with all its time, waiting included, since that is what the user waits for. Other threads and
//! processes count while they ran: most of them wait for work most of the time.

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, FrameId, FrameKind, FrameRow, SampleState, StackId, Trace, TrackId};

use crate::call_tree::is_library;
use crate::report::{Cell, Column, Table};
use crate::wall_time::{is_recorder, is_system_or_interpreter, package};

/// The name of the thread that records.
const OWN_THREAD: &str = "hotspan";

/// Time by stack, of those samples that count.
pub(super) fn by_stack(trace: &Trace, main: Option<TrackId>) -> Vec<(StackId, Duration)> {
    let ours: Vec<bool> = trace.tracks().iter().map(|track| is_ours(trace, track.name)).collect();
    let mut weights: HashMap<StackId, Duration> = HashMap::new();
    let profile = trace.profile();
    let mut profiling: HashMap<StackId, bool> = HashMap::new();
    let mut is_profiling = |stack: StackId| {
        *profiling.entry(stack).or_insert_with(|| {
            let mut frames = profile.stacks.frames(stack).map(|frame| profile.frames.row(frame));
            let python = frames.find(|frame| frame.kind == FrameKind::Python);
            python.is_some_and(|frame| is_recorder(trace.str(frame.file)))
        })
    };
    for sample in trace.profile().samples.rows() {
        let runs = matches!(sample.state, SampleState::Running | SampleState::Unknown);
        let counts = Some(sample.track) == main || (runs && !ours[sample.track.index()]);
        if counts && sample.stack != StackId::NONE && !is_profiling(sample.stack) {
            *weights.entry(sample.stack).or_default() += Duration(sample.weight.0.max(0));
        }
    }
    let mut rows: Vec<_> = weights.into_iter().collect();
    rows.sort_unstable_by_key(|&(stack, _)| stack);
    rows
}

/// The path of a library's file below the folder of libraries; other paths as they are.
fn inside_library(file: &str) -> &str {
    let installed = ["/site-packages/", "/dist-packages/"].iter().find_map(|place| file.split_once(place));
    let standard = || {
        let (_, rest) = file.split_once("/lib/python3")?;
        rest.split_once('/')
    };
    installed.or_else(standard).map_or(file, |(_, inside)| inside)
}

/// Whether a thread is the one that records.
pub(super) fn is_ours(trace: &Trace, name: Option<hotspan_store::StringId>) -> bool {
    name.is_some_and(|name| trace.str(name) == OWN_THREAD)
}

#[derive(Clone, Copy, Debug, Default)]
struct Times {
    own: Duration,
    total: Duration,
}

/// Functions by their own time. Their share is that of the wall time, so threads side by side may exceed it.
pub(super) fn functions(
    trace: &Trace,
    stacks: &[(StackId, Duration)],
    whole: Duration,
    limit: usize,
) -> Option<Table> {
    let profile = trace.profile();
    // Frames that differ only in the line being executed are one function.
    let mut firsts: HashMap<FrameRow, FrameId> = HashMap::new();
    let functions: Vec<FrameId> = profile
        .frames
        .rows()
        .enumerate()
        .map(|(index, row)| *firsts.entry(FrameRow { line: 0, ..row }).or_insert(FrameId::at(index)))
        .collect();
    let mut times: HashMap<FrameId, Times> = HashMap::new();
    let mut seen = HashSet::new();
    for &(stack, weight) in stacks {
        seen.clear();
        let mut innermost = true;
        for frame in profile.stacks.frames(stack).map(|frame| functions[frame.index()]) {
            let row = profile.frames.row(frame);
            let file = trace.str(row.file);
            if is_recorder(file) || (row.kind == FrameKind::Native && is_glue(file)) {
                continue;
            }
            let time = times.entry(frame).or_default();
            if std::mem::take(&mut innermost) {
                time.own += weight;
            }
            if seen.insert(frame) {
                time.total += weight;
            }
        }
    }
    let mut rows: Vec<(FrameId, Times)> = times.into_iter().filter(|(_, time)| time.own.0 > 0).collect();
    rows.sort_unstable_by_key(|&(frame, time)| (std::cmp::Reverse((time.own, time.total)), frame));
    rows.truncate(limit);
    let mut table = Table::new("Functions that cost most");
    table.columns = vec![
        Column::duration("own", "Own"),
        Column::percent("own_share", "Own %"),
        Column::duration("total", "Total"),
        Column::text("function", "Function"),
        Column::text("place", "Where"),
    ];
    for (frame, time) in rows {
        let row = profile.frames.row(frame);
        let file = trace.str(row.file);
        let place = match row.kind {
            FrameKind::Python => format!("{}:{}", inside_library(file), row.first_line),
            FrameKind::Native => package(file),
            FrameKind::Builtin => "built-in".to_owned(),
        };
        table.add_row(vec![
            Cell::Duration(time.own),
            Cell::share(time.own, whole),
            Cell::Duration(time.total),
            Cell::text(trace.str(row.name)),
            Cell::Text(place),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The kernel, the C library and the interpreter run what others ask for: what they do is the caller's own time.
fn is_glue(file: &str) -> bool {
    file.is_empty() || file == "[kernel]" || is_system_or_interpreter(file)
}

/// Lines of the program's own files: the time of all they called is theirs.
pub(super) fn lines(
    trace: &Trace,
    stacks: &[(StackId, Duration)],
    whole: Duration,
    limit: usize,
) -> Option<Table> {
    let profile = trace.profile();
    let mut times: HashMap<(hotspan_store::StringId, u32), (Duration, FrameId)> = HashMap::new();
    for &(stack, weight) in stacks {
        let mut frames = profile.stacks.frames(stack);
        let users = frames.find(|&frame| {
            let row = profile.frames.row(frame);
            let file = trace.str(row.file);
            row.kind == FrameKind::Python
                && row.line > 0
                && !is_library(file)
                && !file.starts_with('<')
                && !is_recorder(file)
        });
        if let Some(frame) = users {
            let row = profile.frames.row(frame);
            times.entry((row.file, row.line)).or_insert((Duration::ZERO, frame)).0 += weight;
        }
    }
    let mut rows: Vec<_> = times.into_iter().collect();
    rows.sort_unstable_by_key(|&((file, line), (time, _))| (std::cmp::Reverse(time), file, line));
    rows.truncate(limit);
    let mut table = Table::new("Lines of the program that cost most");
    table.columns = vec![
        Column::duration("time", "Time"),
        Column::percent("share", "Share"),
        Column::text("line", "Line"),
        Column::text("function", "Function"),
    ];
    for ((file, line), (time, frame)) in rows {
        table.add_row(vec![
            Cell::Duration(time),
            Cell::share(time, whole),
            Cell::Text(format!("{}:{line}", trace.str(file))),
            Cell::text(trace.str(profile.frames.row(frame).name)),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}
