//! The call tree as columns: what a flame graph is drawn from.

use std::collections::HashMap;

use hotspan_analyze::call_tree::Place;
use hotspan_analyze::{CallTree, TreeOptions, TreeSource, call_tree};
use hotspan_store::Trace;

use crate::api::{FlameData, FlamePlace};

/// Nodes below this part of the whole are less than a pixel on any screen.
const SMALLEST_PART: i64 = 8000;
const RECORD: &str = "hotspan record -o run.hotspan -- python train.py";

/// The flame graph of a trace.
pub(crate) fn flame(trace: &Trace) -> FlameData {
    let tree = call_tree(trace, &TreeOptions { threads: true, ..TreeOptions::default() });
    let mut data = FlameData {
        source: match tree.source {
            TreeSource::Samples => "samples",
            TreeSource::Spans => "calls",
            TreeSource::Nothing => "nothing",
        }
        .to_owned(),
        total: tree.total.0,
        hidden: 0,
        places: Vec::new(),
        place: Vec::new(),
        parent: Vec::new(),
        total_time: Vec::new(),
        own_time: Vec::new(),
        count: Vec::new(),
        record: RECORD.to_owned(),
    };
    fill(&mut data, &tree);
    data
}

fn fill(data: &mut FlameData, tree: &CallTree) {
    let least = tree.total.0 / SMALLEST_PART;
    let mut places: HashMap<&Place, u32> = HashMap::new();
    let mut open: Vec<(usize, i64)> = tree.roots.iter().rev().map(|&root| (root, -1)).collect();
    while let Some((index, parent)) = open.pop() {
        let node = &tree.nodes[index];
        if node.total.0 < least || node.total.0 <= 0 {
            continue;
        }
        let number = data.parent.len() as i64;
        let place = *places.entry(&node.place).or_insert_with(|| {
            let Place { name, file, line, .. } = &node.place;
            data.places.push(FlamePlace { name: name.clone(), file: file.clone(), line: *line });
            data.places.len() as u32 - 1
        });
        data.place.push(place);
        data.parent.push(parent);
        data.total_time.push(node.total.0);
        data.own_time.push(node.own.0);
        data.count.push(node.count);
        open.extend(node.children.iter().rev().map(|&child| (child, number)));
    }
    data.hidden = (tree.nodes.len() - data.parent.len()) as u64;
}
