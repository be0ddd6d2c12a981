//! Memory over time of a command and all its children, as the kernel tells it. No process is ever stopped.
//!
//! [`run`] has the command started and samples its tree of processes until it ends; [`tree`] finds the processes. What was
//! sampled becomes counters in a trace, one track a process.

mod tree;

use std::ffi::OsString;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, ArgOrigin, EventRow, Ident, Timestamp, TraceBuilder, keys};
use tree::{Reading, Tree};

use crate::launch;

/// The category of the counters.
pub const CATEGORY: &str = "process_memory";
/// Their name.
pub const COUNTER: &str = "Memory";

/// How to sample.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time between two samples.
    pub interval: Duration,
    /// Sample children too.
    pub children: bool,
    /// Read the proportional share (PSS) too, which counts shared pages once but costs milliseconds for large processes.
    pub proportional: bool,
}

/// How the command ended, with what was sampled.
#[derive(Debug)]
pub struct Recording {
    /// How it ended.
    pub status: ExitStatus,
    /// What was sampled.
    pub builder: TraceBuilder,
    /// How many times all processes were looked at.
    pub rounds: u64,
}

/// Runs a command and samples its memory until it ends.
///
/// # Errors
/// When the command cannot be started.
pub fn run(program: &OsString, arguments: &[OsString], options: Options) -> io::Result<Recording> {
    let mut sampler = Sampler::new(options);
    let words = std::iter::once(program).chain(arguments).map(|word| word.to_string_lossy());
    let command = words.collect::<Vec<_>>().join(" ");
    sampler.builder.metadata.set("command", &serde_json::Value::from(command).to_string());
    let status = launch::run(Command::new(program).args(arguments), options.interval, |process| {
        sampler.round(process);
    })?;
    Ok(Recording { status, builder: sampler.builder, rounds: sampler.rounds })
}

struct Sampler {
    /// Set from the first round on.
    tree: Option<Tree>,
    options: Options,
    builder: TraceBuilder,
    started: Instant,
    rounds: u64,
}

impl Sampler {
    fn new(options: Options) -> Self {
        let mut builder = TraceBuilder::new();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        builder.clock.base_unix = i64::try_from(now.as_nanos()).ok();
        builder.source.format = "hotspan memory".to_owned();
        Self { tree: None, options, builder, started: Instant::now(), rounds: 0 }
    }

    /// Looks at every process once; all get the same time, so that they can be added up.
    fn round(&mut self, root: u32) {
        let time = Timestamp(i64::try_from(self.started.elapsed().as_nanos()).unwrap_or(i64::MAX));
        let Options { children, proportional, .. } = self.options;
        let readings = self.tree.get_or_insert_with(|| Tree::new(root, children, proportional)).read();
        self.rounds += 1;
        for reading in &readings {
            self.add(time, reading);
        }
    }

    fn add(&mut self, time: Timestamp, reading: &Reading) {
        let builder = &mut self.builder;
        let ident = Ident::Int(i64::from(reading.pid));
        let process = builder.process(ident);
        let name = builder.intern(&reading.name);
        builder.process_mut(process).name = Some(name);
        let track = builder.track(ident, ident);
        let mut pending = PendingArgs::default();
        builder.push_arg(
            &mut pending,
            ArgOrigin::Args,
            keys::RESIDENT_BYTES.as_bytes(),
            Arg::Int(reading.resident),
        );
        if let Some(proportional) = reading.proportional {
            builder.push_arg(
                &mut pending,
                ArgOrigin::Args,
                keys::PROPORTIONAL_BYTES.as_bytes(),
                Arg::Int(proportional),
            );
        }
        let args = builder.commit_args(&mut pending);
        let (name, category) = (builder.intern(COUNTER), builder.category(CATEGORY));
        builder.push_counter(EventRow { time, name, category, track, args });
    }
}
