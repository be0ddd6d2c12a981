//! The verdict: where the time goes, in one sentence, from the same numbers as the tables. It speaks only of what is certain, and
//! of the host where no device worked.

mod typical;

use std::cmp::Reverse;

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId};

use crate::idle::{Cause, Piece};
use crate::intervals::{Interval, Intervals};
use crate::kernels::kernels;
use crate::model::Model;
use crate::model::host_activity::HostKind;
use crate::model::steps::{Step, median};
use crate::overview::costliest_line;
use crate::steps::{DeviceStep, HostStep};
use crate::thing::source_of;
use crate::wall_time::Activity;

pub use typical::{Bar, Part, TypicalStep};
use typical::{idle_in_steps, in_steps, warm_up};
pub(crate) use typical::{mean_device_step, mean_host_step};

/// Less than this part of the time is not what a program is judged by.
const WORTH_A_WORD: f64 = 0.10;
/// A cause that explains less of the idle time than this is one of many.
const MOST_OF_IT: f64 = 0.25;
/// A line stands for a cause when it is behind half of it.
const HALF: f64 = 0.5;
/// So many of the longest waits are looked up in the source.
const LOOKED_UP: usize = 200;
/// Fewer samples prove no line.
const FEWEST_SAMPLES: u64 = 20;
/// Letters of a kernel's name.
const LONGEST_NAME: usize = 60;

/// Where the time goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// In a sentence.
    pub sentence: String,
    /// The line it names, with its folder.
    pub source: Option<String>,
    /// The view that shows more.
    pub view: &'static str,
    /// A step like most others.
    pub typical: Option<TypicalStep>,
}

/// Judges a program: the process that was started, or the one that did the work for it. `None` where nothing is known.
#[must_use]
pub fn verdict(model: &Model) -> Option<Verdict> {
    let model = model.job().as_ref().map_or(model, |job| &job.model);
    let clause = of_devices(model).or_else(|| of_steps(model)).or_else(|| of_wall_time(model))?;
    let mut sentence = clause.words;
    if let Some(outside) = outside_of_steps(model) {
        sentence = format!("{outside}; {}", lower(&sentence));
    }
    Some(Verdict {
        sentence: format!("{sentence}."),
        source: clause.source,
        view: clause.view,
        typical: TypicalStep::of(model).filter(|typical| !typical.bars.is_empty()),
    })
}

/// A part of the sentence.
struct Clause {
    words: String,
    source: Option<String>,
    view: &'static str,
}

