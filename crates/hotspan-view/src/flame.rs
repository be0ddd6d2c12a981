//! Flame graphs as columns: added up, in order of time, around one function, and two traces laid over each other.

use hotspan_analyze::Model;
use std::collections::HashMap;

use hotspan_analyze::call_tree::{Callee, FunctionTime, Shape, compare_trees, time_order, timed_threads};
use hotspan_analyze::{CallTree, TreeOptions, TreeSource, call_tree};
use hotspan_store::Duration;

use crate::api::{FlameData, FlameNames, FlamePlace, FlameThread, SandwichData};
use crate::timeline::{beginning, pattern_of};

/// Nodes below this part of the whole are less than a pixel on any screen.
const SMALLEST_PART: i64 = 8000;
/// Nodes that are sent at most.
const MOST_NODES: usize = 100_000;
/// How to record what fills it.
pub(crate) const RECORD: &str = "hotspan record -o run.hotspan -- python train.py";

/// The call tree of a trace, threads at the root, all steps as one.
pub(crate) fn tree(model: &Model) -> CallTree {
    call_tree(model, &TreeOptions { threads: true, merge_steps: true, ..TreeOptions::default() })
}

/// What of a flame graph is left out, and whether it is turned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlameOptions {
    pub(crate) shape: Shape,
    /// Leave out threads while they wait.
    pub(crate) busy_only: bool,
}

/// A tree as options want it, all calls of a path added up. `whole` is the tree of the model.
pub(crate) fn shaped_flame(model: &Model, whole: &CallTree, options: &FlameOptions) -> FlameData {
    if !options.busy_only {
        return flame(&whole.shaped(&options.shape));
    }
    let busy = TreeOptions { threads: true, merge_steps: true, busy_only: true, ..TreeOptions::default() };
    flame(&call_tree(model, &busy).shaped(&options.shape))
}

/// The functions of a tree that are large enough to be shown. Those that cost most come first, and their numbers are those of
/// sandwiches.
fn shown_functions(tree: &CallTree) -> impl Iterator<Item = FunctionTime> {
    let least = tree.total.0 / SMALLEST_PART;
    tree.functions().into_iter().filter(move |function| function.total.0 >= least)
}

/// A tree, all calls of a path added up.
pub(crate) fn flame(tree: &CallTree) -> FlameData {
    let mut data = empty(tree.source, tree.total.0);
    let mut functions = FunctionTable::default();
    let least = tree.total.0 / SMALLEST_PART;
    for function in shown_functions(tree) {
        let index = functions.of(&mut data, &function.callee) as usize;
        (data.places[index].own, data.places[index].total) = (function.own.0, function.total.0);
    }
    let mut open: Vec<(usize, i64)> = tree.roots.iter().rev().map(|&root| (root, -1)).collect();
    while let Some((index, parent)) = open.pop() {
        let node = &tree.nodes[index];
        if node.total.0 < least || node.total.0 <= 0 || data.parent.len() >= MOST_NODES {
            continue;
        }
        let number = data.parent.len() as i64;
        let index = functions.of(&mut data, &node.callee);
        data.place.push(index);
        data.parent.push(parent);
        data.total_time.push(node.total.0);
        data.own_time.push(node.own.0);
        data.count.push(node.count);
        open.extend(node.children.iter().rev().map(|&child| (child, number)));
    }
    data.hidden = (tree.nodes.len() - data.parent.len()) as u64;
    data
}

/// The functions of a tree whose name and file match a pattern.
pub(crate) fn matching(tree: &CallTree, pattern: &str) -> FlameNames {
    let pattern = match pattern_of(pattern) {
        Ok(pattern) => pattern,
        Err(problem) => return FlameNames { names: Vec::new(), problem: Some(problem) },
    };
    let functions = tree.functions().into_iter().take(MOST_NODES);
    let names = functions.map(|function| format!("{} {}", function.callee.name, function.callee.file));
    let mut names: Vec<String> = names.filter(|name| pattern.is_match(beginning(name))).collect();
    names.dedup();
    FlameNames { names, problem: None }
}

/// All that called a function and all it called; `None` where there is no such function among those of [`flame`].
pub(crate) fn sandwich(tree: &CallTree, function: usize) -> Option<SandwichData> {
    Some(sandwich_of(tree, &shown_functions(tree).nth(function)?.callee))
}

/// All that called each of the first functions and all that they called.
pub(crate) fn sandwiches(tree: &CallTree, functions: usize) -> impl Iterator<Item = SandwichData> {
    shown_functions(tree).take(functions).map(|function| sandwich_of(tree, &function.callee))
}

fn sandwich_of(tree: &CallTree, callee: &Callee) -> SandwichData {
    let sandwich = tree.sandwich(callee);
    SandwichData { callers: flame(&sandwich.callers), callees: flame(&sandwich.callees) }
}

