//! What CUPTI drops, delays or damages is counted, and harms nothing else.

use std::ffi::c_int;

use hotspan_collect::cupti::{Options, Session};
use hotspan_store::Loss;

use crate::fake::{control, fake, names, trace};

#[test]
fn what_cupti_drops_is_counted() {
    let fake = fake();
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    control!(fake, "fake_drop"(usize: 17));
    control!(fake, "fake_stranger"());
    fake.launch(c"endless", 7, 0);
    let trace = trace(session);
    assert_eq!(trace.losses().count(Loss::DeviceRecordsDropped), 17);
    assert_eq!(trace.losses().count(Loss::UnknownDeviceRecord), 1);
    assert_eq!(trace.losses().count(Loss::UntimedDeviceWork), 1);
    assert_eq!(names(&trace, "kernel"), ["kernel"]);
}

#[test]
fn the_memory_limit_holds() {
    let fake = fake();
    let options = Options { max_bytes: Some(10_000), counters: false, ..Options::default() };
    let session = Session::start(&fake.library, options).unwrap();
    for _ in 0..1_000 {
        fake.launch(c"kernel", 7, 10);
    }
    let trace = trace(session);
    let kept = (names(&trace, "kernel").len() + names(&trace, "cuda_runtime").len()) as u64;
    assert!(kept > 10 && kept < 300, "{kept}");
    assert_eq!(trace.losses().count(Loss::BufferFull) + kept, 2_000);
}

#[test]
fn buffers_that_cupti_keeps_are_lost_and_harmless() {
    let fake = fake();
    control!(fake, "fake_late"());
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    let late = trace(session);
    assert!(names(&late, "kernel").is_empty());
    assert_eq!(late.losses().count(Loss::DeviceBufferNotReturned), 1);
    control!(fake, "fake_deliver"()); // nobody listens: the buffer is put away
    control!(fake, "fake_reset"());
    let session = fake.start().unwrap();
    fake.launch(c"next", 7, 10);
    let next = trace(session);
    assert_eq!(names(&next, "kernel"), ["next"], "nothing of the recording before");
    assert!(next.losses().is_empty(), "{:?}", next.losses());
}

#[test]
fn a_slow_cupti_is_waited_for() {
    let fake = fake();
    control!(fake, "fake_slow"(c_int: 5));
    control!(fake, "fake_records_per_buffer"(c_int: 4));
    let session = fake.start().unwrap();
    for _ in 0..20 {
        fake.launch(c"kernel", 7, 10);
    }
    assert_eq!(names(&trace(session), "kernel").len(), 20);
}

#[test]
fn a_damaged_buffer_is_counted() {
    let fake = fake();
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    fake.fail(c"cuptiActivityGetNextRecord", 0, 999);
    let trace = trace(session);
    assert_eq!(trace.losses().count(Loss::DamagedDeviceBuffer), 1);
}

#[test]
fn a_clock_that_was_set_is_told() {
    let fake = fake();
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    control!(fake, "fake_move_clock"(i64: 10_000_000_000));
    let trace = trace(session);
    assert_eq!(trace.losses().count(Loss::ClockJumped), 1);
    let drift: i64 = trace.metadata().get("device_clock_drift_ns").unwrap().parse().unwrap();
    assert!((drift + 10_000_000_000).abs() < 1_000_000, "{drift}");
}

#[test]
fn a_cupti_without_a_clock_places_nothing() {
    let fake = fake();
    fake.fail(c"cuptiGetTimestamp", 0, 15);
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    let trace = trace(session);
    assert!(names(&trace, "kernel").is_empty());
    assert_eq!(trace.losses().count(Loss::UntimedDeviceWork), 2, "the kernel and its call");
}
