//! What cost most according to samples: functions, and lines of the program's own files.
//!
//! The main thread counts with all its time, waiting included, since that is what the user waits for. Other threads and
//! processes count while they ran: most of them wait for work most of the time.

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, FrameId, FrameKind, FrameRow, SampleState, StackId, Trace};

use crate::call_tree::is_library;
use crate::model::Model;
use crate::overview::folder::ProgramFolder;
use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::wall_time::{
    is_importing, is_open_mp, is_recorder, is_system_or_interpreter, package, program_thread,
};

/// The name of the thread that records.
const OWN_THREAD: &str = "hotspan";

/// Time by stack, of those samples that count.
pub(crate) fn counted_samples(trace: &Trace) -> Vec<(StackId, Duration)> {
    let main = program_thread(trace);
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
    let installed = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| file.split_once(folder));
    let standard = || {
        let (_, rest) = file.split_once("/lib/python3")?;
        rest.split_once('/')
    };
    installed.or_else(standard).map_or(file, |(_, inside)| inside)
}

/// Whether a thread is the one that records.
pub(crate) fn is_ours(trace: &Trace, name: Option<hotspan_store::StringId>) -> bool {
    name.is_some_and(|name| trace.str(name) == OWN_THREAD)
}

/// The time of a function or a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HotRow {
    pub(super) name: String,
    /// File and line, or the package of native code.
    pub(super) location: String,
    /// While it was innermost; for a line, with all it called.
    pub(super) own: Duration,
    pub(super) total: Duration,
}

/// Functions by their own time, outside of imports: those have a part of their own, and lines show which cost most.
pub(super) fn functions(model: &Model) -> Vec<HotRow> {
    let profile = model.profile();
    // Frames that differ only in the line being executed are one function.
    let functions = profile.frames.firsts_by(|row| FrameRow { line: 0, ..row });
    let mut times: HashMap<FrameId, (Duration, Duration)> = HashMap::new();
    let mut seen = HashSet::new();
    for &(stack, weight) in model.counted_samples().iter().filter(|&&(stack, _)| !is_importing(model, stack))
    {
        seen.clear();
        let mut innermost = true;
        for frame in profile.stacks.frames(stack).map(|frame| functions[frame.index()]) {
            let row = profile.frames.row(frame);
            let file = model.str(row.file);
            if is_recorder(file) || (row.kind == FrameKind::Native && is_glue(file)) {
                continue;
            }
            let time = times.entry(frame).or_default();
            if std::mem::take(&mut innermost) {
                time.0 += weight;
            }
            if seen.insert(frame) {
                time.1 += weight;
            }
        }
    }
    let folder = ProgramFolder::of(model);
    let mut rows: Vec<_> = times.into_iter().filter(|(_, (own, _))| own.0 > 0).collect();
    rows.sort_unstable_by_key(|&(frame, times)| (std::cmp::Reverse(times), frame));
    let row = |(frame, (own, total)): (FrameId, (Duration, Duration))| {
        let row = profile.frames.row(frame);
        let file = model.str(row.file);
        let location = match row.kind {
            FrameKind::Python => format!("{}:{}", folder.shorten(inside_library(file)), row.first_line),
            FrameKind::Native => package(file),
            FrameKind::Builtin => "built-in".to_owned(),
        };
        HotRow { name: model.str(row.name).to_owned(), location, own, total }
    };
    united(rows.into_iter().map(row))
}

/// One row for each function: processes may spell its file differently.
fn united(rows: impl Iterator<Item = HotRow>) -> Vec<HotRow> {
    let mut found: Vec<HotRow> = Vec::new();
    let mut positions: HashMap<(String, String), usize> = HashMap::new();
    for row in rows {
        match positions.entry((row.name.clone(), row.location.clone())) {
            Entry::Occupied(known) => {
                let known = &mut found[*known.get()];
                known.own += row.own;
                known.total += row.total;
            }
            Entry::Vacant(new) => {
                new.insert(found.len());
                found.push(row);
            }
        }
    }
    found.sort_by_key(|row| std::cmp::Reverse((row.own, row.total)));
    found
}

/// The kernel, the C library and the interpreter run what others ask for: what they do is the caller's own time. Threads of
/// OpenMP spin while they wait for work, which is nobody's.
fn is_glue(file: &str) -> bool {
    file.is_empty() || file == "[kernel]" || is_open_mp(file) || is_system_or_interpreter(file)
}

/// The functions that children of multiprocessing run first: `spawn_main` of those that are spawned, `main` of the server of forks and
/// of the tracker of resources.
const STARTERS: [&str; 2] = ["spawn_main", "main"];

fn in_multiprocessing(file: &str) -> bool {
    file.contains("multiprocessing/")
}

