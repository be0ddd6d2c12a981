//! Merging files takes memory for a few chunks, not for the files. Alone in its binary: the peak is that of the process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what the test is made of may fail like a test")]

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, Duration, EventRow, FileMerge, Ident, SpanRow, Survey, Timestamp, TraceBuilder, file,
};

const SPANS: i64 = 500_000;
/// What two files of so many spans may take on their way into one: a tenth of what the spans take in memory.
const LIMIT: u64 = 16 << 20;

/// A recording of operators, written as the agent does.
fn record(path: &Path, process: i64) {
    let mut builder = TraceBuilder::new();
    builder.clock.base_unix = Some(0);
    let mut writer = file::Writer::create(File::create(path).unwrap()).unwrap();
    let track = builder.track(Ident::Int(process), Ident::Int(process));
    let category = builder.category("cpu_op");
    let mut pending = PendingArgs::default();
    for number in 0..SPANS {
        let name = builder.intern(["aten::add", "aten::mul", "aten::relu"][number as usize % 3]);
        builder.push_arg(&mut pending, ArgOrigin::Args, b"External id", Arg::Int(number + 1));
        builder.push_arg(&mut pending, ArgOrigin::Args, b"Ev Idx", Arg::Int(number));
        let args = builder.commit_args(&mut pending);
        pending.clear();
        let time = Timestamp(1_700_000_000_000_000_000 + number * 5_000 + number % 977);
        let event = EventRow { time, name, category, track, args };
        builder.push_span(SpanRow { event, duration: Duration(1_000 + number % 3_001) });
        if number % 20_000 == 0 {
            writer.append(&mut builder).unwrap();
        }
    }
    writer.finish(&mut builder).unwrap();
}

fn merge(paths: &[PathBuf], output: &Path) -> u64 {
    let open = |path: &PathBuf| BufReader::new(File::open(path).unwrap());
    let surveys: Vec<Survey> = paths.iter().map(|path| Survey::of(open(path)).unwrap()).collect();
    let mut writer = file::Writer::create(File::create(output).unwrap()).unwrap();
    let mut merge = FileMerge::new(&surveys);
    for (path, survey) in paths.iter().zip(&surveys) {
        merge.add(open(path), survey, &mut |_, _| None, &mut |builder| writer.append(builder)).unwrap();
    }
    writer.finish(&mut merge.into_builder()).unwrap();
    surveys.iter().map(|survey| survey.events).sum()
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

fn forget_peak() {
    File::options().write(true).open("/proc/self/clear_refs").unwrap().write_all(b"5").unwrap();
}

#[test]
fn a_merge_of_files_takes_little_memory() {
    let folder = std::env::temp_dir().join(format!("hotspan-memory-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let paths = [folder.join("1.hotspan"), folder.join("2.hotspan")];
    (1..).zip(&paths).for_each(|(process, path)| record(path, process));
    let output = folder.join("both.hotspan");
    forget_peak();
    let (before, _) = resident();
    let events = merge(&paths, &output);
    let (_, peak) = resident();
    // What the limit is worth: the same spans in memory.
    let whole = file::read(BufReader::new(File::open(&output).unwrap()), &mut |_| true).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!((events, whole.spans().len()), (2 * SPANS as u64, 2 * SPANS as usize));
    assert!(whole.losses().is_empty());
    assert!(whole.heap_bytes() as u64 > 2 * LIMIT, "{} bytes are too few to tell", whole.heap_bytes());
    assert!(peak - before < LIMIT, "the merge took {} bytes", peak - before);
}
