//! The processes of a recording, as each described itself: its command, its parent, its rank.

use hashbrown::HashSet;
use hotspan_store::{Category, Trace};
use serde_json::{Map, Value};

use crate::model::Model;
use crate::wall_time::{PROCESSES_KEY, RUN_KEY};

/// Where launchers say which rank a process is. The first counts that a process has and did not inherit from outside the recording.
pub const RANK_VARIABLES: [&str; 7] = [
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMIX_RANK",
    "SLURM_PROCID",
    "LOCAL_RANK",
];

/// What a process said about itself.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) pid: i64,
    pub(crate) parent: i64,
    pub(crate) argv: Vec<String>,
    pub(crate) began: Option<i64>,
    pub(crate) finished: Option<i64>,
    /// All of it, by key.
    pub(crate) metadata: Map<String, Value>,
}

impl Recorded {
    fn of(value: &Value) -> Option<Self> {
        let metadata = value.get("metadata")?.as_object()?.clone();
        let environment = metadata.get("hotspan.environment")?;
        let pid = environment.get("process")?.as_i64()?;
        let words = environment.get("argv").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let argv = words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
        let parent = environment.get("parent").and_then(Value::as_i64).unwrap_or(0);
        let moment = |key: &str| metadata.get("hotspan.process")?.get(key)?.as_i64();
        let (began, finished) = (moment("began_unix_ns"), moment("finished_unix_ns"));
        Some(Self { pid, parent, argv, began, finished, metadata })
    }

    fn variable(&self, name: &str) -> Option<i64> {
        let variables = self.metadata.get("hotspan.environment")?.get("variables")?;
        variables.get(name)?.as_str()?.parse().ok()
    }

    /// The command without the interpreter: what people call it.
    pub(crate) fn name(&self) -> String {
        let file_name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
        let Some((first, rest)) = self.argv.split_first() else { return "a child".to_owned() };
        let words: Vec<String> = match rest.first().map(String::as_str) {
            None => vec![file_name(first)],
            Some("-c") => {
                let code = rest.get(1).map_or("", |code| code.trim().lines().next().unwrap_or_default());
                vec![file_name(first), "-c".to_owned(), code.to_owned()]
            }
            Some(_) => rest.iter().map(|word| file_name(word)).collect(),
        };
        words.join(" ")
    }

    /// Whether it is a part of its parent's work rather than a program of its own.
    pub(crate) fn is_helper_of(&self, parent: Option<&Self>) -> bool {
        let is_forked = parent.is_some_and(|parent| parent.argv == self.argv);
        is_forked || self.argv.iter().any(|word| word.contains("multiprocessing"))
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) all: Vec<Recorded>,
    /// The process that was started.
    pub(crate) main: Option<i64>,
    /// The rank that all of them are together, where `hotspan run` was itself started once for each.
    pub(super) rank: Option<i64>,
    /// Variables with a rank that were there before the first of them.
    inherited: Map<String, Value>,
}

impl Processes {
    /// `None` where the recording does not describe them.
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        let described = trace.metadata().value(PROCESSES_KEY)?;
        let mut all: Vec<Recorded> = Vec::new();
        for recorded in described.as_array()?.iter().filter_map(Recorded::of) {
            // A process that becomes another program keeps its number; the last one counts.
            match all.iter_mut().find(|known| known.pid == recorded.pid) {
                Some(known) if known.began > recorded.began => {}
                Some(known) => *known = recorded,
                None => all.push(recorded),
            }
        }
        let run = trace.metadata().value(RUN_KEY)?;
        let number = |key: &str| run.get(key).and_then(Value::as_i64);
        let inherited = run.get("inherited").and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Self { all, main: number("pid"), rank: number("rank"), inherited })
    }

    pub(crate) fn get(&self, pid: i64) -> Option<&Recorded> {
        self.all.iter().find(|recorded| recorded.pid == pid)
    }

    /// A process and all that it started.
    pub(super) fn family(&self, pid: i64) -> HashSet<i64> {
        let mut family = HashSet::from([pid]);
        loop {
            let before = family.len();
            let children = self.all.iter().filter(|recorded| family.contains(&recorded.parent));
            let children: Vec<i64> = children.map(|recorded| recorded.pid).collect();
            family.extend(children);
            if family.len() == before {
                return family;
            }
        }
    }

    /// What was started, for a sentence.
    pub(super) fn starter(&self, trace: &Trace) -> String {
        let run = trace.metadata().value(RUN_KEY);
        let command = run.as_ref().and_then(|run| run.get("command")?.as_str());
        let first = command.and_then(|command| command.split(' ').find(|word| !word.starts_with('-')));
        let name = first.map(|word| word.rsplit('/').next().unwrap_or(word));
        name.unwrap_or("the program").to_owned()
    }

    /// The ranks in order. What a rank starts inherits its number; the outermost process is the rank.
    pub(super) fn ranks(&self, model: &Model) -> Vec<(i64, &Recorded)> {
        let is_told = |name: &&&str| {
            let before = self.inherited(name);
            self.all.iter().any(|one| one.variable(name).is_some_and(|rank| Some(rank) != before))
        };
        let Some(name) = RANK_VARIABLES.iter().find(is_told) else { return Vec::new() };
        // A launcher that is a rank of another launcher has that number, and its first child has it by right.
        let is_launcher =
            |one: &Recorded| Some(one.pid) == self.main && one.variable(name) == self.inherited(name);
        let is_outermost = |one: &&Recorded| match self.get(one.parent) {
            None => true,
            Some(parent) if parent.variable(name) != one.variable(name) => true,
            Some(parent) => is_launcher(parent) && !one.is_helper_of(Some(parent)),
        };
        let ranked = self.all.iter().filter(|one| !is_launcher(one)).filter(is_outermost);
        let mut ranks: Vec<(i64, &Recorded)> =
            ranked.filter_map(|one| Some((one.variable(name)?, one))).collect();
        // Some programs are rank 0 themselves and start the others.
        let main = self.main.and_then(|main| self.get(main));
        if let Some(main) = main.filter(|main| is_launcher(main))
            && ranks.iter().all(|(rank, _)| *rank != 0)
            && has_operators(model, main.pid)
        {
            ranks.push((0, main));
        }
        ranks.sort_by_key(|&(rank, one)| (rank, one.began));
        // A rank that was started again after a failure: the last one counts.
        ranks.reverse();
        ranks.dedup_by_key(|(rank, _)| *rank);
        ranks.reverse();
        ranks
    }

    fn inherited(&self, name: &str) -> Option<i64> {
        self.inherited.get(name)?.as_str()?.parse().ok()
    }
}

/// Whether operators of torch were recorded in a process.
pub(super) fn has_operators(model: &Model, pid: i64) -> bool {
    let Some(process) = model.process_numbered(pid) else { return false };
    let spans = model.spans();
    spans.ids().any(|span| {
        model.track(spans.track(span)).process == process && model.span_category(span) == Category::Operator
    })
}
