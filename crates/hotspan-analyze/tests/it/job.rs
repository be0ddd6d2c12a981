//! Which process a report is about, in recordings of a few processes; times in nanoseconds.

use hotspan_analyze::{Model, PROCESSES_KEY, RUN_KEY, job, overview};
use hotspan_store::{
    Duration, EventRow, FrameKind, FrameRow, Ident, SampleRow, SampleState, SpanRow, StackId, Timestamp,
    TraceBuilder,
};
use serde_json::{Value, json};

const SECOND: i64 = 1_000_000_000;

/// A recording of a program with process 1, from 0 to 10 s.
struct Recording {
    builder: TraceBuilder,
    processes: Vec<Value>,
}

impl Recording {
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        builder.clock.base_unix = Some(0);
        let run = json!({"pid": 1, "tid": 1, "start_unix_ns": 0, "end_unix_ns": 10 * SECOND, "command": "torchrun train.py"});
        builder.metadata.set(RUN_KEY, &run.to_string());
        Self { builder, processes: Vec::new() }
    }

    /// A process that runs in some of the ten seconds and waits in the others of its life.
    fn process(
        &mut self,
        pid: i64,
        parent: i64,
        argv: &str,
        variables: &Value,
        life: (i64, i64),
        runs: &[i64],
    ) {
        let argv: Vec<&str> = argv.split(' ').collect();
        let metadata = json!({
            "hotspan.environment": {"process": pid, "parent": parent, "argv": argv, "variables": variables},
            "hotspan.process": {"process": pid, "began_unix_ns": life.0 * SECOND, "ready_unix_ns": life.0 * SECOND,
                "finished_unix_ns": life.1 * SECOND, "is_whole": true},
        });
        self.processes.push(json!({"process": pid, "metadata": metadata}));
        let track = self.builder.track(Ident::Int(pid), Ident::Int(pid));
        let (name, file) = (self.builder.intern("main"), self.builder.intern("/home/me/train.py"));
        let frame =
            self.builder.frame(FrameRow { name, file, line: 1, first_line: 1, kind: FrameKind::Python });
        let stack = self.builder.stack(StackId::NONE, frame);
        for second in life.0..life.1 {
            let state = if runs.contains(&second) { SampleState::Running } else { SampleState::Sleep };
            let (time, weight) = (Timestamp(second * SECOND), Duration(SECOND));
            self.builder.push_sample(SampleRow { time, track, stack, weight, state, gil: true });
        }
    }

    fn span(&mut self, pid: i64, category: &str, name: &str, begin: i64, duration: i64) {
        let track = self.builder.track(Ident::Int(pid), Ident::Int(pid));
        let (name, category) = (self.builder.intern(name), self.builder.category(category));
        let args = self.builder.no_args();
        let event = EventRow { time: Timestamp(begin), name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: Duration(duration) });
    }

    fn finish(mut self) -> Model {
        self.builder.metadata.set(PROCESSES_KEY, &Value::from(self.processes).to_string());
        Model::new(self.builder.finish())
    }
}

fn rank(number: i64) -> Value {
    json!({"RANK": number.to_string(), "WORLD_SIZE": "2"})
}

const ALL: [i64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

#[test]
fn ranks_are_those_that_the_launcher_started() {
    let mut recording = Recording::new();
    recording.process(1, 0, "python torchrun train.py", &json!({}), (0, 10), &[0]);
    recording.process(2, 1, "python train.py", &rank(0), (1, 9), &ALL);
    recording.process(3, 1, "python train.py", &rank(1), (2, 10), &ALL);
    // What a rank starts inherits its variables.
    recording.process(4, 3, "python train.py", &rank(1), (3, 9), &[]);
    for (pid, lengths) in [(2, [30, 80]), (3, [90, 10])] {
        for (begin, length) in [4 * SECOND, 5 * SECOND].into_iter().zip(lengths) {
            recording.span(pid, "user_annotation", "gloo:all_reduce", begin, length);
            // Only its root knows when a broadcast is over.
            recording.span(pid, "user_annotation", "gloo:broadcast", begin, length);
        }
    }
    recording.span(2, "user_annotation", "gloo:barrier", 6 * SECOND, 50);
    recording.span(3, "user_annotation", "gloo:barrier", 6 * SECOND, 5);
    let model = recording.finish();
    let found = job::find(&model).unwrap();
    assert!(job::find(&found.model).is_none(), "alone it is the program");
    let ranks = found.ranks.unwrap();
    let rows: Vec<_> = ranks
        .ranks
        .iter()
        .map(|row| (row.rank, row.process.unwrap().pid, row.matched, row.wait.0, row.last, row.waited_for.0))
        .collect();
    assert_eq!(rows, [(0, 2, 3, 70 + 45, 1, 60), (1, 3, 3, 60, 2, 70 + 45)]);
    assert_eq!(ranks.ranks[1].process.unwrap().wall, Duration(8 * SECOND));
    let overview = overview(&model);
    assert!(overview.about.unwrap().contains("about rank 1 (process 3)"));
    assert_eq!(overview.whole, Some(Duration(10 * SECOND)), "the program");
    assert_eq!(overview.wall_time.unwrap().total, Duration(8 * SECOND), "the rank");
    assert_eq!(job::ranks(&model).len(), 2);
}

#[test]
fn a_program_may_be_rank_0_and_start_the_others() {
    let mut recording = Recording::new();
    recording.process(1, 0, "python train.py", &json!({}), (0, 10), &ALL);
    recording.process(2, 1, "python train.py", &json!({"LOCAL_RANK": "1"}), (1, 9), &ALL);
    recording.span(1, "cpu_op", "aten::mm", SECOND, 10);
    let ranks = job::ranks(&recording.finish());
    assert_eq!(
        ranks.iter().map(|rank| (rank.rank.unwrap(), rank.process.unwrap().pid)).collect::<Vec<_>>(),
        [(0, 1), (1, 2)]
    );
}

#[test]
fn who_is_alone_with_a_rank_is_the_program() {
    let mut recording = Recording::new();
    recording.process(1, 0, "python train.py", &rank(0), (0, 10), &ALL);
    recording.process(2, 1, "python train.py", &rank(0), (1, 9), &ALL);
    let model = recording.finish();
    assert!(job::find(&model).is_none());
    assert_eq!(job::ranks(&model).len(), 1);
    assert_eq!(overview(&model).about, None);
}

#[test]
fn the_one_that_works_is_described() {
    let of = |starter_runs: &[i64], worker: &str, other_runs: &[i64]| {
        let mut recording = Recording::new();
        recording.process(1, 0, "python start.py", &json!({}), (0, 10), starter_runs);
        recording.process(2, 1, worker, &json!({}), (1, 9), &ALL);
        recording.process(3, 1, "python other.py", &json!({}), (1, 9), other_runs);
        overview(&recording.finish()).about
    };
    let about = of(&[0], "python work.py", &[]).unwrap();
    assert!(about.contains("process 2 (work.py), which did the work"), "{about}");
    assert_eq!(of(&ALL, "python work.py", &[]), None, "the program works itself");
    assert_eq!(of(&[0], "python work.py", &ALL), None, "there are two");
    assert_eq!(of(&[0], "python start.py", &[]), None, "a part of the program");
    assert_eq!(
        of(&[0], "python -c from multiprocessing.spawn import spawn_main", &[]),
        None,
        "a part of it, too"
    );
}
