//! Device work as spans: names, times, args and arrows.

use std::ffi::{c_char, c_int};

use crate::fake::{DRIVER, GRAPH_LAUNCH, RUNTIME, control, fake, int, names, trace};

#[test]
fn device_work_becomes_spans_with_their_calls() {
    let fake = fake();
    let session = fake.start().unwrap();
    let correlation = fake.launch(c"gemm", 7, 5_000);
    control!(fake, "fake_copy"(u64: 4_096, u64: 1_000));
    control!(fake, "fake_fill"(u64: 64, u64: 10));
    control!(fake, "fake_peer_copy"(u64: 8));
    control!(fake, "fake_event"(u32: 7, u32: 3));
    control!(fake, "fake_wait"(u32: 2, u32: 9, u32: 3));
    control!(fake, "fake_wait"(u32: 4, u32: u32::MAX, u32: u32::MAX));
    control!(fake, "fake_overhead"());
    fake.call(DRIVER, 1);
    let trace = trace(session);

    assert_eq!(names(&trace, "kernel"), ["gemm"]);
    assert_eq!(
        names(&trace, "gpu_memcpy"),
        ["Memcpy HtoD (Pinned -> Device)", "Memcpy PtoP (Device -> Device)"]
    );
    assert_eq!(names(&trace, "gpu_memset"), ["Memset (Device)"]);
    assert_eq!(names(&trace, "cuda_sync"), ["Stream Wait Event", "Context Sync"]);
    assert_eq!(names(&trace, "overhead"), ["Activity Buffer Request"]);
    assert_eq!(names(&trace, "cuda_driver"), ["cuLaunchKernel"]);
    let calls = names(&trace, "cuda_runtime");
    assert_eq!(calls.iter().filter(|name| *name == "cudaLaunchKernel").count(), 1);
    assert_eq!(int(&trace, "kernel", "correlation"), [Some(i64::from(correlation))]);
    assert_eq!(int(&trace, "kernel", "stream"), [Some(7)]);
    assert_eq!(int(&trace, "kernel", "shared memory"), [Some(1_536)]);
    assert_eq!(int(&trace, "kernel", "registers per thread"), [Some(32)]);
    assert_eq!(int(&trace, "kernel", "graph id"), [None], "only work of a graph has one");
    assert_eq!(int(&trace, "gpu_memcpy", "bytes"), [Some(4_096), Some(8)]);
    assert_eq!(int(&trace, "gpu_memcpy", "toDevice"), [None, Some(1)]);
    assert_eq!(int(&trace, "cuda_sync", "wait_on_stream"), [Some(7), None]);
    assert_eq!(int(&trace, "cuda_sync", "wait_on_cuda_event_id"), [Some(3), None]);
    let bandwidth = trace.arg("memory bandwidth (GB/s)");
    let copy =
        trace.spans().ids().find(|&span| trace.str(trace.spans().name(span)).starts_with("Memcpy HtoD"));
    assert_eq!(bandwidth.float(trace.spans().args(copy.unwrap())), Some(4.096));
    assert!(trace.losses().is_empty(), "{:?}", trace.losses());
    assert_eq!(fake.enabled(), 0, "nothing is left switched on");
}

#[test]
fn times_are_on_the_clock_of_the_system() {
    let fake = fake();
    let unix =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let session = fake.start().unwrap();
    let before = unix();
    fake.launch(c"kernel", 7, 2_000_000);
    let after = unix();
    let trace = trace(session);
    let call =
        trace.spans().ids().find(|&span| trace.str(trace.spans().name(span)) == "cudaLaunchKernel").unwrap();
    let time = trace.clock().unix_origin().unwrap_or(trace.clock().origin) + trace.spans().time(call).0;
    let slack = 200_000; // an interrupted reading
    assert!(time > before - slack && time < after + slack, "{time} is not within {before}..{after}");
    let kernel = trace.spans().ids().find(|&span| trace.str(trace.spans().name(span)) == "kernel").unwrap();
    assert_eq!(trace.spans().duration(kernel).0, 2_000_000, "durations are CUPTI's own");
}

#[test]
fn a_clock_that_another_profiler_gave_cupti_is_understood() {
    extern "C" fn ticks() -> u64 {
        hotspan_collect::clock::now().0
    }
    let fake = fake();
    control!(fake, "fake_clock"(extern "C" fn() -> u64: ticks));
    let session = fake.start().unwrap();
    let before = ticks();
    std::thread::sleep(std::time::Duration::from_millis(3));
    let ticks_of_3_milliseconds = ticks() - before;
    fake.launch(c"kernel", 7, ticks_of_3_milliseconds);
    let trace = trace(session);
    let kernel = trace.spans().ids().find(|&span| trace.str(trace.spans().name(span)) == "kernel").unwrap();
    let duration = trace.spans().duration(kernel).0;
    assert!((3_000_000..300_000_000).contains(&duration), "{duration} ns");
    assert!(trace.losses().is_empty(), "{:?}", trace.losses());
}

#[test]
fn buffers_may_come_back_in_any_order() {
    let fake = fake();
    control!(fake, "fake_records_per_buffer"(c_int: 3));
    control!(fake, "fake_reverse"());
    let session = fake.start().unwrap();
    for _ in 0..100 {
        fake.launch(c"kernel", 7, 10);
    }
    let trace = trace(session);
    assert_eq!(names(&trace, "kernel").len(), 100);
    let times: Vec<i64> = {
        let spans = trace.spans();
        spans
            .ids()
            .filter(|&span| trace.str(spans.name(span)) == "kernel")
            .map(|span| spans.time(span).0)
            .collect()
    };
    assert!(times.is_sorted());
    assert_eq!(trace.flows().len(), 200, "each kernel has an arrow with two ends");
}

#[test]
fn one_graph_launch_has_many_kernels() {
    let fake = fake();
    let session = fake.start().unwrap();
    let correlation = fake.call(RUNTIME, GRAPH_LAUNCH);
    for node in 1..=5_u64 {
        control!(fake, "fake_kernel"(*const c_char: c"node".as_ptr(), u32: correlation, u32: 7, u64: 10, u32: 42, u64: node));
    }
    let trace = trace(session);
    assert_eq!(int(&trace, "kernel", "graph id"), [Some(42); 5]);
    assert_eq!(int(&trace, "kernel", "graph node id"), (1..=5).map(Some).collect::<Vec<_>>());
    assert_eq!(trace.flows().len(), 6, "one beginning, five ends");
}

#[test]
fn calls_that_do_not_matter_are_left_out() {
    let fake = fake();
    let session = fake.start().unwrap();
    for _ in 0..5 {
        fake.call(RUNTIME, 1); // cudaGetDevice
        fake.call(DRIVER, 2); // cuCtxGetCurrent
    }
    fake.launch(c"kernel", 7, 10);
    let trace = trace(session);
    assert_eq!(names(&trace, "cuda_runtime"), ["cudaLaunchKernel"]);
    assert!(names(&trace, "cuda_driver").is_empty());
}
