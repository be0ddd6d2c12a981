//! Programs of many processes: which process the report should be about.
//!
//! A launcher (`torchrun`, a shell script) waits while others work. Its report would say "sleeping"; people want to know about those that
//! it started. Ranks say which they are in their environment; of several, the report is about the one that the others wait for.
//! Without ranks, it is about the one child that does the work, where there is one. [`find`] decides; the trace of that process alone, with
//! its own start and end, is what other analyses then see.

mod more;
mod processes;
mod worker;

use hotspan_store::{SpanId, Timestamp, Trace};
use serde_json::Value;

use crate::model::Model;
use crate::ranks::{RankSummary, Ranks, Uneven, compare, uneven};
use crate::wall_time::{PROCESSES_KEY, RUN_KEY};
pub use more::More;
use more::StepWork;
pub use processes::RANK_VARIABLES;
pub(crate) use processes::{Processes, Recorded};

/// What the report of a program of many processes is about.
#[derive(Debug)]
pub struct Job {
    /// The process that it is about, alone.
    pub model: Model,
    /// Why, in a sentence.
    pub words: String,
    /// All ranks, where there are several.
    pub ranks: Option<Ranks>,
    /// Whether the same ranks are late in nearly all steps.
    pub late: Option<Late>,
}

/// Ranks that the others wait for in one step after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Late {
    /// Which they are.
    pub ranks: Vec<i64>,
    /// How long the others wait for them.
    pub wait: Uneven,
    /// The call that the first of them spends most time more on than the others.
    pub call: Option<More>,
    /// The line of the program that it does.
    pub line: Option<More>,
}

impl Late {
    /// Recorded together, so that there is one clock.
    fn of(ranks: &[(i64, i64, Model)], summaries: &[RankSummary]) -> Option<Self> {
        let wait = uneven(summaries, true)?;
        let work = |index: usize| StepWork::of(&ranks[index].2, &summaries[index]);
        let others = (0..ranks.len()).filter(|index| !wait.late.contains(index));
        let (call, line) = work(*wait.late.first()?).more_than(&others.map(work).collect::<Vec<_>>());
        let ranks = wait.late.iter().map(|&index| ranks[index].0).collect();
        Some(Self { ranks, wait, call, line })
    }
}

impl Job {
    /// What each span of the process is called in the trace of all.
    pub(crate) fn spans_in(&self, whole: &Model) -> Vec<SpanId> {
        let mut mine = vec![false; whole.tracks().len()];
        let spans = self.model.spans();
        spans.ids().for_each(|span| mine[spans.track(span).index()] = true);
        whole.spans().ids().filter(|&span| mine[whole.spans().track(span).index()]).collect()
    }
}

/// The process that a report should be about, where that is not the one that was started.
#[must_use]
pub fn find(model: &Model) -> Option<Job> {
    let processes = Processes::of(model)?;
    let ranks = processes.ranks(model);
    let main = processes.main;
    match &ranks[..] {
        [] => {
            let worker = worker::find(model, &processes)?;
            let name = worker.name();
            let words = format!(
                "This report is about process {} ({name}), which did the work; {} only waited for it.",
                worker.pid,
                processes.starter(model),
            );
            Some(Job { model: alone(model, &processes, worker)?, words, ranks: None, late: None })
        }
        [(_, only)] if Some(only.pid) == main => None,
        [(rank, only)] => {
            let words = format!(
                "This report is about rank {rank} (process {}), which {} started.",
                only.pid,
                processes.starter(model)
            );
            Some(Job { model: alone(model, &processes, only)?, words, ranks: None, late: None })
        }
        several => {
            let mut models = Vec::new();
            for (rank, recorded) in several {
                models.push((*rank, recorded.pid, alone(model, &processes, recorded)?));
            }
            let summaries: Vec<RankSummary> =
                models.iter().map(|(rank, pid, model)| RankSummary::of_rank(model, *rank, *pid)).collect();
            let (ranks, late) = (compare(&summaries), Late::of(&models, &summaries));
            let slowest = ranks.slowest()?;
            let position = models.iter().position(|(rank, ..)| *rank == slowest)?;
            let (rank, pid, model) = models.swap_remove(position);
            let words = format!(
                "{} What follows is about rank {rank} (process {pid}).",
                ranks.in_words().unwrap_or_default()
            );
            Some(Job { model, words: words.trim_start().to_owned(), ranks: Some(ranks), late })
        }
    }
}

