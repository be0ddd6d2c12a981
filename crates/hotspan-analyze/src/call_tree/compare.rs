//! Two trees laid over each other: what each call path took before and after.

use hashbrown::HashMap;
use hotspan_store::Duration;

use super::{CallTree, Callee};

/// A call path in one or both trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedNode {
    /// What it is; of the second tree where it is in both.
    pub callee: Callee,
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
            let key = (parent, node.callee.name.as_str(), node.callee.file.as_str());
            let callee = *known.entry(key).or_insert_with(|| {
                let (before, after) = (Duration::ZERO, Duration::ZERO);
                nodes.push(ComparedNode { callee: node.callee.clone(), parent, before, after });
                nodes.len() - 1
            });
            let time = if is_after { &mut nodes[callee].after } else { &mut nodes[callee].before };
            *time += node.total;
            open.extend(node.children.iter().rev().map(|&child| (child, Some(callee))));
        }
    }
    nodes
}