fn part(time: Duration, whole: Duration) -> f64 {
    time.0 as f64 / whole.0.max(1) as f64
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The time that most of the program's time is about, where that is not its steps.
fn outside_of_steps(model: &Model) -> Option<String> {
    let steps: Intervals = model.steps().all.iter().map(Step::interval).collect();
    let wall_time = model.wall_time().as_ref()?;
    if steps.parts().is_empty() || part(steps.length(), wall_time.total) >= HALF {
        return None;
    }
    let outside = |activity: &Activity| {
        let when = wall_time.when(activity).into_iter().map(|(begin, end)| Interval::new(begin, end));
        when.collect::<Intervals>().subtract(&steps).length()
    };
    let known = wall_time.parts.iter().filter(|part| part.activity != Activity::NotRecorded);
    let (activity, time) =
        known.map(|part| (&part.activity, outside(&part.activity))).max_by_key(|row| row.1)?;
    let share = part(time, wall_time.total);
    let of = part(steps.length(), wall_time.total);
    let words = format!(
        "{} takes {} of the {} of the run, and steps take {}",
        capital(&activity.title()),
        percent(share),
        wall_time.total,
        percent(of)
    );
    (share >= MOST_OF_IT).then_some(words)
}

fn of_devices(model: &Model) -> Option<Clause> {
    if model.device_work().is_empty() {
        return None;
    }
    let all = &model.step_times().devices;
    let steady = all.get(warm_up(model) * model.device_work().len()..).unwrap_or_default();
    let sum = |part: fn(&DeviceStep) -> Duration| steady.iter().map(part).sum::<Duration>();
    let time = sum(|step| step.time);
    let share = |part: fn(&DeviceStep) -> Duration| self::part(sum(part), time);
    let (gpu, s) = if model.device_work().len() > 1 { ("GPUs", "") } else { ("GPU", "s") };
    let whole = if model.steps().all.is_empty() { "the recording" } else { "the step" };
    let words = |words: String, view| Some(Clause { words, source: None, view });
    if time.0 <= 0 {
        return None;
    }
    if share(|step| step.idle) >= WORTH_A_WORD {
        let told = format!("{gpu} idle {} of {whole}", percent(share(|step| step.idle)));
        return Some(idle_clause(model, told, sum(|step| step.idle)));
    }
    let (communication, copy) = (share(|step| step.communication), share(|step| step.copy));
    if communication.max(copy) >= WORTH_A_WORD {
        let share = communication.max(copy);
        let what = match (communication >= copy, s.is_empty()) {
            (true, true) => "communicate",
            (true, false) => "communicates",
            (false, true) => "copy",
            (false, false) => "copies",
        };
        return words(format!("{gpu} {what} {} of {whole} while nothing computes", percent(share)), "gpu");
    }
    let mut told = format!("{gpu} compute{s} {} of {whole}", percent(share(|step| step.compute)));
    let all = kernels(model);
    if let Some(first) = all.rows.first().filter(|row| part(row.total, all.total) >= WORTH_A_WORD) {
        let name: String = first.name.chars().take(LONGEST_NAME).collect();
        let dots = if name.len() < first.name.len() { "…" } else { "" };
        told.push_str(&format!(
            "; {} of the device time is {name}{dots}",
            percent(part(first.total, all.total))
        ));
    }
    words(told, "kernels")
}

/// Why devices were idle in steps, and at which line.
fn idle_clause(model: &Model, told: String, idle: Duration) -> Clause {
    let known = idle_in_steps(model).into_iter().filter(|(cause, _)| *cause != Cause::Unknown);
    let largest =
        known.map(|(cause, time)| (time, cause)).max_by_key(|(time, cause)| (*time, Reverse(*cause)));
    let Some((time, cause)) = largest.filter(|(time, _)| part(*time, idle) >= MOST_OF_IT) else {
        return Clause { words: told, source: None, view: "gpu" };
    };
    let source = line_behind(model, cause, time);
    let share = part(time, idle);
    let of_that =
        if share > 0.995 { "all of that".to_owned() } else { format!("{} of that", percent(share)) };
    let words = format!("{told}; {of_that} {}{}", reason(cause), at(source.as_deref()));
    Clause { words, source, view: "gpu" }
}

fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::HostLate => "because the host is too slow to launch",
        Cause::Synchronise => "after calls that wait for the device",
        Cause::DataLoader => "waits for the DataLoader",
        Cause::Copy => "while the host copies memory",
        Cause::Communication => "in calls of the communication library",
        Cause::Allocator => "while the host allocates device memory",
        Cause::Dispatch => "between the launch of work and its start",
        Cause::Unknown => "for unknown reasons",
    }
}

/// The line that is behind half of the idle time of a cause, or more.
fn line_behind(model: &Model, cause: Cause, total: Duration) -> Option<String> {
    let pieces = model.idle().iter().flat_map(|device| &device.pieces).filter(|piece| piece.cause == cause);
    let wait = |piece: &Piece| Some((in_steps(model, piece.interval), piece.culprit?));
    let mut waits: Vec<(Duration, SpanId)> = pieces.filter_map(wait).collect();
    waits.sort_unstable_by_key(|&(time, span)| (Reverse(time), span));
    waits.truncate(LOOKED_UP);
    most_of(model, waits, total)
}

