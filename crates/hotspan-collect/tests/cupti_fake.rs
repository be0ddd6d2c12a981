//! The device collector against a libcupti of our own, which a test drives: every branch, on machines without a GPU.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hotspan_collect::cupti::{CuptiError, Library, Options, Session};
use hotspan_store::{Loss, Trace};

const RUNTIME: u32 = 5;
const DRIVER: u32 = 4;
const GRAPH_LAUNCH: u32 = 6;

/// Compiles the fake; `flags` make variants of it.
fn compile(name: &str, flags: &[&str]) -> PathBuf {
    let library =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.so", std::process::id()));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cupti.c");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).args(flags).arg("-lpthread");
    assert!(command.status().unwrap().success(), "{command:?}");
    library
}

/// The fake and its controls.
struct Fake {
    library: Library,
    path: PathBuf,
    handle: *mut c_void,
}

// SAFETY: the handle of a library that is never closed.
unsafe impl Send for Fake {}

macro_rules! control {
    ($fake:expr, $name:literal ( $($type:ty : $value:expr),* ) $(-> $result:ty)?) => {{
        let name = CString::new($name).unwrap();
        // SAFETY: the library is open.
        let address = unsafe { libc::dlsym($fake.handle, name.as_ptr()) };
        assert!(!address.is_null(), $name);
        // SAFETY: the types are those of fake_cupti.c.
        let function: unsafe extern "C" fn($($type),*) $(-> $result)? = unsafe { std::mem::transmute(address) };
        // SAFETY: as above.
        unsafe { function($($value),*) }
    }};
}

impl Fake {
    fn open(path: PathBuf) -> Self {
        let library = Library::at(&path).unwrap();
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a library of our own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Self { library, path, handle }
    }

    fn start(&self) -> Result<Session, CuptiError> {
        Session::start(&self.library, Options { counters: false, waits: true, ..Options::default() })
    }

    fn launch(&self, name: &'static std::ffi::CStr, stream: u32, duration: u64) -> u32 {
        control!(self, "fake_launch"(*const c_char: name.as_ptr(), u32: stream, u64: duration) -> u32)
    }

    fn call(&self, kind: u32, function: u32) -> u32 {
        control!(self, "fake_call"(u32: kind, u32: function) -> u32)
    }

    fn fail(&self, function: &std::ffi::CStr, kind: u32, code: c_int) {
        control!(self, "fake_fail"(*const c_char: function.as_ptr(), u32: kind, c_int: code));
    }

    fn enabled(&self) -> c_int {
        control!(self, "fake_enabled"() -> c_int)
    }
}

/// The fake, for one test at a time: a process has one CUPTI.
fn fake() -> MutexGuard<'static, Fake> {
    static FAKE: OnceLock<Mutex<Fake>> = OnceLock::new();
    let fake = FAKE.get_or_init(|| Mutex::new(Fake::open(compile("fake_cupti", &[]))));
    let fake = fake.lock().unwrap_or_else(PoisonError::into_inner);
    control!(fake, "fake_reset"());
    fake
}

fn trace(session: Session) -> Trace {
    session.stop().expect("the session is this process's").into_builder().finish()
}

/// Names of the spans of a category, in the order of the trace.
fn names(trace: &Trace, category: &str) -> Vec<String> {
    let wanted: Vec<_> =
        trace.categories().filter(|&(_, name, _)| name == category).map(|(id, _, _)| id).collect();
    let spans = trace.spans();
    let of_category = spans.ids().filter(|&span| wanted.contains(&spans.category(span)));
    of_category.map(|span| trace.str(spans.name(span)).to_owned()).collect()
}

