//! A day of operators, replayed fast through the agent: its memory stays small, the oldest files can go while it writes, and what
//! is left merges and reads. `bench/long_run.py` does the same at full size. Alone in its binary: the peak is that of the process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what the test is made of may fail like a test")]

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hotspan_collect::agent::{Agent, Plan, Source};
use hotspan_collect::segments::SegmentLimit;
use hotspan_store::args::PendingArgs;
use hotspan_store::file::{self, FileError};
use hotspan_store::{
    Arg, ArgOrigin, ArgSchemaId, Duration as Nanoseconds, EventRow, FileMerge, Ident, Loss, SpanRow,
    StringId, Survey, Timestamp, TraceBuilder,
};

const DAY: i64 = 86_400_000_000_000;
const START: i64 = 1_700_000_000_000_000_000;
/// Operators at once: what a program that does nothing else leaves in a round of the agent.
const ROUND: i64 = 50_000;
/// What writing and merging may take, whatever the size.
const LIMIT: u64 = 48 << 20;

/// The size of the recording, and how much of it is kept: small ones, unless the environment says otherwise.
fn sizes() -> (u64, u64) {
    let read = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .map_or(default, |bytes| bytes as u64)
    };
    (read("HOTSPAN_REPLAY_BYTES", 6_400_000), read("HOTSPAN_REPLAY_KEEP", 2_200_000))
}

/// Operators, as many as there are in a round, at times that go on as fast as the day has to pass.
struct Replay {
    pushed: Arc<AtomicI64>,
    step: i64,
    schema: Option<ArgSchemaId>,
    names: Vec<StringId>,
}

impl Source for Replay {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        let category = builder.category("cpu_op");
        if self.names.is_empty() {
            self.names = (0..40).map(|number| builder.intern(&format!("aten::operator_{number}"))).collect();
        }
        let first = self.pushed.fetch_add(ROUND, Ordering::Relaxed);
        for number in first..first + ROUND {
            let values = [Arg::Int(number + 1), Arg::Int(0), Arg::Int(number / 3), Arg::Int(number)];
            let known = self.schema.and_then(|schema| builder.repeat_args(schema, &values));
            let args = known.unwrap_or_else(|| {
                let mut pending = PendingArgs::default();
                let keys = ["External id", "Record function id", "Sequence number", "Ev Idx"];
                for (key, value) in keys.iter().zip(values) {
                    builder.push_arg(&mut pending, ArgOrigin::Args, key.as_bytes(), value);
                }
                builder.commit_args(&mut pending)
            });
            self.schema = Some(args.schema);
            // Uneven, as programs are.
            let jitter = number.wrapping_mul(2_654_435_761) & 0xFFF;
            let time = Timestamp(START + number * self.step + jitter);
            let name = self.names[(jitter % 40) as usize];
            let event = EventRow { time, name, category, track, args };
            builder.push_span(SpanRow { event, duration: Nanoseconds(700 + jitter * 20) });
        }
    }

    fn finish(self: Box<Self>, _: &mut TraceBuilder) {}
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The first has no number.
    files
        .sort_by_key(|path| (path.file_name().unwrap().to_string_lossy().matches('.').count(), path.clone()));
    files
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Deletes the oldest files, as the launcher does; says how many bytes went.
fn drop_oldest(folder: &Path, keep: u64) -> u64 {
    let files = files(folder);
    let mut total: u64 = files.iter().map(|path| size(path)).sum();
    let before = total;
    for path in &files[..files.len() - 1] {
        if total > keep {
            total -= size(path);
            fs::remove_file(path).unwrap();
        }
    }
    before - total
}

fn merge(folder: &Path, output: &Path) -> Result<Vec<Survey>, FileError> {
    let files = files(folder);
    let open = |index: usize| Ok(BufReader::new(File::open(&files[index])?));
    let surveys: Vec<Survey> =
        (0..files.len()).map(|index| Survey::of(open(index)?)).collect::<Result<_, _>>()?;
    let mut writer = file::Writer::create(File::create(output)?)?;
    let mut merge = FileMerge::new(&surveys);
    merge.add_segments(&surveys, open, &mut |_, _| None, &mut |builder| writer.append(builder))?;
    writer.finish(merge.builder())?;
    Ok(surveys)
}

/// The resident memory of this process: now, and the most since the mark was set.
fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kilobytes = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (kilobytes("VmRSS:") << 10, kilobytes("VmHWM:") << 10)
}

fn forget_peak() -> u64 {
    File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
    resident().0
}

#[test]
fn a_day_is_recorded_within_limits() {
    let (bytes, keep) = sizes();
    let parent = std::env::temp_dir().join(format!("hotspan-long-run-{}", std::process::id()));
    let folder = parent.join("spool");
    fs::create_dir_all(&folder).unwrap();
    let pushed = Arc::new(AtomicI64::new(0));
    // About 8 bytes an operator.
    let step = DAY / (bytes as i64 / 8);
    let source = Replay { pushed: Arc::clone(&pushed), step, schema: None, names: Vec::new() };
    let before = forget_peak();
    let segment = SegmentLimit { bytes: Some((keep / 32).max(256 << 10)), time: None };
    let agent = Agent::start(&folder, Plan { segment, ..Plan::default() }).unwrap();
    agent.add(Box::new(source));
    let flusher = agent.flusher();
    let mut dropped = 0;
    while pushed.load(Ordering::Relaxed) * step < DAY {
        assert!(flusher.flush(Duration::from_secs(60)));
        dropped += drop_oldest(&folder, keep);
    }
    agent.finish().unwrap();
    let written = resident().1 - before;

    let output = parent.join("day.hotspan");
    let before = forget_peak();
    let surveys = merge(&folder, &output).unwrap();
    let merged = resident().1 - before;
    let kept: u64 = files(&folder).iter().map(|path| size(path)).sum();
    let survey = Survey::of(BufReader::new(File::open(&output).unwrap())).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let spans = pushed.load(Ordering::Relaxed) as u64;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "{spans} operators in 24 h, {:.1} MB written, {:.1} MB kept, {:.1} bytes an operator, recording {:.1} MB; \
         peak of writing {:.1} MB, of merging {:.1} MB",
        megabytes(dropped + kept),
        megabytes(kept),
        (dropped + kept) as f64 / spans as f64,
        megabytes(size(&output)),
        megabytes(written),
        megabytes(merged),
    );
    // The agent adds the memory of the process, at most once a round and at the end.
    let others = survey.events + survey.losses.count(Loss::DroppedEvents) - spans;
    assert!(others <= spans / ROUND as u64 + 2, "every operator is there or counted: {others}");
    assert!(survey.losses.count(Loss::DroppedEvents) > 0 && survey.losses.counts().len() == 1);
    assert!(surveys.iter().all(|survey| survey.losses.is_empty()), "each file is whole");
    assert!(dropped + kept < spans * 20, "{} bytes an operator", (dropped + kept) / spans);
    if bytes < 100_000_000 {
        let trace = file::read(BufReader::new(File::open(&output).unwrap()), &mut |_| true).unwrap();
        let last = trace.spans().ids().last().unwrap();
        let end = trace.clock().unix_origin().unwrap() + trace.spans().time(last).0;
        assert!(end - START > DAY - 2 * ROUND * step, "the latest is kept");
    }
    fs::remove_dir_all(&parent).unwrap();
    assert!(written < LIMIT, "the agent took {written} bytes");
    assert!(merged < LIMIT, "the merge took {merged} bytes");
}
