//! Two trees laid over each other: what each call path took before and after.

use hashbrown::HashMap;
use hotspan_store::Duration;

use super::{CallTree, Place};

/// A call path in one or both trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedNode {
    /// What it is; of the second tree where it is in both.
    pub place: Place,
    /// Its parent among the compared.
    pub parent: Option<usize>,
    /// Its time with all it called in the first tree.
    pub before: Duration,
    /// The same in the second.
    pub after: Duration,
}

/// The call paths of both trees, parents before their children. Functions that only moved within their file are the same.
#[must_use]
pub fn compare_trees(before: &CallTree, after: &CallTree) -> Vec<ComparedNode> {
    let mut nodes: Vec<ComparedNode> = Vec::new();
    let mut known: HashMap<(Option<usize>, &str, &str), usize> = HashMap::new();
    for (tree, is_after) in [(after, true), (before, false)] {
        let mut open: Vec<(usize, Option<usize>)> =
            tree.roots.iter().rev().map(|&root| (root, None)).collect();
        while let Some((index, parent)) = open.pop() {
            let node = &tree.nodes[index];
            let key = (parent, node.place.name.as_str(), node.place.file.as_str());
            let place = *known.entry(key).or_insert_with(|| {
                let (before, after) = (Duration::ZERO, Duration::ZERO);
                nodes.push(ComparedNode { place: node.place.clone(), parent, before, after });
                nodes.len() - 1
            });
            let time = if is_after { &mut nodes[place].after } else { &mut nodes[place].before };
            *time += node.total;
            open.extend(node.children.iter().rev().map(|&child| (child, Some(place))));
        }
    }
    nodes
}