/// The line that has half of a time or more.
fn most_of(model: &Model, waits: Vec<(Duration, SpanId)>, total: Duration) -> Option<String> {
    let mut lines: HashMap<String, Duration> = HashMap::new();
    for (time, span) in waits {
        if let Some(line) = source_of(model, span) {
            *lines.entry(line).or_default() += time;
        }
    }
    let (line, time) = lines.into_iter().max_by(|left, right| (left.1, &right.0).cmp(&(right.1, &left.0)))?;
    (part(time, total) >= HALF).then_some(line)
}

fn at(source: Option<&str>) -> String {
    source.map_or_else(String::new, |source| format!(" at {}", source.rsplit('/').next().unwrap_or(source)))
}

/// What the host does in a step, where no device worked.
fn of_steps(model: &Model) -> Option<Clause> {
    if model.steps().all.is_empty() {
        return None;
    }
    let all = &model.step_times().host;
    let steady = all.get(warm_up(model)..).unwrap_or_default();
    let sum = |part: fn(&HostStep) -> Duration| steady.iter().map(part).sum::<Duration>();
    let time = sum(|step| step.time);
    let parts: [(Duration, &str, &'static str); 5] = [
        (sum(|step| step.data_loader), "waits for the DataLoader", "steps"),
        (sum(|step| step.waiting), "waits for the device", "steps"),
        (sum(|step| step.runtime), "is in calls of the runtime", "steps"),
        (sum(|step| step.operators), "runs torch operators", "operators"),
        (sum(|step| step.python), "runs Python outside of operators", "functions"),
    ];
    let (longest, does, view) = *parts.iter().max_by_key(|row| row.0)?;
    if part(longest, time) < MOST_OF_IT {
        return None;
    }
    let source = if does.contains("DataLoader") { loading_line(model, longest) } else { None };
    let step = median(model.steps().steady().iter().map(|step| step.duration));
    let words =
        format!("{} of a step of {step} {does}{}", percent(part(longest, time)), at(source.as_deref()));
    Some(Clause { words, source, view })
}

/// The line that waits for batches.
fn loading_line(model: &Model, total: Duration) -> Option<String> {
    let (spans, activity) = (model.spans(), model.host_activity());
    let loads = spans.ids().filter(|&span| activity.kind(span) == HostKind::DataLoader);
    let mut waits: Vec<(Duration, SpanId)> = loads.map(|span| (spans.duration(span), span)).collect();
    waits.sort_unstable_by_key(|&(time, span)| (Reverse(time), span));
    waits.truncate(LOOKED_UP);
    most_of(model, waits, total)
}

/// Where the wall time of a program without steps went.
fn of_wall_time(model: &Model) -> Option<Clause> {
    let wall_time = model.wall_time().as_ref()?;
    let longest = wall_time.parts.iter().find(|part| part.activity != Activity::NotRecorded)?;
    let share = part(longest.time, wall_time.total);
    let mut words =
        format!("{} takes {} of {}", capital(&longest.activity.title()), percent(share), wall_time.total);
    let mut source = None;
    if wall_time.samples >= FEWEST_SAMPLES
        && let Some((line, time)) =
            costliest_line(model).filter(|row| part(row.1, wall_time.total) >= WORTH_A_WORD)
    {
        words.push_str(&format!(
            "; {} takes {} of all",
            line.rsplit('/').next().unwrap_or(&line),
            percent(part(time, wall_time.total))
        ));
        source = Some(line);
    }
    (share >= WORTH_A_WORD).then_some(Clause { words, source, view: "overview" })
}

fn capital(text: &str) -> String {
    // The names of torch and hotspan are written small.
    if ["torch", "hotspan"].iter().any(|name| text.starts_with(name)) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The beginning of a sentence that became its middle.
fn lower(text: &str) -> String {
    if text.starts_with("GPU") { format!("the {text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_with_a_capital_unless_a_name_does_not() {
        assert_eq!(capital("importing modules"), "Importing modules");
        assert_eq!(capital("torch operators (CPU)"), "torch operators (CPU)");
        assert_eq!(lower("GPU idle"), "the GPU idle");
    }
}
