//! The one process that does the work of a program, where that is not the one that was started.

use hashbrown::HashMap;
use hotspan_store::{Duration, Ident, SampleState, Timestamp};

use super::processes::{Processes, Recorded, has_operators};
use crate::model::Model;
use crate::overview::is_ours;
use crate::wall_time::is_importing;

/// Who works has at least this part of all time that processes ran.
const LEAST_OF_ALL: f64 = 0.8;
/// Who waits runs for no more than this part of the worker's life.
const MOST_OF_WAITING: f64 = 0.1;

/// When a process ran. Imports count apart: some launchers import torch before they start anything.
#[derive(Clone, Debug, Default)]
struct Running {
    times: Vec<(Timestamp, Duration)>,
    importing: Duration,
}

impl Running {
    fn total(&self) -> Duration {
        self.times.iter().map(|(_, weight)| *weight).sum()
    }

    fn between(&self, begin: Timestamp, end: Timestamp) -> Duration {
        self.times.iter().filter(|(time, _)| (begin..end).contains(time)).map(|(_, weight)| *weight).sum()
    }
}

pub(super) fn find<'a>(model: &Model, processes: &'a Processes) -> Option<&'a Recorded> {
    let is_program =
        |one: &&Recorded| Some(one.pid) != processes.main && !one.is_helper_of(processes.get(one.parent));
    let programs: Vec<&Recorded> = processes.all.iter().filter(is_program).collect();
    if programs.is_empty() {
        return None;
    }
    let running = running(model);
    let ran = |pid: i64| running.get(&pid).map_or(Duration::ZERO, Running::total);
    let worker = programs.into_iter().max_by_key(|one| (ran(one.pid), one.pid))?;
    let family = processes.family(worker.pid);
    let of = |is_wanted: &dyn Fn(i64) -> bool| -> Duration {
        running.keys().filter(|pid| is_wanted(**pid)).map(|&pid| ran(pid)).sum()
    };
    let mine = of(&|pid| family.contains(&pid));
    let main = processes.main.filter(|main| processes.get(*main).is_some());
    let others = of(&|pid| !family.contains(&pid) && Some(pid) != main);
    if mine.0 <= 0 || (mine.0 as f64) < (mine + others).0 as f64 * LEAST_OF_ALL {
        return None;
    }
    let Some(main) = main else { return Some(worker) };
    if has_operators(model, main) {
        return None;
    }
    let starter = running.get(&main).cloned().unwrap_or_default();
    let (begin, end) = life(model, worker)?;
    let waited = starter.between(begin, end).0 as f64 <= end.since(begin).0 as f64 * MOST_OF_WAITING;
    let own_work = starter.total() - starter.importing;
    (waited && own_work.0 * 2 <= mine.0).then_some(worker)
}

fn life(model: &Model, worker: &Recorded) -> Option<(Timestamp, Timestamp)> {
    let origin = model.clock().unix_origin()?;
    let begin = Timestamp(worker.began?.saturating_sub(origin));
    let (first, length) = model.window();
    let last =
        worker.finished.map_or_else(|| first.plus(length), |end| Timestamp(end.saturating_sub(origin)));
    (begin < last).then_some((begin, last))
}

fn running(model: &Model) -> HashMap<i64, Running> {
    let mut importing: HashMap<hotspan_store::StackId, bool> = HashMap::new();
    let mut found: HashMap<i64, Running> = HashMap::new();
    for sample in model.profile().samples.rows() {
        let track = model.track(sample.track);
        let Ident::Int(pid) = model.process(track.process).ident else { continue };
        if is_ours(model, track.name) || !matches!(sample.state, SampleState::Running | SampleState::Unknown)
        {
            continue;
        }
        let running = found.entry(pid).or_default();
        running.times.push((sample.time, sample.weight));
        if *importing.entry(sample.stack).or_insert_with(|| is_importing(model, sample.stack)) {
            running.importing += sample.weight;
        }
    }
    found
}
