//! What rules look at: the trace with its tree of calls, its steps, and the questions that several rules ask.
//!
//! Gains are measured against the time of the steps, or of the whole recording where there are none; of a whole program, from
//! its first operator to the last, without the imports in between. Steps that
//! are much slower than the rest at the beginning are warm-up and are left out.

use std::cell::OnceCell;

use hashbrown::HashSet;
use hotspan_store::{Duration, ProcessId, SpanId, Timestamp, Trace, TrackId};

use crate::advice::finding::Gain;
use crate::intervals::{Interval, Intervals};
use crate::job::Job;
use crate::model::Model;
use crate::model::device_work::Work;
use crate::model::events::Role;
use crate::model::nesting::Innermost;
use crate::model::steps::{ProgramSteps, Step, StepSource};
use crate::wall_time::{Activity, RUN_KEY, program_thread};

/// Threads and cores as the recording noted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Threads {
    /// Threads that one operator of torch may use.
    pub(crate) torch: u64,
    /// Cores that the process may use.
    pub(crate) cores: u64,
}

/// A trace, prepared for rules.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) model: &'a Model,
    /// All processes, where `model` is the one among them that is judged.
    pub(crate) job: Option<&'a Job>,
    /// All steps, the first included.
    pub(crate) steps: &'a [Step],
    /// Whether the program marks its steps, or they are those of its optimizer.
    pub(crate) step_source: StepSource,
    /// How many of the first steps are warm-up.
    pub(crate) warm_up: usize,
    /// The time that gains are a part of.
    pub(crate) whole: Duration,
    /// Begin and end of what rules look at.
    ranges: Vec<(Timestamp, Timestamp)>,
    inside_call: Vec<bool>,
    /// The process of a whole program: what its children do is not what its steps wait for.
    process: Option<ProcessId>,
    /// For each string, whether it names a range.
    range_names: Vec<bool>,
    calls: OnceCell<Vec<SpanId>>,
    device_work: OnceCell<Vec<Work>>,
}

impl<'a> Context<'a> {
    pub(crate) fn of(model: &'a Model) -> Self {
        Self::among(model, None)
    }

    /// The process of a job that is judged.
    pub(crate) fn of_job(job: &'a Job) -> Self {
        Self::among(&job.model, Some(job))
    }

    fn among(model: &'a Model, job: Option<&'a Job>) -> Self {
        let ProgramSteps { all, source, warm_up } = model.steps();
        let steady = model.steps().steady();
        let ranges: Vec<(Timestamp, Timestamp)> = if steady.is_empty() {
            without_steps(model)
        } else {
            steady.iter().map(|step| (step.begin, step.begin.plus(step.duration))).collect()
        };
        let whole = ranges.iter().map(|&(begin, end)| end.since(begin)).sum();
        let main = is_run(model).then(|| program_thread(model)).flatten();
        let mut context = Self {
            model,
            job,
            steps: all,
            step_source: *source,
            warm_up: *warm_up,
            whole,
            ranges,
            inside_call: Vec::new(),
            process: main.map(|main| model.track(main).process),
            range_names: model.strings().iter().map(is_range_name).collect(),
            calls: OnceCell::new(),
            device_work: OnceCell::new(),
        };
        let nesting = model.nesting();
        let mut inside = vec![false; model.spans().len()];
        for &span in nesting.order() {
            if let Some(parent) = nesting.parent(span) {
                inside[span.index()] = inside[parent.index()] || context.is_call(parent);
            }
        }
        context.inside_call = inside;
        context
    }

