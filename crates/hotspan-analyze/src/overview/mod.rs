//! The report of a whole program: where it ran, where its time went, what to change, what cost most, what the recording itself
//! cost and what it lacks.
//!
//! Each section is another analysis; this folder chooses and orders them, and leaves out those with nothing to say.
//! `docs/report.md` defines every number. [`compare`] sets two such reports side by side.

mod calls;
pub mod compare;
mod facts;
mod folder;
mod hot;
mod imports;
mod memory;
mod missing;
mod processes;
mod steps;
mod waits;

use std::sync::Arc;

use hotspan_store::Duration;

use crate::advice::Advice;
use crate::model::Model;
use crate::ranks::Ranks;
use crate::report::Table;
use crate::report::schema::Schema;
use crate::verdict::Verdict;
use crate::wall_time::{WallTime, program_thread};

pub use facts::{Cost, cost};
pub(crate) use folder::ProgramFolder;
pub(crate) use hot::{costliest_line, counted_samples, is_ours, program_line};
pub use missing::{damage, missing};

/// Rows of each list of what cost most.
const TOP: usize = 10;

/// A whole program at a glance.
#[derive(Debug)]
pub struct Overview {
    /// What ran, where, for how long: names and values.
    pub facts: Vec<(String, String)>,
    /// How long all of it took, from the start of the command to its end.
    pub whole: Option<Duration>,
    /// Where the time goes, in one sentence.
    pub verdict: Option<Verdict>,
    /// Which process all that follows is about, where that is not the one that was started, and why.
    pub about: Option<String>,
    /// Ranks, and who waited for whom.
    pub ranks: Vec<Table>,
    /// Where the wall time went.
    pub wall_time: Option<WallTime>,
    /// How long the main thread queued for a processor, in a sentence, where that is worth one.
    pub queued: Option<String>,
    /// What recording cost.
    pub cost: Option<Cost>,
    /// What to change.
    pub advice: Arc<Advice>,
    /// What is missing from the recording, in words; worst first.
    pub missing: Vec<String>,
    /// The sections that follow, in order.
    pub sections: Vec<Table>,
}

/// Sums up a program: the process that was started, or the one that did the work for it.
#[must_use]
pub fn overview(model: &Model) -> Overview {
    let advice = Arc::clone(model.advice());
    let Some(job) = model.job() else {
        let mut overview = of_process(model, advice);
        overview.sections.extend(processes::processes(model, program_thread(model)));
        return overview;
    };
    let mut overview = of_process(&job.model, advice);
    overview.whole = model.wall_time().as_ref().map(|wall_time| wall_time.total);
    overview.about = Some(job.words.clone());
    overview.ranks = job.ranks.iter().flat_map(Ranks::report).map(narrow).collect();
    overview.missing = missing(model);
    overview.sections.extend(processes::processes(model, program_thread(model)));
    overview
}

fn of_process(model: &Model, advice: Arc<Advice>) -> Overview {
    let main = program_thread(model);
    let whole = model.wall();
    let sections = [
        steps::steps(model),
        hot::line_table(top(&hot::lines(model)), whole),
        hot::function_table(top(&hot::functions(model)), whole),
        waits::waits(model, main, whole),
        imports::imports(model, main, whole),
        calls::recorded_lines(model, TOP),
        calls::ranges(model.averages(), whole, TOP),
        calls::operators(model.averages(), TOP),
        calls::modules(model, TOP),
        calls::device_work(model, TOP),
        memory::memory(model),
    ];
    Overview {
        facts: facts::facts(model),
        whole: model.wall_time().as_ref().map(|wall_time| wall_time.total),
        verdict: model.verdict().clone(),
        about: None,
        ranks: Vec::new(),
        queued: facts::queued(model),
        cost: facts::cost(model),
        advice,
        missing: missing(model),
        sections: sections.into_iter().flatten().collect(),
        wall_time: model.wall_time().clone(),
    }
}

/// The columns that a report has room for.
fn narrow(ranks: Table) -> Table {
    const ON_HOST: [&str; 9] =
        ["rank", "process", "wall", "running", "operators", "steps", "step", "wait", "last"];
    const ON_DEVICES: [&str; 9] =
        ["rank", "wall", "steps", "step", "compute", "communication", "idle", "wait", "last"];
    const COLLECTIVES: [&str; 8] =
        ["kind", "calls", "bytes", "transfer", "wait", "longest_wait", "last", "times_last"];
    match ranks.id.as_str() {
        "ranks" if ranks.columns.iter().any(|column| column.key == "compute") => {
            ranks.with_columns(&ON_DEVICES)
        }
        "ranks" => ranks.with_columns(&ON_HOST),
        _ => ranks.with_columns(&COLLECTIVES),
    }
}

fn top<T>(rows: &[T]) -> &[T] {
    &rows[..rows.len().min(TOP)]
}

impl Overview {
    /// What ran, as a table.
    #[must_use]
    pub fn facts_table(&self) -> Table {
        let mut facts = self.facts.clone();
        facts.extend(self.whole.map(|whole| ("Wall time".to_owned(), whole.to_string())));
        facts.extend(self.about.clone().map(|about| ("About".to_owned(), about)));
        facts.extend(self.queued.clone().map(|queued| ("Processors".to_owned(), queued)));
        facts.extend(self.cost_in_words().map(|cost| ("Cost of recording".to_owned(), cost)));
        Schema::<(String, String)>::new("program", "Program")
            .text("fact", "Fact", |row| &row.0)
            .help("What is told about the program.")
            .text("value", "Value", |row| &row.1)
            .help("What ran, where, for how long.")
            .table(&facts)
    }

    /// What recording cost, in a sentence.
    #[must_use]
    pub fn cost_in_words(&self) -> Option<String> {
        let (cost, whole) = (self.cost?, self.wall_time.as_ref()?.total);
        let share = |time: Duration| time.0 as f64 * 100.0 / whole.0.max(1) as f64;
        let (in_program, agent) = (share(cost.in_program), share(cost.agent));
        Some(format!(
            "{} in the program's threads ({in_program:.2} %), {} in hotspan's own ({agent:.2} %)",
            cost.in_program, cost.agent
        ))
    }

    /// How it looks: facts, where the time went, and the sections.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        let wall_time = self.wall_time.iter().map(WallTime::report);
        let (ranks, sections) = (self.ranks.iter().cloned(), self.sections.iter().cloned());
        let tables = std::iter::once(self.facts_table()).chain(ranks).chain(wall_time).chain(sections);
        tables.filter(|table| !table.rows.is_empty()).collect()
    }
}