fn int(trace: &Trace, category: &str, key: &str) -> Vec<Option<i64>> {
    let wanted: Vec<_> =
        trace.categories().filter(|&(_, name, _)| name == category).map(|(id, _, _)| id).collect();
    let (spans, reader) = (trace.spans(), trace.arg(key));
    let of_category = spans.ids().filter(|&span| wanted.contains(&spans.category(span)));
    of_category.map(|span| reader.int(spans.args(span))).collect()
}

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
fn threads_are_those_of_the_operating_system_and_the_setting_is_put_back() {
    let fake = fake();
    let session = fake.start().unwrap();
    assert_eq!(control!(fake, "fake_thread_type"() -> u32), 1);
    fake.launch(c"kernel", 7, 10);
    // SAFETY: takes nothing.
    let thread = i64::from(unsafe { libc::gettid() });
    let trace = trace(session);
    let wanted = format!("thread {thread} (");
    assert!(
        trace
            .tracks()
            .iter()
            .any(|track| track.name.is_some_and(|name| trace.str(name).starts_with(&wanted))),
        "{wanted}"
    );
    assert_eq!(control!(fake, "fake_thread_type"() -> u32), 0);
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

#[test]
fn calls_are_watched_and_records_of_them_are_the_second_choice() {
    let fake = fake();
    let session = fake.start().unwrap();
    assert_eq!(control!(fake, "fake_enabled_kind"(u32: RUNTIME) -> i32), 0, "or every call would pay");
    control!(fake, "fake_entered"(i32: 1));
    fake.launch(c"early", 7, 10); // its call began before anybody watched
    control!(fake, "fake_entered"(i32: 0));
    fake.launch(c"kernel", 7, 10);
    let watched = trace(session);
    assert_eq!(names(&watched, "cuda_runtime"), ["cudaLaunchKernel"]);
    assert_eq!(names(&watched, "kernel"), ["early", "kernel"]);
    assert_eq!(watched.flows().len(), 2, "one beginning, one end");

    // Another tool watches already.
    control!(fake, "fake_taken"());
    let session = fake.start().unwrap();
    assert_eq!(control!(fake, "fake_enabled_kind"(u32: RUNTIME) -> i32), 1);
    fake.call(RUNTIME, 1); // cudaGetDevice
    fake.launch(c"kernel", 7, 10);
    let recorded = trace(session);
    assert_eq!(names(&recorded, "cuda_runtime"), ["cudaLaunchKernel"]);
    assert_eq!(recorded.flows().len(), 2);
    assert_eq!(fake.enabled(), 0);
}

#[test]
fn an_old_cupti_is_filtered_by_the_worker() {
    let _alone = fake();
    let old = Fake::open(compile("old_cupti", &["-DFAKE_OLD"]));
    let session = old.start().unwrap();
    old.call(RUNTIME, 1);
    old.launch(c"kernel", 7, 10);
    let trace = trace(session);
    assert_eq!(names(&trace, "cuda_runtime"), ["cudaLaunchKernel"]);
    assert_eq!(names(&trace, "kernel"), ["kernel"]);
    assert_eq!(trace.losses().count(Loss::UnknownLaunchThread), 1, "its threads are not the system's");
}

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
    let options = Options { max_bytes: Some(10_000), counters: false, waits: false };
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

#[test]
fn refusals_are_told_apart_and_leave_nothing_switched_on() {
    let fake = fake();
    let refused = |code| {
        fake.fail(c"cuptiActivityEnable", 10, code);
        fake.start().unwrap_err()
    };
    let held = refused(39);
    assert!(matches!(&held, CuptiError::Held { .. }), "{held}");
    assert!(held.to_string().contains("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"), "{held}");
    assert!(matches!(refused(35), CuptiError::NotAllowed { .. }));
    assert_eq!(refused(15).to_string(), "CUPTI refused kernels (CUPTI error 15)");
    control!(fake, "fake_taken"());
    fake.fail(c"cuptiActivityEnable", RUNTIME, 1);
    assert_eq!(fake.start().unwrap_err().to_string(), "CUPTI refused runtime calls (CUPTI error 1)");
    fake.fail(c"cuptiActivityRegisterCallbacks", 0, 1);
    assert_eq!(fake.start().unwrap_err().to_string(), "CUPTI refused its buffers (CUPTI error 1)");
    assert_eq!(fake.enabled(), 0);
    assert_eq!(control!(fake, "fake_thread_type"() -> u32), 0);

    // What is not essential may be refused.
    fake.fail(c"cuptiActivityEnable", 22, 1);
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    assert_eq!(names(&trace(session), "kernel"), ["kernel"]);
}

#[test]
fn thread_numbers_that_cupti_refuses_are_told() {
    let fake = fake();
    control!(fake, "fake_taken"());
    fake.fail(c"cuptiSetThreadIdType", 0, 1);
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    assert_eq!(trace(session).losses().count(Loss::UnknownLaunchThread), 1);
}

#[test]
fn there_is_one_recording_at_a_time() {
    let fake = fake();
    let session = fake.start().unwrap();
    assert_eq!(fake.start().unwrap_err(), CuptiError::AlreadyRecording);
    fake.launch(c"kernel", 7, 10);
    assert_eq!(names(&trace(session), "kernel"), ["kernel"], "the refusal did not disturb it");
    drop(fake.start().unwrap());
    assert_eq!(fake.enabled(), 0, "dropping ends it");
}

#[test]
fn a_pause_leaves_work_out() {
    let fake = fake();
    let mut session = fake.start().unwrap();
    fake.launch(c"first", 7, 10);
    session.toggle(false);
    fake.launch(c"unseen", 7, 10);
    session.toggle(true);
    session.toggle(true);
    fake.launch(c"last", 7, 10);
    fake.call(RUNTIME, 1);
    let trace = trace(session);
    assert_eq!(names(&trace, "kernel"), ["first", "last"]);
    assert_eq!(names(&trace, "cuda_runtime").len(), 2);
}

#[test]
fn a_forked_child_leaves_the_session_to_its_parent() {
    let fake = fake();
    let session = fake.start().unwrap();
    fake.launch(c"kernel", 7, 10);
    // SAFETY: the child calls only what is under test and _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_none = session.stop().is_none();
        // SAFETY: ends the child without running the parent's handlers.
        unsafe { libc::_exit(if is_none { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: a child of this process and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(names(&trace(session), "kernel"), ["kernel"]);
}

#[test]
fn libraries_that_are_no_cupti_are_refused_with_a_reason() {
    let fake = fake();
    let missing = Library::at(std::path::Path::new("/nonexistent/libcupti.so")).unwrap_err();
    assert!(matches!(&missing, CuptiError::NoLibrary { .. }), "{missing}");
    assert!(missing.to_string().contains("/nonexistent/libcupti.so"), "{missing}");
    let other = Library::at(std::path::Path::new("libc.so.6")).unwrap_err();
    assert!(other.to_string().starts_with("libc.so.6 has no function cuptiGetVersion"), "{other}");
    control!(fake, "fake_version"(u32: 17));
    assert_eq!(Library::at(&fake.path).unwrap_err(), CuptiError::TooOld { version: 17 });
    control!(fake, "fake_version"(u32: 28));
    assert_eq!(Library::at(&fake.path).unwrap().version(), 28);
}