/// Each rank of a recording by itself; all of it as one where processes do not say that they are ranks.
#[must_use]
pub fn ranks(model: &Model) -> Vec<RankSummary> {
    let ranks = Processes::of(model).map(|processes| ranks_of(model, &processes)).unwrap_or_default();
    if ranks.is_empty() { vec![RankSummary::of(model)] } else { ranks }
}

/// Whether a recording has several ranks, without a look at what they did.
#[must_use]
pub fn has_ranks(model: &Model) -> bool {
    let several = |processes: Processes| {
        processes.rank.zip(processes.main).is_none() && processes.ranks(model).len() > 1
    };
    Processes::of(model).is_some_and(several)
}

fn ranks_of(model: &Model, processes: &Processes) -> Vec<RankSummary> {
    // Of a job with a recording for each rank, this is one.
    if let Some((rank, main)) = processes.rank.zip(processes.main) {
        return vec![RankSummary::of_rank(model, rank, main)];
    }
    let summary = |(rank, recorded): (i64, &Recorded)| {
        let model = alone(model, processes, recorded)?;
        Some(RankSummary::of_rank(&model, rank, recorded.pid))
    };
    processes.ranks(model).into_iter().filter_map(summary).collect()
}

/// A process with its children and devices, as if it had been recorded alone.
fn alone(model: &Model, processes: &Processes, recorded: &Recorded) -> Option<Model> {
    let family = processes.family(recorded.pid);
    let is_kept = |process: hotspan_store::ProcessId| {
        model.process(process).ident.number().is_some_and(|number| family.contains(&number))
    };
    let mut kept: Vec<bool> =
        (0..model.processes().len()).map(|index| is_kept(hotspan_store::ProcessId::at(index))).collect();
    for device in model.device_work() {
        let call = device.work.iter().find_map(|work| model.launch_calls().call(work.span));
        let host = call.map(|call| model.track(model.spans().track(call)).process);
        kept[device.process.index()] = host.is_some_and(is_kept);
    }
    let mut trace = model.of_processes(|process| kept[process.index()]);
    for (key, value) in &recorded.metadata {
        trace.set_metadata(key, &value.to_string());
    }
    let (begin, end) = lifetime(&trace, recorded)?;
    let mut run = trace.metadata().value(RUN_KEY).unwrap_or(Value::Null);
    let fields = run.as_object_mut()?;
    for key in ["pid", "tid"] {
        fields.insert(key.to_owned(), recorded.pid.into());
    }
    fields.insert("start_unix_ns".to_owned(), begin.into());
    fields.insert("end_unix_ns".to_owned(), end.into());
    // That is known of the process that was started.
    fields.remove("written_unix_ns");
    trace.set_metadata(RUN_KEY, &run.to_string());
    if let Some(Value::Array(mut described)) = trace.metadata().value(PROCESSES_KEY) {
        described.retain(|one| one["process"].as_i64().is_some_and(|pid| family.contains(&pid)));
        trace.set_metadata(PROCESSES_KEY, &Value::from(described).to_string());
    }
    Some(Model::new(trace))
}

/// From its first moment to its last, in Unix time.
fn lifetime(trace: &Trace, recorded: &Recorded) -> Option<(i64, i64)> {
    let origin = trace.clock().unix_origin()?;
    let (first, length) = trace.window();
    let unix = |time: Timestamp| time.0.saturating_add(origin);
    let begin = recorded.began.unwrap_or_else(|| unix(first));
    let end = recorded.finished.unwrap_or_else(|| unix(first.plus(length)));
    Some((begin, end.max(begin)))
}