    /// What gains are a percentage of.
    pub(crate) fn basis(&self) -> &'static str {
        let has_operators = || self.model.spans().ids().any(|span| self.model.role(span) == Role::Operator);
        match (self.steps.is_empty(), is_run(self.model)) {
            (false, _) => "step time",
            (true, true) if has_operators() => "the time from the first to the last operator",
            (true, true) => "the run without its imports",
            (true, false) => "wall time",
        }
    }

    /// How many steps rules look at; one where none are marked.
    pub(crate) fn step_count(&self) -> u64 {
        if self.steps.is_empty() { 1 } else { self.ranges.len() as u64 }
    }

    /// Whether what happened so often is part of the steps: something done once, to prepare them, is not.
    pub(crate) fn is_repeated(&self, count: u64) -> bool {
        if self.steps.is_empty() { count >= 3 } else { count * 2 >= self.step_count() }
    }

    /// Begin and end of what rules look at.
    pub(crate) fn ranges(&self) -> &[(Timestamp, Timestamp)] {
        &self.ranges
    }

    /// Whether a moment is in what rules look at.
    pub(crate) fn is_in_range(&self, time: Timestamp) -> bool {
        let after = self.ranges.partition_point(|&(begin, _)| begin <= time);
        after.checked_sub(1).is_some_and(|index| time <= self.ranges[index].1)
    }

    /// A name as tables show it.
    pub(crate) fn name(&self, span: SpanId) -> &str {
        self.model.name(span)
    }

    /// Whether a span is a call of an operator, and not a range that somebody marked.
    pub(crate) fn is_call(&self, span: SpanId) -> bool {
        self.model.role(span) == Role::Operator && !self.range_names[self.model.spans().name(span).index()]
    }

    /// Calls of operators in what rules look at, in order of time.
    pub(crate) fn calls(&self) -> impl Iterator<Item = SpanId> + '_ {
        let wanted = |&span: &SpanId| {
            let track = self.model.spans().track(span);
            let is_programs = self.process.is_none_or(|process| self.model.track(track).process == process);
            is_programs && self.is_call(span) && self.is_in_range(self.model.spans().time(span))
        };
        let find = || self.model.nesting().order().iter().copied().filter(wanted).collect();
        self.calls.get_or_init(find).iter().copied()
    }

    /// Calls that no other call encloses.
    pub(crate) fn outermost_calls(&self) -> impl Iterator<Item = SpanId> + '_ {
        self.calls().filter(|&span| self.is_outermost(span))
    }

    /// Whether no other call encloses it.
    pub(crate) fn is_outermost(&self, span: SpanId) -> bool {
        !self.inside_call[span.index()]
    }

    /// What a span encloses directly, in order of time.
    pub(crate) fn children(&self, span: SpanId) -> &[SpanId] {
        self.model.children().of_span(span)
    }

    /// Whether a span encloses no other call.
    pub(crate) fn is_leaf(&self, span: SpanId) -> bool {
        !self.children(span).iter().any(|&child| self.model.role(child) == Role::Operator)
    }

    /// The spans around one, nearest first; the nearest few hundred, for a file may nest without end.
    pub(crate) fn around(&self, span: SpanId) -> impl Iterator<Item = SpanId> + '_ {
        const DEEPEST: usize = 300;
        std::iter::successors(self.model.nesting().parent(span), |&inner| self.model.nesting().parent(inner))
            .take(DEEPEST)
    }

    /// For each span the nearest one, itself included, whose name begins like this.
    pub(crate) fn inside(&self, prefix: &str) -> Innermost {
        // Names repeat: each is compared once, not each span.
        let fits: Vec<bool> = self.model.strings().iter().map(|name| name.starts_with(prefix)).collect();
        self.model.nesting().innermost(|span| fits[self.model.spans().name(span).index()])
    }

    /// How long a call took without the calls inside it.
    pub(crate) fn self_time(&self, span: SpanId) -> Duration {
        let inner = self.children(span).iter().filter(|&&child| self.model.role(child) == Role::Operator);
        self.time(span) - inner.map(|&child| self.time(child)).sum()
    }

    pub(crate) fn time(&self, span: SpanId) -> Duration {
        self.model.spans().duration(span)
    }

    /// The shapes of a call's inputs; none where they were not recorded.
    pub(crate) fn shapes(&self, span: SpanId) -> &[Vec<i64>] {
        self.model.shapes().of_span(span)
    }

    /// The types of a call's inputs: `float`, `double`, `c10::Half`; none where they were not recorded.
    pub(crate) fn types(&self, span: SpanId) -> &[String] {
        self.model.dtypes().of_span(span)
    }

    /// The line of the user's program behind a span.
    pub(crate) fn source(&self, span: SpanId) -> Option<String> {
        self.model.sources().line(self.model, span)
    }

    /// What devices did in what rules look at.
    pub(crate) fn device_work(&self) -> &[Work] {
        self.device_work.get_or_init(|| {
            let all = self.model.device_work().iter().flat_map(|device| &device.work);
            let mut work: Vec<Work> =
                all.filter(|work| self.is_in_range(self.model.spans().time(work.span))).copied().collect();
            work.sort_by_key(|work| work.span);
            work
        })
    }

    /// Whether a device did anything.
    pub(crate) fn has_device(&self) -> bool {
        !self.model.device_work().is_empty()
    }

    /// Threads and cores, where the recording noted them.
    pub(crate) fn threads(&self) -> Option<Threads> {
        let noted = self.model.metadata().value("cpu_threads")?;
        let number = |key: &str| noted.get(key)?.as_u64().filter(|&count| count > 0);
        Some(Threads { torch: number("torch")?, cores: number("cores")? })
    }

    /// How many processes of the job do the same side by side, the judged one included.
    pub(crate) fn ranks(&self) -> u64 {
        self.job.and_then(|job| job.ranks.as_ref()).map_or(1, |ranks| ranks.ranks.len() as u64).max(1)
    }

    /// `part` in percent of the time looked at.
    pub(crate) fn percent(&self, part: Duration) -> f64 {
        if self.whole.0 <= 0 { 0.0 } else { (part.0 as f64 * 100.0 / self.whole.0 as f64).clamp(0.0, 100.0) }
    }

    /// Whether a gain is worth a person's time: of what rules look at, and of a whole program also of all of it, since a
    /// program may spend little of its time in torch.
    pub(crate) fn is_worth_it(&self, gain: &Gain) -> bool {
        const LEAST_PERCENT: f64 = 1.0;
        let of_program = match self.model.wall_time().as_ref().filter(|_| is_run(self.model)) {
            Some(wall_time) if wall_time.total.0 > 0 => gain.time.0 as f64 * 100.0 / wall_time.total.0 as f64,
            _ => gain.percent,
        };
        gain.percent.min(of_program) >= LEAST_PERCENT
    }

    /// "3 a step", where there are steps; else nothing, for nobody knows what one would be.
    pub(crate) fn per_step(&self, count: u64) -> String {
        if self.steps.is_empty() {
            String::new()
        } else {
            format!(" ({} a step)", count / self.step_count().max(1))
        }
    }

    /// Whether the recording is of a whole program, with its imports, waits and end.
    pub(crate) fn is_whole_program(&self) -> bool {
        is_run(self.model)
    }

    /// The main thread of a whole program.
    pub(crate) fn main_thread(&self) -> Option<TrackId> {
        program_thread(self.model).filter(|_| is_run(self.model))
    }

    /// The process that is judged, where there are several.
    pub(crate) fn process(&self) -> Option<ProcessId> {
        self.process
    }

    /// The step that a moment is in, by its place among those that rules look at.
    pub(crate) fn step_at(&self, time: Timestamp) -> Option<usize> {
        if self.steps.is_empty() {
            return None;
        }
        let after = self.ranges.partition_point(|&(begin, _)| begin <= time);
        after.checked_sub(1).filter(|&index| time <= self.ranges[index].1)
    }

    /// A gain of this much time.
    pub(crate) fn gain(&self, time: Duration, how: &'static str) -> Option<Gain> {
        // Threads run side by side, so their sum may exceed the time there was.
        let time = Duration(time.0.clamp(0, self.whole.0.max(0)));
        Some(Gain { time, percent: self.percent(time), of: self.basis(), how })
    }
}

