//! A recording in several files, one after the other, so that the oldest can be deleted while the program runs.
//!
//! Each file stands for itself: strings, frames and layouts are written again at its beginning, and rows are counted anew.
//! The first is `NAME.hotspan`, the next `NAME.000002.hotspan`. Only the last is being written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotspan_store::file::FileError;
use hotspan_store::{TraceBuilder, keys};
use serde_json::json;

use crate::clock;
use crate::spool::Spool;

/// When a file is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentLimit {
    /// At this size.
    pub bytes: Option<u64>,
    /// After this time.
    pub time: Option<Duration>,
}

/// The files of a recording. They belong to one builder.
#[derive(Debug)]
pub(crate) struct Segments {
    /// The file that is being written; none only while the next one begins, or after that failed.
    spool: Option<Spool>,
    limit: SegmentLimit,
    /// The path of the first file.
    first: PathBuf,
    /// The path of the file that is being written, and its number from 1 on.
    path: PathBuf,
    number: u32,
    /// How large the file was with the names that it begins with.
    names: u64,
    /// How many events were written, to all files.
    events: u64,
    began: Instant,
}

impl Segments {
    /// Begins the first file, which must not be there yet.
    pub(crate) fn create_new(path: &Path, limit: SegmentLimit) -> Result<Self, FileError> {
        // The program may change its directory.
        let first = std::path::absolute(path)?;
        let (path, began) = (first.clone(), Instant::now());
        let spool = Some(Spool::create_new(&path)?);
        Ok(Self { spool, limit, first, path, number: 1, names: 0, events: 0, began })
    }

    /// Moves the rows of the builder to the file, and begins the next one when it is full.
    pub(crate) fn append(&mut self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        self.events += builder.event_count() as u64;
        self.spool.as_mut().ok_or(FileError::GivenUp)?.append(builder)?;
        if self.is_full() { self.begin_next(builder) } else { Ok(()) }
    }

    fn is_full(&self) -> bool {
        // Names count apart, and a file has at least as much else: otherwise a program with very many of them would fill one
        // file after the other with nothing but names.
        let rows = || self.size().saturating_sub(self.names);
        self.limit.time.is_some_and(|time| self.began.elapsed() >= time && rows() >= self.names / 8)
            || self.limit.bytes.is_some_and(|bytes| rows() >= bytes.max(self.names))
    }

    fn size(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |about| about.len())
    }

    fn begin_next(&mut self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        let path = self.first.with_extension(format!("{:06}.hotspan", self.number + 1));
        // First the end, for the launcher may delete a file as soon as there is another.
        self.spool.take().ok_or(FileError::GivenUp)?.finish(builder)?;
        let spool = self.spool.insert(Spool::create_new(&path)?);
        builder.begin_file();
        (self.path, self.number, self.began) = (path, self.number + 1, Instant::now());
        let about = json!({
            "number": self.number,
            "events_before": self.events,
            "began_unix_ns": clock::unix_now().0,
        });
        builder.metadata.set(keys::SEGMENT, &about.to_string());
        // A reader finds a file of which nothing but its beginning was written.
        spool.append(builder)?;
        self.names = self.size();
        Ok(())
    }

    /// Writes the rest and marks the last file as complete.
    pub(crate) fn finish(self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        self.spool.ok_or(FileError::GivenUp)?.finish(builder)
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::args::PendingArgs;
    use hotspan_store::{
        Arg, ArgOrigin, Duration as Nanoseconds, EventRow, FrameKind, FrameRow, Ident, SampleRow,
        SampleState, SpanRow, StackId, Timestamp, Trace, file,
    };

    use super::*;

    fn push(builder: &mut TraceBuilder, number: i64) {
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        let (name, category) = (builder.intern("aten::add"), builder.category("cpu_op"));
        let mut pending = PendingArgs::default();
        builder.push_arg(&mut pending, ArgOrigin::Args, b"External id", Arg::Int(number));
        let args = builder.commit_args(&mut pending);
        let time = Timestamp(1_000 + number);
        let event = EventRow { time, name, category, track, args };
        builder.push_span(SpanRow { event, duration: Nanoseconds(1) });
        let frame = FrameRow { name, file: name, line: 1, first_line: 1, kind: FrameKind::Python };
        let frame = builder.frame(frame);
        let stack = builder.stack(StackId::NONE, frame);
        let (weight, state) = (Nanoseconds(5), SampleState::Running);
        builder.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
    }

    fn ids(trace: &Trace) -> Vec<i64> {
        let reader = trace.arg("External id");
        trace.spans().ids().map(|span| reader.int(trace.spans().args(span)).unwrap()).collect()
    }

    #[test]
    fn each_file_stands_for_itself() {
        let folder = std::env::temp_dir().join(format!("hotspan-segments-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("7-123.hotspan");
        let mut builder = TraceBuilder::new();
        let limit = SegmentLimit { bytes: Some(1), time: None };
        let mut segments = Segments::create_new(&path, limit).unwrap();
        for number in 0..6_000 {
            push(&mut builder, number);
            if number % 2_000 == 1_999 {
                segments.append(&mut builder).unwrap();
            }
        }
        push(&mut builder, 6_000);
        segments.finish(&mut builder).unwrap();
        let names = ["7-123.hotspan", "7-123.000002.hotspan", "7-123.000003.hotspan", "7-123.000004.hotspan"];
        let traces =
            names.map(|name| file::read(fs::File::open(folder.join(name)).unwrap(), &mut |_| true).unwrap());
        fs::remove_dir_all(&folder).unwrap();
        let parts = [0..2_000, 2_000..4_000, 4_000..6_000, 6_000..6_001];
        assert_eq!(traces.each_ref().map(ids), parts.map(Vec::from_iter));
        for trace in &traces {
            assert!(trace.losses().is_empty(), "{:?}", trace.losses());
            let stack = trace.profile().samples.rows().next().unwrap().stack;
            assert_eq!(trace.profile().stacks.frames(stack).count(), 1);
        }
        let before = traces
            .map(|trace| trace.metadata().value(keys::SEGMENT).map(|about| about["events_before"].clone()));
        assert_eq!(before, [None, Some(4_000.into()), Some(8_000.into()), Some(12_000.into())]);
    }
}
