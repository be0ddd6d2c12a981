//! A tree in another shape: upside down, without what the reader did not write, imports as one call. Times are moved, never lost: what is left
//! out belongs to what called it.

use std::path::Path;

use hotspan_store::{Duration, FrameKind};

use super::{CallTree, Callee, TreeBuilder};
use crate::model::source::is_users;
use crate::wall_time::is_recorder;

/// Callers further away than this are not told apart.
const FURTHEST_CALLER: usize = 128;
/// Calls with less than this part of the whole as their own are left out of a tree that is turned: nobody could see them.
const SMALLEST_PART: i64 = 200_000;
/// What stands for the import system and all that it ran.
const IMPORTS: &str = "imports";

/// How a tree is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What has time of its own is at the root, its callers below it.
    pub inverted: bool,
    /// Only functions of the user, and the threads they ran on.
    pub my_code: bool,
    /// Without the functions that record.
    pub without_recorder: bool,
    /// Imports are one call.
    pub collapsed_imports: bool,
}

/// Whose code a call is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's.
    Yours,
    /// An installed library, or Python's own.
    Library,
    /// An operator, an annotation, a built-in function, a thread.
    Other,
    /// Compiled code.
    Native,
}

impl Origin {
    /// What programs call it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Yours => "yours",
            Self::Library => "library",
            Self::Other => "other",
            Self::Native => "native",
        }
    }
}

impl Callee {
    /// Whose code it is.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self.kind {
            FrameKind::Native => Origin::Native,
            _ if self.file.is_empty() || self.file == "~" => Origin::Other,
            _ if is_users(&self.file) => Origin::Yours,
            _ => Origin::Library,
        }
    }

    /// The library that it is in; empty where it is in none.
    #[must_use]
    pub fn library(&self) -> String {
        let first = |path: &str| {
            let part = path.split('/').next().unwrap_or_default();
            part.strip_suffix(".py").unwrap_or(part).to_owned()
        };
        let installed = ["site-packages/", "dist-packages/"];
        let inside = installed.iter().find_map(|folder| Some(self.file.split_once(folder)?.1));
        match (self.origin(), inside) {
            (Origin::Yours | Origin::Other, _) => String::new(),
            (_, Some(inside)) => first(inside),
            (Origin::Native, None) => {
                let file = Path::new(&self.file).file_name().unwrap_or_default().to_string_lossy();
                file.split(".so").next().unwrap_or_default().to_owned()
            }
            (Origin::Library, None) if self.file.starts_with(['/', '<']) => "python".to_owned(),
            (Origin::Library, None) => first(&self.file),
        }
    }

    fn imports(&self) -> bool {
        self.kind == FrameKind::Python && self.file.starts_with("<frozen importlib")
    }
}

impl CallTree {
    /// The tree in another shape.
    #[must_use]
    pub fn shaped(&self, shape: &Shape) -> Self {
        let upright = Shape { inverted: false, ..*shape };
        let tree = if upright == Shape::default() { None } else { Some(self.without(&upright)) };
        match (tree, shape.inverted) {
            (None, false) => self.clone(),
            (None, true) => self.inverted(),
            (Some(tree), false) => tree,
            (Some(tree), true) => tree.inverted(),
        }
    }