/// The innermost frame of a stack in a file of the program's own. A program that has no file is the text that was given to Python.
pub(crate) fn program_line(trace: &Trace, stack: StackId) -> Option<FrameId> {
    let profile = trace.profile();
    let given_text = || {
        let rows = || profile.stacks.frames(stack).map(|frame| profile.frames.row(frame));
        let outermost = rows().filter(|row| row.kind == FrameKind::Python).last()?;
        // The children of multiprocessing are started with a text, too, which is none of the program's.
        if rows()
            .any(|row| STARTERS.contains(&trace.str(row.name)) && in_multiprocessing(trace.str(row.file)))
        {
            return None;
        }
        let is_text = ["<string>", "<stdin>"].contains(&trace.str(outermost.file));
        let is_of_text = |frame: &FrameId| {
            let row = profile.frames.row(*frame);
            row.kind == FrameKind::Python && row.file == outermost.file && row.line > 0
        };
        (is_text && trace.str(outermost.name) == "<module>")
            .then(|| profile.stacks.frames(stack).find(is_of_text))?
    };
    let is_users = |frame: &FrameId| {
        let row = profile.frames.row(*frame);
        let file = trace.str(row.file);
        let is_file = file.ends_with(".py") || file.contains('/');
        row.kind == FrameKind::Python && row.line > 0 && is_file && !is_library(file) && !is_recorder(file)
    };
    profile.stacks.frames(stack).find(is_users).or_else(given_text)
}

/// Lines of the program's own files: the time of all library code they called is theirs.
pub(super) fn lines(model: &Model) -> Vec<HotRow> {
    let folder = ProgramFolder::of(model);
    let mut rows: Vec<HotRow> = Vec::new();
    for (line, cost) in model.source_lines().iter().filter(|(_, cost)| cost.program > Duration::ZERO) {
        let location = format!("{}:{}", folder.shorten(&line.file), line.line);
        match rows.last_mut().filter(|last| last.location == location) {
            // Functions that begin on one line share it.
            Some(last) => last.own += cost.program,
            None => rows.push(HotRow {
                name: line.function.clone(),
                location,
                own: cost.program,
                total: cost.program,
            }),
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.own));
    rows
}

/// The line of the program's own files in which its main thread was for longest, as `file:line` with its folder. Other
/// threads and processes run beside it: their time is no part of the wall time.
pub(crate) fn costliest_line(model: &Model) -> Option<(String, Duration)> {
    let (main, profile) = (program_thread(model)?, model.profile());
    let mut lines: HashMap<StackId, Option<FrameId>> = HashMap::new();
    let mut costs: HashMap<(&str, u32), Duration> = HashMap::new();
    for sample in profile.samples.rows().filter(|sample| sample.track == main) {
        let line = *lines.entry(sample.stack).or_insert_with(|| program_line(model, sample.stack));
        if let Some(line) = line.map(|frame| profile.frames.row(frame)) {
            *costs.entry((model.str(line.file), line.line)).or_default() += Duration(sample.weight.0.max(0));
        }
    }
    let ((file, line), time) =
        costs.into_iter().max_by_key(|&(line, time)| (time, std::cmp::Reverse(line)))?;
    (time > Duration::ZERO).then(|| (format!("{file}:{line}"), time))
}

/// Functions as a table. Their share is that of the wall time, which threads side by side may exceed.
pub(super) fn function_table(rows: &[HotRow], whole: Duration) -> Option<Table> {
    Schema::<HotRow>::new("functions", "Functions that cost most")
        .duration("own", "Self", |row| row.own)
        .help("Time in the function itself.")
        .percent("own_share", "Self %", move |row| share(row.own, whole))
        .help("Time in the function itself, as a share of the wall time; threads run side by side and may exceed it.")
        .duration("total", "Total", |row| row.total)
        .help("Time in the function and all it called.")
        .text("function", "Function", |row| &row.name)
        .help("The function, of Python or native.")
        .text("place", "Where", |row| &row.location)
        .help("Its file and line, or the package of native code.")
        .table(rows)
        .filled()
}

/// Lines as a table.
pub(super) fn line_table(rows: &[HotRow], whole: Duration) -> Option<Table> {
    Schema::<HotRow>::new("program_lines", "Lines of the program that cost most")
        .duration("time", "Time", |row| row.own)
        .help("Time of the line with the library code it called.")
        .percent("share", "Share", move |row| share(row.own, whole))
        .help("The same as a share of the wall time; threads run side by side and may exceed it.")
        .text("line", "Line", |row| &row.location)
        .help("The innermost line in a file of the program's own.")
        .text("function", "Function", |row| &row.name)
        .help("The function that the line is in.")
        .table(rows)
        .filled()
}
