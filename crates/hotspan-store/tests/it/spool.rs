//! A file that grows chunk by chunk says the same as a trace built at once.

use hotspan_store::{Loss, Timestamp, TraceBuilder, file};

use crate::sample::{assert_same, describe, is_prefix, push_event, read, trace};

#[test]
fn many_small_chunks_equal_one_trace() {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    for number in 0..300 {
        push_event(&mut builder, number);
        if number % 7 == 0 {
            writer.append(&mut builder).unwrap();
            assert_eq!(builder.event_count(), 0, "the events are in the file now");
        }
    }
    describe(&mut builder);
    let bytes = writer.finish(&mut builder).unwrap();
    assert_same(&trace(300), &read(&bytes).unwrap());
}

#[test]
fn names_set_late_replace_the_early_ones() {
    let mut builder = TraceBuilder::new();
    push_event(&mut builder, 0);
    builder.metadata.set("steps", "1");
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    writer.append(&mut builder).unwrap();
    describe(&mut builder);
    builder.metadata.set("steps", "2");
    builder.losses.add(Loss::BadEvent, Some(9));
    writer.append(&mut builder).unwrap();
    let trace = read(&writer.finish(&mut builder).unwrap()).unwrap();
    assert_eq!(trace.metadata().get("steps"), Some("2"));
    assert_eq!(trace.processes()[0].name.map(|name| trace.str(name)), Some("python"));
    assert_eq!(trace.losses().count(Loss::BadEvent), 1);
}

#[test]
fn appending_nothing_writes_nothing() {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    push_event(&mut builder, 0);
    writer.append(&mut builder).unwrap();
    let mut once = file::Writer::create(Vec::new()).unwrap();
    let mut same = TraceBuilder::new();
    push_event(&mut same, 0);
    once.append(&mut same).unwrap();
    for _ in 0..10 {
        writer.append(&mut builder).unwrap();
    }
    assert_eq!(writer.finish(&mut builder).unwrap(), once.finish(&mut same).unwrap());
}

#[test]
fn a_file_without_its_end_is_read_and_said_to_be_cut_off() {
    let mut builder = TraceBuilder::new();
    let mut bytes = Vec::new();
    {
        let mut writer = file::Writer::create(&mut bytes).unwrap();
        for number in 0..100 {
            push_event(&mut builder, number);
            writer.append(&mut builder).unwrap();
        }
    }
    let trace = read(&bytes).unwrap();
    assert_eq!(trace.losses().counts().len(), 1);
    assert_eq!(trace.losses().count(Loss::TruncatedFile), 1);
    assert_eq!(trace.losses().counts()[0].first_offset, Some(bytes.len() as u64));
    assert!(is_prefix(&trace, &crate::sample::trace(100)));
    assert_eq!(trace.spans().len(), 25);
}

#[test]
fn a_builder_belongs_to_one_file() {
    let mut builder = TraceBuilder::new();
    push_event(&mut builder, 1);
    file::Writer::create(Vec::new()).unwrap().append(&mut builder).unwrap();
    push_event(&mut builder, 2);
    let other = file::Writer::create(Vec::new()).unwrap().append(&mut builder);
    assert!(matches!(other, Err(file::FileError::OtherBuilder)));
}

#[test]
fn a_full_disk_is_an_error_once_and_for_all() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Full(30_000)).unwrap();
    let mut append = |number| {
        push_event(&mut builder, number);
        writer.append(&mut builder)
    };
    let error = (0..10_000).find_map(|number| append(number).err()).unwrap();
    assert!(matches!(error, file::FileError::Write { .. }), "{error}");
    assert!(matches!(append(0), Err(file::FileError::GivenUp)));
}

#[test]
fn a_file_that_was_read_can_be_continued() {
    let mut builder = TraceBuilder::new();
    (0..20).for_each(|number| push_event(&mut builder, number));
    let mut bytes = Vec::new();
    file::Writer::create(&mut bytes).unwrap().append(&mut builder).unwrap();
    let mut again = file::read_builder(bytes.as_slice(), &mut |_| true).unwrap();
    assert_eq!(again.last_time(), Timestamp(1_000 + 18 * 10), "the sample of event 18");
    (20..40).for_each(|number| push_event(&mut again, number));
    again.losses = hotspan_store::Losses::default();
    describe(&mut again);
    assert_same(&again.finish(), &trace(40));
}
