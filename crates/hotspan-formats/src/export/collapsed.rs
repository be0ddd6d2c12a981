//! Collapsed stacks: a line a stack, `outer;inner count`, for flamegraph.pl, speedscope and py-spy's `raw` readers.

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_analyze::call_tree::{CallTree, TreeOptions, TreeSource, call_tree};

use super::Exporter;
use super::frame_text::frame_text;

/// The exporter of collapsed stacks.
pub struct Collapsed {
    /// Whether lines are told apart, and threads.
    pub options: TreeOptions,
}

/// What `--to collapsed` writes.
pub const COLLAPSED: Collapsed =
    Collapsed { options: TreeOptions { lines: true, threads: false, busy_only: false, merge_steps: false } };

/// Each line has a whole stack, so that a deep one makes a file much larger than the trace. Calls further inside are one frame.
pub(super) const DEEPEST: usize = 2_000;
pub(super) const DEEPER: &str = "(deeper calls)";

impl Exporter for Collapsed {
    fn name(&self) -> &'static str {
        "collapsed"
    }

    fn help(&self) -> &'static str {
        "Stacks with their counts, a line each, for flamegraph.pl and speedscope; samples, or microseconds of spans"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let tree = call_tree(model, &self.options);
        let unit = unit(model, &tree);
        let mut path: Vec<String> = Vec::new();
        // Depth first, with the texts of the frames around at hand.
        let mut open: Vec<(usize, usize)> = tree.roots.iter().rev().map(|&root| (root, 0)).collect();
        let mut line = String::new();
        while let Some((index, depth)) = open.pop() {
            let node = &tree.nodes[index];
            path.truncate(depth);
            let is_cut = depth >= DEEPEST;
            path.push(if is_cut { DEEPER.to_owned() } else { clean(&frame_text(&node.callee)) });
            let time = if is_cut { node.total } else { node.own };
            let count = time.0.saturating_add(unit / 2) / unit;
            if count > 0 {
                line.clear();
                for (position, frame) in path.iter().enumerate() {
                    if position > 0 {
                        line.push(';');
                    }
                    line.push_str(frame);
                }
                writeln!(output, "{line} {count}")?;
            }
            if !is_cut {
                open.extend(node.children.iter().rev().map(|&child| (child, depth + 1)));
            }
        }
        Ok(())
    }
}

/// How many nanoseconds one count stands for: a sample, or a microsecond where there are none.
fn unit(model: &Model, tree: &CallTree) -> i64 {
    if tree.source != TreeSource::Samples {
        return 1_000;
    }
    let told = model.metadata().value("hotspan.sampling").and_then(|value| value.get("period_ns")?.as_i64());
    let shortest =
        || model.profile().samples.rows().map(|sample| sample.weight.0).filter(|&weight| weight > 0).min();
    told.or_else(shortest).unwrap_or(1).max(1)
}

/// What parts frames and lines must not be part of a name.
fn clean(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            ';' => ':',
            character if character.is_control() => ' ',
            character => character,
        })
        .collect()
}
