//! Where the wall time of a program went, on a line of time that a reader can add up.

use hotspan_analyze::{Activity, Model, WallTime};
use hotspan_store::{
    Duration, EventRow, FrameKind, FrameRow, Ident, SampleRow, SampleState, SpanRow, StackId, Timestamp,
    TraceBuilder, TrackId,
};

const START: i64 = 1_700_000_000_000_000_000;

struct Program(TraceBuilder, TrackId);

impl Program {
    /// A program of a thousand nanoseconds whose main thread is 7 of process 1.
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        builder.clock.base_unix = Some(0);
        let run =
            format!(r#"{{"pid": 1, "tid": 7, "start_unix_ns": {START}, "end_unix_ns": {}}}"#, START + 1_000);
        builder.metadata.set("hotspan.run", &run);
        let main = builder.track(Ident::Int(1), Ident::Int(7));
        Self(builder, main)
    }

    fn sample(&mut self, time: i64, state: SampleState, frames: &[(&str, FrameKind)]) {
        let mut stack = StackId::NONE;
        for &(file, kind) in frames {
            let (name, file) = (self.0.intern("function"), self.0.intern(file));
            let frame = self.0.frame(FrameRow { name, file, line: 1, first_line: 1, kind });
            stack = self.0.stack(stack, frame);
        }
        let (time, weight, track) = (Timestamp(START + time), Duration(100), self.1);
        self.0.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
    }

    fn span(&mut self, thread: i64, category: &str, name: &str, from: i64, to: i64) {
        let (track, name) = (self.0.track(Ident::Int(1), Ident::Int(thread)), self.0.intern(name));
        let (category, args) = (self.0.category(category), self.0.no_args());
        let event = EventRow { time: Timestamp(START + from), name, category, track, args };
        self.0.push_span(SpanRow { event, duration: Duration(to - from) });
    }

    /// What the time was spent on; nothing when it does not add up.
    fn parts(self) -> Vec<(Activity, i64)> {
        let found = Model::new(self.0.finish()).wall_time().clone();
        let adds_up =
            |found: &WallTime| found.parts.iter().map(|part| part.time.0).sum::<i64>() == found.total.0;
        let parts = found.filter(adds_up).map(|found| found.parts).unwrap_or_default();
        let mut parts: Vec<_> = parts.into_iter().map(|part| (part.activity, part.time.0)).collect();
        parts.sort();
        parts
    }
}

const PYTHON: (&str, FrameKind) = ("train.py", FrameKind::Python);
const NUMPY: (&str, FrameKind) = ("/v/site-packages/numpy/_core.so", FrameKind::Native);
const LIBC: (&str, FrameKind) = ("/lib/libc.so.6", FrameKind::Native);

#[test]
fn samples_answer_for_the_time_around_them() {
    let mut program = Program::new();
    program.sample(100, SampleState::Running, &[PYTHON]); //              50..150
    program.sample(200, SampleState::Running, &[PYTHON, NUMPY, LIBC]); // 150..300
    program.sample(400, SampleState::Io, &[PYTHON, LIBC]); //             300..450
    program.sample(500, SampleState::Sleep, &[PYTHON]); //                450..650
    program.sample(800, SampleState::Lock, &[PYTHON]); //                 650..850
    let expected = [
        (Activity::Python, 100),
        (Activity::Native("numpy".into()), 150),
        (Activity::Io, 150),
        (Activity::Waiting, 200),
        (Activity::Sleeping, 200),
        (Activity::NotRecorded, 50 + 150),
    ];
    assert_eq!(program.parts(), expected);
}

#[test]
fn work_of_open_mp_belongs_to_its_caller() {
    let bundled = ("/v/site-packages/scikit_learn.libs/libgomp-e985bcbb.so.1.0.0", FrameKind::Native);
    let caller = ("/v/site-packages/xgboost/lib/libxgboost.so", FrameKind::Native);
    let mut program = Program::new();
    program.sample(50, SampleState::Running, &[PYTHON, caller, bundled, LIBC]);
    program.sample(150, SampleState::Running, &[PYTHON, bundled]);
    let parts = program.parts();
    assert!(parts.contains(&(Activity::Native("xgboost".into()), 100)), "{parts:?}");
    assert!(parts.contains(&(Activity::Native("OpenMP".into()), 100)), "{parts:?}");
}

#[test]
fn spans_are_exact_and_win() {
    let mut program = Program::new();
    program.sample(50, SampleState::Running, &[PYTHON]); // 0..500
    program.sample(950, SampleState::Running, &[PYTHON]); // 500..1000
    program.span(7, "cpu_op", "aten::linear", 100, 300);
    program.span(7, "cpu_op", "aten::addmm", 150, 250);
    program.span(7, "cuda_runtime", "cudaStreamSynchronize", 280, 350);
    program.span(
        7,
        "user_annotation",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        400,
        600,
    );
    program.span(7, "cpu_op", "aten::stack", 450, 500);
    program.span(7, "gc", "gc generation 2", 590, 620);
    let expected = [
        (Activity::Operators, 180),
        (Activity::DeviceWait, 70),
        (Activity::DataLoader, 190),
        (Activity::Python, 1_000 - 180 - 70 - 190 - 30),
        (Activity::GarbageCollection, 30),
    ];
    assert_eq!(program.parts(), expected);
}

