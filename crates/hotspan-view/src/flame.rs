//! Flame graphs as columns: added up, in order of time, around one function, and two traces laid over each other.

use std::collections::HashMap;

use hotspan_analyze::call_tree::{Place, compare_trees, time_order, timed_threads};
use hotspan_analyze::{CallTree, TreeOptions, TreeSource, call_tree};
use hotspan_store::Trace;

use crate::api::{FlameData, FlamePlace, FlameThread, SandwichData};

/// Nodes below this part of the whole are less than a pixel on any screen.
const SMALLEST_PART: i64 = 8000;
/// Nodes that are sent at most.
const MOST_NODES: usize = 100_000;
const RECORD: &str = "hotspan record -o run.hotspan -- python train.py";

/// The call tree of a trace, threads at the root.
pub(crate) fn tree(trace: &Trace) -> CallTree {
    call_tree(trace, &TreeOptions { threads: true, ..TreeOptions::default() })
}

/// A tree, all calls of a path added up.
pub(crate) fn flame(tree: &CallTree) -> FlameData {
    let mut data = empty(tree.source, tree.total.0);
    let mut places = Places::default();
    let least = tree.total.0 / SMALLEST_PART;
    // The functions that cost most come first, which is the order that sandwiches are chosen from.
    for function in tree.functions() {
        if function.total.0 >= least {
            let place = places.of(&mut data, &function.place) as usize;
            (data.places[place].own, data.places[place].total) = (function.own.0, function.total.0);
        }
    }
    let mut open: Vec<(usize, i64)> = tree.roots.iter().rev().map(|&root| (root, -1)).collect();
    while let Some((index, parent)) = open.pop() {
        let node = &tree.nodes[index];
        if node.total.0 < least || node.total.0 <= 0 || data.parent.len() >= MOST_NODES {
            continue;
        }
        let number = data.parent.len() as i64;
        let place = places.of(&mut data, &node.place);
        data.place.push(place);
        data.parent.push(parent);
        data.total_time.push(node.total.0);
        data.own_time.push(node.own.0);
        data.count.push(node.count);
        open.extend(node.children.iter().rev().map(|&child| (child, number)));
    }
    data.hidden = (tree.nodes.len() - data.parent.len()) as u64;
    data
}

/// All that called a function and all it called; `None` where there is no such place among those of [`flame`].
pub(crate) fn sandwich(tree: &CallTree, place: usize) -> Option<SandwichData> {
    let sandwich = tree.sandwich(&tree.functions().get(place)?.place);
    Some(SandwichData { callers: flame(&sandwich.callers), callees: flame(&sandwich.callees) })
}

/// The calls of a thread in order of time; of the busiest where none is named.
pub(crate) fn in_time_order(trace: &Trace, thread: Option<u32>) -> FlameData {
    let threads = timed_threads(trace);
    let source = match (trace.profile().samples.is_empty(), threads.is_empty()) {
        (_, true) => TreeSource::Nothing,
        (true, _) => TreeSource::Spans,
        (false, _) => TreeSource::Samples,
    };
    let mut data = empty(source, 0);
    let chosen = threads.iter().find(|known| Some(known.track.0) == thread).or(threads.first());
    let calls = chosen.map_or_else(Vec::new, |chosen| time_order(trace, chosen.track));
    let first = calls.first().map_or(0, |call| call.begin.0);
    let last = calls.iter().map(|call| call.begin.plus(call.time).0).max().unwrap_or(first);
    data.total = last.saturating_sub(first);
    let least = data.total / SMALLEST_PART;
    let mut places = Places::default();
    let mut numbers: Vec<i64> = Vec::with_capacity(calls.len());
    for call in &calls {
        if call.time.0 < least.max(1) || data.parent.len() >= MOST_NODES {
            numbers.push(-1);
            data.hidden += 1;
            continue;
        }
        numbers.push(data.parent.len() as i64);
        let place = places.of(&mut data, &call.place);
        data.place.push(place);
        // What is around a call is at least as long, so it was not left out.
        data.parent.push(call.parent.map_or(-1, |parent| numbers[parent]));
        data.total_time.push(call.time.0);
        data.begin.push(call.begin.0);
    }
    data.threads = threads
        .into_iter()
        .map(|thread| FlameThread { id: thread.track.0, name: thread.name, count: thread.count })
        .collect();
    data
}

/// The trees of two traces over each other: `total_time` is that of the second.
pub(crate) fn compared(before: &Trace, after: &Trace) -> FlameData {
    let [before, after] = [before, after].map(|trace| call_tree(trace, &TreeOptions::default()));
    let mut data = empty(after.source, after.total.0.max(before.total.0));
    let least = data.total / SMALLEST_PART;
    let nodes = compare_trees(&before, &after);
    let mut places = Places::default();
    let mut numbers: Vec<i64> = Vec::with_capacity(nodes.len());
    for node in &nodes {
        if node.before.max(node.after).0 < least.max(1) || data.parent.len() >= MOST_NODES {
            numbers.push(-1);
            data.hidden += 1;
            continue;
        }
        numbers.push(data.parent.len() as i64);
        let place = places.of(&mut data, &node.place);
        data.place.push(place);
        data.parent.push(node.parent.map_or(-1, |parent| numbers[parent]));
        data.total_time.push(node.after.0);
        data.before.push(node.before.0);
    }
    data
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
struct Places {
    known: HashMap<Place, u32>,
}

impl Places {
    fn of(&mut self, data: &mut FlameData, place: &Place) -> u32 {
        if let Some(&known) = self.known.get(place) {
            return known;
        }
        let Place { name, file, line, .. } = place;
        data.places.push(FlamePlace {
            name: name.clone(),
            file: file.clone(),
            line: *line,
            own: 0,
            total: 0,
        });
        let number = data.places.len() as u32 - 1;
        self.known.insert(place.clone(), number);
        number
    }
}