/// Whether the trace is of a whole program, from its start to its end.
fn is_run(trace: &Trace) -> bool {
    trace.metadata().get(RUN_KEY).is_some()
}

/// What rules look at where there are no steps.
fn without_steps(model: &Model) -> Vec<(Timestamp, Timestamp)> {
    let (begin, length) = model.window();
    let whole = (begin, begin.plus(length));
    if !is_run(model) {
        return vec![whole];
    }
    let spans = model.spans();
    let operators = || spans.ids().filter(|&span| model.role(span) == Role::Operator);
    let first = operators().map(|span| spans.time(span)).min();
    let last = operators().map(|span| spans.end(span)).max();
    let extent = first.zip(last).unwrap_or(whole);
    let imports: Intervals =
        imports(model).into_iter().map(|(begin, end)| Interval::new(begin, end)).collect();
    let rest = Intervals::from(Interval::new(extent.0, extent.1)).subtract(&imports);
    let without: Vec<_> = rest.parts().iter().map(|part| (part.begin, part.end)).collect();
    if without.is_empty() { vec![extent] } else { without }
}

/// When the program imported modules, with the garbage that was collected meanwhile.
fn imports(model: &Model) -> Vec<(Timestamp, Timestamp)> {
    let Some(wall_time) = model.wall_time() else { return Vec::new() };
    let when = |activity| wall_time.when(&activity).into_iter().collect::<Vec<_>>();
    let mut imports = when(Activity::Importing);
    let begins: HashSet<Timestamp> = imports.iter().map(|&(begin, _)| begin).collect();
    let ends: HashSet<Timestamp> = imports.iter().map(|&(_, end)| end).collect();
    let is_within = |&(begin, end): &(Timestamp, Timestamp)| ends.contains(&begin) || begins.contains(&end);
    imports.extend(when(Activity::GarbageCollection).into_iter().filter(is_within));
    imports
}

/// A part of a time.
pub(crate) fn part(time: Duration, share: f64) -> Duration {
    Duration((time.0 as f64 * share) as i64)
}

/// Traces of 2021 have ranges among the operators.
fn is_range_name(name: &str) -> bool {
    [
        "ProfilerStep#",
        "Optimizer.",
        "enumerate(Data",
        "DataParallel.forward",
        "DistributedDataParallel.forward",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}