#[test]
fn waiting_for_operators_on_another_thread_is_operators_time() {
    let mut program = Program::new();
    program.sample(250, SampleState::Lock, &[PYTHON]); // 200..500
    program.sample(750, SampleState::Running, &[PYTHON]); // 500..800
    program.span(8, "cpu_op", "aten::mm", 300, 600);
    let expected = [
        (Activity::Operators, 200),
        (Activity::Python, 300),
        (Activity::Waiting, 100),
        (Activity::NotRecorded, 400),
    ];
    assert_eq!(program.parts(), expected);
}

#[test]
fn a_trace_of_operators_alone_has_python_between_them() {
    let mut program = Program::new();
    program.0.metadata = hotspan_store::Metadata::default();
    program.span(7, "cpu_op", "aten::add", 0, 100);
    program.span(7, "cpu_op", "aten::add", 150, 250);
    assert_eq!(program.parts(), [(Activity::Operators, 200), (Activity::Python, 50)]);
    assert_eq!(*Model::new(TraceBuilder::new().finish()).wall_time(), None);
}

#[test]
fn a_stack_tells_imports_event_loops_memory_and_the_recorder_apart() {
    let kernel = |name: &'static str| (name, "[kernel]", FrameKind::Native);
    let script = ("main", "train.py", FrameKind::Python);
    let numpy = ("sort", NUMPY.0, FrameKind::Native);
    let import = ("_find_and_load", "<frozen importlib._bootstrap>", FrameKind::Python);
    let agent = ("finish", "/v/site-packages/hotspan/_agent.py", FrameKind::Python);
    let mut program = Program::new();
    let samples = [
        (50, SampleState::Io, vec![script, import, ("get_data", "x.py", FrameKind::Python), kernel("read")]),
        (150, SampleState::Waiting, vec![script, kernel("epoll_wait")]),
        (250, SampleState::Waiting, vec![script, numpy, kernel("mmap")]),
        (350, SampleState::Waiting, vec![script, kernel("wait4")]),
        (450, SampleState::Lock, vec![agent, kernel("futex")]),
        // A page that is not there yet.
        (550, SampleState::Waiting, vec![script, numpy]),
    ];
    for (time, state, frames) in samples {
        let mut stack = StackId::NONE;
        for (name, file, kind) in frames {
            let (name, file) = (program.0.intern(name), program.0.intern(file));
            let frame = program.0.frame(FrameRow { name, file, line: 1, first_line: 1, kind });
            stack = program.0.stack(stack, frame);
        }
        let (time, weight, track) = (Timestamp(START + time), Duration(100), program.1);
        program.0.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
    }
    let parts = program.parts();
    let of = |wanted: &Activity| parts.iter().find(|(activity, _)| activity == wanted).map(|part| part.1);
    assert_eq!(of(&Activity::Importing), Some(100), "{parts:?}");
    assert_eq!(of(&Activity::WaitingForEvents), Some(100), "{parts:?}");
    assert_eq!(of(&Activity::Native("numpy".to_owned())), Some(200), "{parts:?}");
    assert_eq!(of(&Activity::Waiting), Some(100), "{parts:?}");
    assert_eq!(of(&Activity::Profiler), Some(100), "{parts:?}");
}

/// Start, exit and what hotspan does around the program are told apart, and samples reach to the program's limits.
#[test]
fn the_life_of_the_process_is_known() {
    let lifetime = |finished: &str, is_whole: bool| {
        let mut program = Program::new();
        let run = format!(
            r#"{{"pid": 1, "tid": 7, "start_unix_ns": {START}, "end_unix_ns": {}, "written_unix_ns": {}}}"#,
            START + 1_000,
            START + 850,
        );
        program.0.metadata.set("hotspan.run", &run);
        let process = format!(
            r#"{{"process": 1, "began_unix_ns": {}, "ready_unix_ns": {}, "finished_unix_ns": {finished}, "is_whole": {is_whole}}}"#,
            START + 20,
            START + 30,
        );
        program.0.metadata.set("hotspan.process", &process);
        program.sample(101, SampleState::Running, &[PYTHON]);
        program.sample(400, SampleState::Io, &[PYTHON, LIBC]);
        program.parts()
    };
    let finished = (START + 800).to_string();
    let around = [(Activity::Profiler, 10 + 50), (Activity::Starting, 20), (Activity::Exiting, 150)];
    let all = lifetime(&finished, true);
    assert_eq!(all[..2], [(Activity::Python, 220), (Activity::Io, 550)]);
    assert_eq!(all[2..], around);
    // Of what was not to be recorded nothing is known.
    let part = lifetime(&finished, false);
    assert_eq!(part[..2], [(Activity::Python, 199), (Activity::Io, 200)]);
    assert_eq!(part.last(), Some(&(Activity::NotRecorded, 21 + 350)));
    // Killed: there is no end.
    let killed = lifetime("null", true);
    assert_eq!(killed.last(), Some(&(Activity::NotRecorded, 21 + 550)));
}
