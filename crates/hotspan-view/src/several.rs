//! Views of several traces: two compared, and the ranks of a job.

use hotspan_analyze::Model;
use hotspan_analyze::Table;
use hotspan_analyze::diff::{By, StepDot, diff, waterfall};
use hotspan_analyze::job;
use hotspan_analyze::overview::compare::compare as compare_runs;
use hotspan_analyze::ranks::{RankSummary, compare};
use hotspan_analyze::wall_time::RUN_KEY;
use hotspan_formats::one_of_each_worker;

use crate::api::{CauseData, ClockData, DotData, Page, Run, WaterfallData};
use crate::reports::page;

/// How to record what the view of ranks shows.
pub(crate) const RECORD_RANKS: &str = "hotspan view FOLDER    # with one trace for each rank of a job";
/// How to open two traces.
pub(crate) const RECORD_TWO: &str = "hotspan view before.hotspan after.hotspan";

/// The ways two traces are compared, as requests call them.
pub(crate) const WAYS: [&str; 6] = ["overview", "op", "kernel", "function", "module", "shape"];

/// Two traces side by side.
pub(crate) fn compare_page(before: &Model, after: &Model, by: &str) -> Page {
    let by = match by {
        "op" => By::Operator,
        "kernel" => By::Kernel,
        "function" => By::Function,
        "module" => By::Module,
        "shape" => By::Shape,
        _ => {
            let by_title = |table: Table| Table { id: table.title.clone(), ..table };
            return page(compare_runs(before, after).report().into_iter().map(by_title).collect(), "");
        }
    };
    page(vec![diff(before, after, by).report(0, true)], "")
}

/// What lies between two traces, by cause, and each step of both.
pub(crate) fn waterfall_data(before: &Model, after: &Model) -> WaterfallData {
    let words = compare_runs(before, after).in_words();
    let Some(found) = waterfall(before, after) else {
        let (measure, causes) = (String::new(), Vec::new());
        let (steps_before, steps_after) = (Vec::new(), Vec::new());
        return WaterfallData { words, measure, before: 0, after: 0, causes, steps_before, steps_after };
    };
    let cause = |cause: hotspan_analyze::diff::CauseChange| CauseData {
        change: (cause.after - cause.before).0,
        key: cause.key,
        title: cause.title,
        before: cause.before.0,
        after: cause.after.0,
        idle: cause.is_idle,
    };
    let dots = |steps: Vec<StepDot>| -> Vec<DotData> {
        let dot =
            |step: StepDot| DotData { number: step.number, time: step.time.0, warm_up: step.is_warm_up };
        steps.into_iter().map(dot).collect()
    };
    WaterfallData {
        words,
        measure: found.measure.to_owned(),
        before: found.before.0,
        after: found.after.0,
        causes: found.causes.into_iter().map(cause).collect(),
        steps_before: dots(found.steps.0),
        steps_after: dots(found.steps.1),
    }
}

/// The traces that are ranks of one job with this one: of its folder, one of each worker.
pub(crate) fn together(runs: &[Run], id: u32) -> Vec<u32> {
    let Some(shown) = runs.iter().find(|run| run.id == id) else { return Vec::new() };
    let folder: Vec<&Run> = runs.iter().filter(|run| run.run == shown.run).collect();
    let recordings: Vec<_> = folder.iter().map(|run| (&run.worker, run.cycle.as_deref())).collect();
    let place = folder.iter().position(|run| run.id == id);
    one_of_each_worker(&recordings, place).into_iter().map(|place| folder[place].id).collect()
}

/// When each of some traces begins, on the clock that they share.
pub(crate) fn on_one_clock<'a>(
    runs: &[Run],
    traces: impl Iterator<Item = (u32, &'a Model)>,
) -> Vec<ClockData> {
    let named = |id: u32| runs.iter().find(|run| run.id == id).map(|run| run.worker.clone());
    let rank = |model: &Model| ranks_of(model).first().and_then(|summary| summary.rank);
    let zeros: Vec<(u32, String, Option<i64>)> = traces
        .map(|(id, model)| {
            let worker = named(id).unwrap_or_default();
            let name = rank(model).map_or(worker.clone(), |rank| format!("Rank {rank} ({worker})"));
            (id, name, model.clock().unix_origin())
        })
        .collect();
    let first = zeros.iter().filter_map(|(_, _, zero)| *zero).min().unwrap_or(0);
    let offset = |zero: i64| zero.saturating_sub(first);
    zeros.into_iter().map(|(run, name, zero)| ClockData { run, name, offset: zero.map(offset) }).collect()
}

/// The ranks that a trace is of. A run that was recorded as a whole knows whether it is one; of others the folder says so.
pub(crate) fn ranks_of(model: &Model) -> Vec<RankSummary> {
    let is_run = model.metadata().get(RUN_KEY).is_some();
    let mut ranks = job::ranks(model);
    ranks.retain(|summary| summary.rank.is_some() || !is_run);
    ranks
}

/// The ranks of a job side by side; one alone has nobody to be compared with.
pub(crate) fn ranks_page(summaries: &[RankSummary]) -> Page {
    if summaries.len() < 2 {
        return page(Vec::new(), RECORD_RANKS);
    }
    let ranks = compare(summaries);
    Page { words: ranks.in_words().into_iter().collect(), ..page(ranks.report(), RECORD_RANKS) }
}