    /// Without the calls that a shape leaves out: what they called stands where they stood.
    fn without(&self, shape: &Shape) -> Self {
        let mut builder = TreeBuilder { source: self.source, count: self.count, ..TreeBuilder::default() };
        // Where each call went, and whether it is part of an import.
        let mut moved: Vec<(Option<usize>, bool)> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let (parent, within) = node.parent.map_or((None, false), |parent| moved[parent]);
            let begins = shape.collapsed_imports && !within && node.callee.imports();
            let is_root = node.parent.is_none();
            let is_left_out = within
                || (shape.without_recorder && is_recorder(&node.callee.file))
                || (shape.my_code && !is_root && node.callee.origin() != Origin::Yours);
            let at = if begins {
                let callee = Callee {
                    name: IMPORTS.to_owned(),
                    file: String::new(),
                    line: 0,
                    kind: FrameKind::Python,
                };
                Some(builder.node(parent, callee))
            } else if is_left_out {
                parent
            } else {
                Some(builder.node(parent, node.callee.clone()))
            };
            moved.push((at, within || begins));
            // What has nothing around it that stays belongs to nobody: a thread is always there.
            if let Some(at) = at {
                builder.nodes[at].own += node.own;
                builder.nodes[at].count += node.count;
            }
        }
        builder.finish()
    }

    /// Upside down: the children of a node are its callers.
    fn inverted(&self) -> Self {
        let mut builder = TreeBuilder { source: self.source, count: self.count, ..TreeBuilder::default() };
        let least = Duration((self.total.0 / SMALLEST_PART).max(1));
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.own >= least) {
            let mut at = builder.node(None, node.callee.clone());
            for outer in self.around(index).take(FURTHEST_CALLER) {
                at = builder.node(Some(at), self.nodes[outer].callee.clone());
            }
            builder.nodes[at].own += node.own;
            builder.nodes[at].count += node.count;
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::TreeSource;

    fn callee(name: &str) -> Callee {
        let file = match name {
            "work" | "main" => "/home/me/train.py",
            "find" => "<frozen importlib._bootstrap>",
            "agent" => "/x/site-packages/hotspan/_agent.py",
            "linear" => "/x/site-packages/torch/nn/functional.py",
            _ => "",
        };
        Callee { name: name.to_owned(), file: file.to_owned(), line: 0, kind: FrameKind::Python }
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

    fn paths(tree: &CallTree) -> Vec<(String, i64)> {
        let path = |index: usize| {
            let mut names: Vec<&str> =
                tree.around(index).map(|node| tree.nodes[node].callee.name.as_str()).collect();
            names.reverse();
            names.push(&tree.nodes[index].callee.name);
            names.join(" ")
        };
        let mut found: Vec<_> = (0..tree.nodes.len())
            .filter(|&index| tree.nodes[index].own.0 > 0)
            .map(|index| (path(index), tree.nodes[index].own.0))
            .collect();
        found.sort();
        found
    }

    const STACKS: [(&str, i64); 5] = [
        ("thread main work linear aten::addmm", 5),
        ("thread main linear", 2),
        ("thread main find other find numpy", 7),
        ("thread agent work", 1),
        ("thread agent", 3),
    ];

    #[test]
    fn no_time_is_lost_in_any_shape() {
        let tree = tree(&STACKS);
        for bits in 0..16_u8 {
            let is_set = |bit: u8| bits & (1 << bit) != 0;
            let shape = Shape {
                inverted: is_set(0),
                my_code: is_set(1),
                without_recorder: is_set(2),
                collapsed_imports: is_set(3),
            };
            assert_eq!(tree.shaped(&shape).total, tree.total, "{shape:?}");
        }
    }

    #[test]
    fn what_is_left_out_belongs_to_its_caller() {
        let tree = tree(&STACKS);
        let mine = tree.shaped(&Shape { my_code: true, ..Shape::default() });
        let expected = [("thread", 3), ("thread main", 9), ("thread main work", 5), ("thread work", 1)];
        assert_eq!(paths(&mine), expected.map(|(path, time)| (path.to_owned(), time)));
        let shape = Shape { collapsed_imports: true, without_recorder: true, ..Shape::default() };
        let found = paths(&tree.shaped(&shape));
        assert!(found.contains(&("thread main imports".to_owned(), 7)), "{found:?}");
        assert!(found.contains(&("thread work".to_owned(), 1)), "{found:?}");
    }

    #[test]
    fn upside_down_functions_come_before_their_callers() {
        let found = paths(&tree(&STACKS).shaped(&Shape { inverted: true, ..Shape::default() }));
        assert!(found.contains(&("aten::addmm linear work main thread".to_owned(), 5)), "{found:?}");
        assert!(found.contains(&("linear main thread".to_owned(), 2)), "{found:?}");
    }

    #[test]
    fn files_tell_libraries() {
        assert_eq!(
            (callee("linear").origin(), callee("linear").library().as_str()),
            (Origin::Library, "torch")
        );
        assert_eq!((callee("work").origin(), callee("work").library().as_str()), (Origin::Yours, ""));
        assert_eq!(callee("find").library(), "python");
        let kineto = Callee { file: "torch/nn/modules/module.py".to_owned(), ..callee("x") };
        assert_eq!(kineto.library(), "torch");
        let native =
            Callee { file: "/usr/lib/libcublas.so.12".to_owned(), kind: FrameKind::Native, ..callee("x") };
        assert_eq!((native.origin(), native.library().as_str()), (Origin::Native, "libcublas"));
    }
}
