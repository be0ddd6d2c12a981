//! A tree turned around one function: all that called it above, all that it called below; and the functions to choose from.

use hashbrown::HashMap;
use hotspan_store::Duration;

use super::{CallTree, Callee, TreeBuilder, TreeSource};

/// The time of a function over the whole tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTime {
    /// Which.
    pub callee: Callee,
    /// Its own time.
    pub own: Duration,
    /// Its time with all it called; counted once where it called itself.
    pub total: Duration,
}

/// Callers further away than this are not told apart: with each call at another depth they would be as many as calls times depth.
const FURTHEST_CALLER: usize = 256;

/// Callers and callees of one function. The root of both is the function itself, and both have its whole time.
#[derive(Clone, Debug)]
pub struct Sandwich {
    /// Upside down: the children of a node are its callers.
    pub callers: CallTree,
    /// The children of a node are what it called.
    pub callees: CallTree,
}

impl CallTree {
    /// The functions of the tree, most own time first.
    #[must_use]
    pub fn functions(&self) -> Vec<FunctionTime> {
        let mut rows: Vec<FunctionTime> = Vec::new();
        let mut known: HashMap<&Callee, usize> = HashMap::new();
        let mut row_of = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let row = *known.entry(&node.callee).or_insert_with(|| {
                let callee = node.callee.clone();
                rows.push(FunctionTime { callee, own: Duration::ZERO, total: Duration::ZERO });
                rows.len() - 1
            });
            rows[row].own += node.own;
            row_of.push(row);
        }
        // Down the tree and up again: how many calls of each function are open tells which is the outermost.
        let mut calls = vec![0_u32; rows.len()];
        let mut open: Vec<(usize, bool)> = self.roots.iter().map(|&root| (root, true)).collect();
        while let Some((index, begins)) = open.pop() {
            let row = row_of[index];
            if !begins {
                calls[row] -= 1;
                continue;
            }
            if calls[row] == 0 {
                rows[row].total += self.nodes[index].total;
            }
            calls[row] += 1;
            open.push((index, false));
            open.extend(self.nodes[index].children.iter().map(|&child| (child, true)));
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.own, row.total)));
        rows
    }

    /// The nodes around a node, innermost first.
    pub(super) fn around(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.nodes[index].parent, |&outer| self.nodes[outer].parent)
    }

    /// The tree around a function; both sides are empty when it is not in the tree.
    #[must_use]
    pub fn sandwich(&self, callee: &Callee) -> Sandwich {
        let new = || TreeBuilder { source: self.source, ..TreeBuilder::default() };
        let (mut callers, mut callees) = (new(), new());
        // Parents come before their children, so that one look at each tells which calls are within one of the function.
        let mut within = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let around = node.parent.is_some_and(|parent| within[parent]);
            let wanted = node.callee == *callee;
            within.push(around || wanted);
            if around || !wanted {
                continue;
            }
            let mut at = callers.node(None, node.callee.clone());
            for outer in self.around(index).take(FURTHEST_CALLER) {
                at = callers.node(Some(at), self.nodes[outer].callee.clone());
            }
            callers.nodes[at].own += node.total;
            callers.nodes[at].count += node.count;
            self.copy_below(index, &mut callees);
        }
        Sandwich { callers: callers.finish(), callees: callees.finish() }
    }

    fn copy_below(&self, index: usize, into: &mut TreeBuilder) {
        let mut open = vec![(index, None)];
        while let Some((index, parent)) = open.pop() {
            let node = &self.nodes[index];
            let at = into.node(parent, node.callee.clone());
            into.nodes[at].own += node.own;
            into.nodes[at].count += node.count;
            open.extend(node.children.iter().map(|&child| (child, Some(at))));
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.source == TreeSource::Nothing || self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::FrameKind;

    use super::*;

    fn callee(name: &str) -> Callee {
        Callee { name: name.to_owned(), file: String::new(), line: 0, kind: FrameKind::Python }
    }

    /// Stacks, outermost first, with their own time.
    fn tree(stacks: &[(&str, i64)]) -> CallTree {
        let mut builder = TreeBuilder { source: TreeSource::Samples, ..TreeBuilder::default() };
        for &(stack, time) in stacks {
            let node = stack.split(' ').fold(None, |outer, name| Some(builder.node(outer, callee(name))));
            builder.nodes[node.unwrap()].own += Duration(time);
        }
        builder.finish()
    }

    #[test]
    fn callers_and_callees_have_the_time_of_the_function() {
        let tree = tree(&[("a f x", 3), ("b f", 4), ("b f f x", 5), ("b", 100)]);
        let sandwich = tree.sandwich(&callee("f"));
        assert_eq!((sandwich.callers.total, sandwich.callees.total), (Duration(12), Duration(12)));
        let callers = &sandwich.callers;
        let of_root: Vec<_> = callers.nodes[callers.roots[0]].children.iter().collect();
        let times: Vec<_> = of_root
            .iter()
            .map(|&&node| (callers.nodes[node].callee.name.as_str(), callers.nodes[node].total.0))
            .collect();
        assert_eq!(times, [("b", 9), ("a", 3)]);
        let functions = tree.functions();
        let seen: Vec<_> =
            functions.iter().map(|row| (row.callee.name.as_str(), row.own.0, row.total.0)).collect();
        assert_eq!(seen, [("b", 100, 109), ("x", 8, 8), ("f", 4, 12), ("a", 0, 3)]);
    }

    #[test]
    fn an_unknown_function_has_no_callers() {
        assert!(tree(&[("a", 1)]).sandwich(&callee("z")).callers.is_empty());
    }
}
