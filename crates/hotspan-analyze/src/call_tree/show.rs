//! How a tree looks as rows: what is left out of it.

use super::{CallTree, TreeSource, is_library};
use crate::report::tree::{Tree, TreeRow};

/// What of a tree is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShowOptions {
    /// Show the insides of libraries too.
    pub all: bool,
    /// Leave out what took less than this share of the whole, in percent.
    pub least_share: f64,
    /// Leave out what lies deeper than this; 0 shows all.
    pub depth: usize,
}

impl Default for ShowOptions {
    fn default() -> Self {
        Self { all: false, least_share: 1.0, depth: 0 }
    }
}

impl CallTree {
    /// How the tree looks. Of calls within libraries only the first is shown, and below it where they came back to the program.
    #[must_use]
    pub fn report(&self, options: &ShowOptions) -> Tree {
        let what = match self.source {
            TreeSource::Samples => "samples",
            TreeSource::Spans => "calls",
            TreeSource::Nothing => "samples or calls",
        };
        let title = format!("{} in {} {what}", self.total, self.count);
        let mut rows = Vec::new();
        let mut open: Vec<(usize, usize)> = self.roots.iter().rev().map(|&root| (root, 0)).collect();
        while let Some((index, depth)) = open.pop() {
            let node = &self.nodes[index];
            let share =
                if self.total.0 == 0 { 0.0 } else { node.total.0 as f64 * 100.0 / self.total.0 as f64 };
            if share < options.least_share || (options.depth > 0 && depth >= options.depth) {
                continue;
            }
            let (shown, hidden) = self.shown_below(index, options.all);
            let location = match (node.callee.file.as_str(), node.callee.line) {
                ("", _) => String::new(),
                (file, 0) => file.to_owned(),
                (file, line) => format!("{file}:{line}"),
            };
            let label = node.callee.name.clone();
            rows.push(TreeRow { depth, label, location, total: node.total, own: node.own, share, hidden });
            open.extend(shown.into_iter().rev().map(|child| (child, depth + 1)));
        }
        Tree { title, rows }
    }

    /// The children of a node that are shown, and how many nodes were passed over.
    fn shown_below(&self, index: usize, all: bool) -> (Vec<usize>, usize) {
        let node = &self.nodes[index];
        if all || !is_library(&node.callee.file) {
            return (node.children.clone(), 0);
        }
        let (mut shown, mut hidden) = (Vec::new(), 0);
        let mut open = node.children.clone();
        while let Some(child) = open.pop() {
            if is_library(&self.nodes[child].callee.file) {
                hidden += 1;
                open.extend(&self.nodes[child].children);
            } else {
                shown.push(child);
            }
        }
        shown.sort_unstable_by_key(|&child| (std::cmp::Reverse(self.nodes[child].total), child));
        (shown, hidden)
    }
}
