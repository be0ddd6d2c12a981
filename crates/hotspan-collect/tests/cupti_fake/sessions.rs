//! Starting and stopping: which calls are watched, what a refusal leaves behind, who may record.

use std::path::Path;

use hotspan_collect::cupti::{CuptiError, Library};
use hotspan_store::Loss;

use crate::fake::{Fake, RUNTIME, compile, control, fake, names, trace};

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
    let missing = Library::at(Path::new("/nonexistent/libcupti.so")).unwrap_err();
    assert!(matches!(&missing, CuptiError::NoLibrary { .. }), "{missing}");
    assert!(missing.to_string().contains("/nonexistent/libcupti.so"), "{missing}");
    let other = Library::at(Path::new("libc.so.6")).unwrap_err();
    assert!(other.to_string().starts_with("libc.so.6 has no function cuptiGetVersion"), "{other}");
    control!(fake, "fake_version"(u32: 17));
    assert_eq!(Library::at(&fake.path).unwrap_err(), CuptiError::TooOld { version: 17 });
    control!(fake, "fake_version"(u32: 28));
    assert_eq!(Library::at(&fake.path).unwrap().version(), 28);
}
