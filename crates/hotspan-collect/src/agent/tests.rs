//! The agent as a whole: what its sources have is in the file, and nothing that goes wrong with the file is the program's.

use std::fs::File;

use super::*;
use hotspan_store::{Duration as Span, EventRow, Ident, SpanRow, Timestamp};

struct Ticker(i64);

impl Source for Ticker {
    fn drain(&mut self, builder: &mut TraceBuilder) {
        self.0 += 1;
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        let (name, category, args) = (builder.intern("tick"), builder.category("gc"), builder.no_args());
        let event = EventRow { time: Timestamp(self.0), name, category, track, args };
        builder.push_span(SpanRow { event, duration: Span(1) });
    }

    fn finish(mut self: Box<Self>, builder: &mut TraceBuilder) {
        self.drain(builder);
    }
}

#[test]
fn what_sources_have_is_in_the_file() {
    let folder = std::env::temp_dir().join(format!("hotspan-agent-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let agent = Agent::start(&folder, Plan::default()).unwrap();
    let path = agent.path().to_owned();
    agent.add(Box::new(Ticker(0)));
    agent.set_metadata("hotspan.test", "1");
    std::thread::sleep(INTERVAL * 3);
    agent.finish().unwrap();
    let trace = hotspan_store::file::read(File::open(&path).unwrap(), &mut |_| true).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(trace.losses().is_empty());
    assert!(trace.spans().len() >= 2 && trace.counters().len() >= 2);
    assert_eq!(trace.metadata().get("hotspan.test"), Some("1"));
    assert!(trace.metadata().value("hotspan.cost").unwrap()["agent_ns"].as_u64() > Some(0));
}

/// What was flushed is in the file although nothing ended it, as after a kill.
#[test]
fn what_was_flushed_needs_no_end() {
    let folder = std::env::temp_dir().join(format!("hotspan-agent-flush-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let agent = Agent::start(&folder, Plan::default()).unwrap();
    let path = agent.path().to_owned();
    agent.add(Box::new(Ticker(0)));
    agent.set_metadata("hotspan.test", "1");
    assert!(agent.flusher().flush(Duration::from_secs(60)));
    let copy = std::fs::read(&path).unwrap();
    agent.finish().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let trace = hotspan_store::file::read(copy.as_slice(), &mut |_| true).unwrap();
    assert_eq!(trace.losses().count(hotspan_store::Loss::TruncatedFile), 1);
    assert!(!trace.spans().is_empty());
    assert_eq!(trace.metadata().get("hotspan.test"), Some("1"));
}

/// Nothing is recorded before and after the time that was asked for.
#[test]
fn sources_are_told_when_to_record() {
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<bool>>>);
    impl Source for Told {
        fn drain(&mut self, _: &mut TraceBuilder) {}
        fn finish(self: Box<Self>, _: &mut TraceBuilder) {}
        fn record(&mut self, turn: Turn, _: &mut TraceBuilder) {
            self.0.lock().unwrap().push(turn.is_time);
        }
    }
    let folder = std::env::temp_dir().join(format!("hotspan-agent-plan-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let soon = clock::unix_now().0 + 2 * INTERVAL.as_nanos() as i64;
    let until = soon + 2 * INTERVAL.as_nanos() as i64;
    let plan = Plan { from: Some(UnixNanos(soon)), until: Some(UnixNanos(until)), ..Plan::default() };
    let agent = Agent::start(&folder, plan).unwrap();
    let told = Told::default();
    agent.add(Box::new(told.clone()));
    std::thread::sleep(INTERVAL * 7);
    agent.finish().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(*told.0.lock().unwrap(), [false, true, false]);
}

/// A folder that is taken away under the agent ends the recording, not the program; the sources are ended too.
#[test]
fn a_lost_folder_ends_the_recording() {
    let folder = std::env::temp_dir().join(format!("hotspan-agent-lost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let agent = Agent::start(&folder, Plan::default()).unwrap();
    agent.add(Box::new(Ticker(0)));
    std::thread::sleep(INTERVAL);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!agent.flusher().flush(Duration::from_secs(60)), "and nobody waits for what cannot be");
    assert!(agent.finish().is_err());
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    assert!(Agent::start(Path::new("/does/not/exist"), Plan::default()).is_err());
}
