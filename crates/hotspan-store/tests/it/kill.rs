//! A recording process is killed, and its file is read.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hotspan_store::{Loss, TraceBuilder, file};

use crate::sample::{is_prefix, push_event, trace};

const FILE: &str = "HOTSPAN_TEST_RECORD_TO";
const EVENTS_PER_CHUNK: i64 = 40;

/// Not a test by itself: the process that is killed. Does nothing unless asked to by the environment.
#[test]
fn recording_process() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(File::create(path).unwrap()).unwrap();
    for number in 0.. {
        push_event(&mut builder, number);
        if (number + 1) % EVENTS_PER_CHUNK == 0 {
            writer.append(&mut builder).unwrap();
        }
    }
}

#[test]
fn a_killed_recording_keeps_all_whole_chunks() {
    let folder = Folder::new("kill");
    let path = folder.0.join("killed.hotspan");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::recording_process", "--nocapture"])
        .env(FILE, &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 200_000 {
        assert!(child.try_wait().unwrap().is_none(), "the recording ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    check(&path);
}

fn check(path: &Path) {
    let size = std::fs::metadata(path).unwrap().len();
    let mut chunks = 0;
    let mut last = 0;
    let trace_read = file::read(File::open(path).unwrap(), &mut |offset| {
        (chunks, last) = (chunks + 1, offset);
        true
    });
    let trace_read = trace_read.unwrap();
    // One call after the schema, one after each chunk.
    let chunks = chunks - 1;
    assert!(chunks > 3);
    let losses = trace_read.losses().counts();
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert_eq!((losses[0].loss, losses[0].first_offset), (Loss::TruncatedFile, Some(last)));
    assert!(size >= last);
    let events = trace_read.spans().len()
        + trace_read.instants().len()
        + trace_read.counters().len()
        + trace_read.flows().len();
    assert_eq!(events as i64, chunks * EVENTS_PER_CHUNK, "every whole chunk is there");
    assert!(is_prefix(&trace_read, &trace(chunks * EVENTS_PER_CHUNK)));
}

/// A folder that is removed with its files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hotspan-store-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