/// The calls of a thread in order of time; of the busiest where none is named.
pub(crate) fn in_time_order(model: &Model, thread: Option<u32>) -> FlameData {
    let threads = timed_threads(model);
    let source = match (model.profile().samples.is_empty(), threads.is_empty()) {
        (_, true) => TreeSource::Nothing,
        (true, _) => TreeSource::Spans,
        (false, _) => TreeSource::Samples,
    };
    let chosen = threads.iter().find(|known| Some(known.track.0) == thread).or(threads.first());
    let calls = chosen.map_or_else(Vec::new, |chosen| time_order(model, chosen.track));
    let first = calls.first().map_or(0, |call| call.begin.0);
    let last = calls.iter().map(|call| call.begin.plus(call.time).0).max().unwrap_or(first);
    let mut drawing = Drawing::of(empty(source, last.saturating_sub(first)), calls.len());
    for call in &calls {
        if drawing.draw(&call.callee, call.parent, call.time) {
            drawing.data.total_time.push(call.time.0);
            drawing.data.begin.push(call.begin.0);
        }
    }
    let mut data = drawing.data;
    data.threads = threads
        .into_iter()
        .map(|thread| FlameThread { id: thread.track.0, name: thread.name, count: thread.count })
        .collect();
    data
}

/// The trees of two traces over each other: `total_time` is that of the second. Where both have steps, times are those of one step:
/// one recording may have more of them than the other.
pub(crate) fn compared(before: &Model, after: &Model) -> FlameData {
    let counts = [before, after].map(|model| model.steps().all.len() as i64);
    let per_step = counts.iter().all(|&count| count > 0);
    let [of_before, of_after] = if per_step { counts } else { [1, 1] };
    let [before, after] = [before, after]
        .map(|model| call_tree(model, &TreeOptions { merge_steps: true, ..TreeOptions::default() }));
    let nodes = compare_trees(&before, &after);
    let total = (after.total.0 / of_after).max(before.total.0 / of_before);
    let mut drawing = Drawing::of(empty(after.source, total), nodes.len());
    for node in &nodes {
        let (before, after) = (node.before.0 / of_before, node.after.0 / of_after);
        if drawing.draw(&node.callee, node.parent, Duration(before.max(after))) {
            drawing.data.total_time.push(after);
            drawing.data.before.push(before);
        }
    }
    if per_step {
        drawing.data.source.push_str(", per step");
    }
    drawing.data
}

/// Nodes as they are drawn, parents first; those too short to be seen are only counted.
struct Drawing {
    data: FlameData,
    functions: FunctionTable,
    /// What each node is called in the answer; -1 where it was left out.
    numbers: Vec<i64>,
    least: i64,
}

impl Drawing {
    fn of(data: FlameData, nodes: usize) -> Self {
        let least = (data.total / SMALLEST_PART).max(1);
        Self { data, functions: FunctionTable::default(), numbers: Vec::with_capacity(nodes), least }
    }

    /// Whether a node is drawn. What is around it is at least as long, so it was not left out.
    fn draw(&mut self, callee: &Callee, parent: Option<usize>, time: Duration) -> bool {
        if time.0 < self.least || self.data.parent.len() >= MOST_NODES {
            self.numbers.push(-1);
            self.data.hidden += 1;
            return false;
        }
        self.numbers.push(self.data.parent.len() as i64);
        let index = self.functions.of(&mut self.data, callee);
        self.data.place.push(index);
        self.data.parent.push(parent.map_or(-1, |parent| self.numbers[parent]));
        true
    }
}

fn empty(source: TreeSource, total: i64) -> FlameData {
    let source = match source {
        TreeSource::Samples => "samples",
        TreeSource::Spans => "calls",
        TreeSource::Nothing => "nothing",
    };
    FlameData {
        source: source.to_owned(),
        total,
        hidden: 0,
        places: Vec::new(),
        place: Vec::new(),
        parent: Vec::new(),
        total_time: Vec::new(),
        own_time: Vec::new(),
        count: Vec::new(),
        begin: Vec::new(),
        before: Vec::new(),
        threads: Vec::new(),
        record: RECORD.to_owned(),
    }
}

/// The names and places of an answer, each once.
#[derive(Default)]
struct FunctionTable {
    indices: HashMap<Callee, u32>,
}

impl FunctionTable {
    fn of(&mut self, data: &mut FlameData, callee: &Callee) -> u32 {
        if let Some(&index) = self.indices.get(callee) {
            return index;
        }
        let Callee { name, file, line, .. } = callee;
        data.places.push(FlamePlace {
            name: name.clone(),
            file: file.clone(),
            line: *line,
            own: 0,
            total: 0,
            origin: callee.origin().key().to_owned(),
            library: callee.library(),
        });
        let number = data.places.len() as u32 - 1;
        self.indices.insert(callee.clone(), number);
        number
    }
}
