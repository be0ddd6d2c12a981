//! speedscope's file: frames once, and for each thread its stacks in order of time, or its calls where there are no samples.
//!
//! Frames come first in the file, so that the stacks are walked twice: once for the frames, once to be written. None is held.

use std::io::{self, Write};

use hashbrown::HashMap;
use hotspan_analyze::Model;
use hotspan_analyze::call_tree::{CallTree, Callee, TreeOptions, call_tree};
use hotspan_store::{FrameId, FrameKind, SampleRow, StackId, TrackId};
use serde_json::{Value, json};

use super::Exporter;
use super::collapsed::{DEEPER, DEEPEST};

/// The exporter of speedscope files.
pub struct Speedscope {
    /// Whether equal samples in a row are written one by one, and frames with all their fields, as py-spy writes them.
    /// The file is larger, and scripts that count samples count right.
    every_sample: bool,
}

/// What `--to speedscope` writes.
pub const SPEEDSCOPE: Speedscope = Speedscope { every_sample: false };
/// What `hotspan record` writes.
pub const EVERY_SAMPLE: Speedscope = Speedscope { every_sample: true };

/// The file names its own form by this.
pub(crate) const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

impl Exporter for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn help(&self) -> &'static str {
        "Stacks over time, for https://www.speedscope.app"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        if model.profile().samples.is_empty() {
            let tree = call_tree(model, &TreeOptions { threads: true, ..TreeOptions::default() });
            let mut frames = Frames::of(self);
            let ids: Vec<usize> = tree.nodes.iter().map(|node| frames.id(&node.callee)).collect();
            return frames.write(output, tree.roots.len(), |output, index| {
                write_calls(&tree, &ids, tree.roots[index], output)
            });
        }
        let mut frames = Frames::of(self);
        let stacks = Stacks::of(model, &mut frames);
        let mut threads: Vec<(TrackId, Vec<SampleRow>)> = Vec::new();
        let mut by_track: HashMap<TrackId, usize> = HashMap::new();
        for sample in model.profile().samples.rows() {
            let thread = *by_track.entry(sample.track).or_insert_with(|| {
                threads.push((sample.track, Vec::new()));
                threads.len() - 1
            });
            threads[thread].1.push(sample);
        }
        frames.write(output, threads.len(), |output, index| {
            let (track, samples) = &threads[index];
            write_samples(&track_name(model, *track), &stacks, samples, self.every_sample, output)
        })
    }
}

#[derive(Default)]
struct Frames {
    list: Vec<Value>,
    ids: HashMap<Callee, usize>,
    all_fields: bool,
}

impl Frames {
    fn of(exporter: &Speedscope) -> Self {
        Self { all_fields: exporter.every_sample, ..Self::default() }
    }

    fn id(&mut self, callee: &Callee) -> usize {
        if let Some(&id) = self.ids.get(callee) {
            return id;
        }
        let id = self.list.len();
        let mut frame = json!({"name": callee.name});
        if self.all_fields {
            frame["col"] = Value::Null;
        }
        if self.all_fields || !callee.file.is_empty() {
            frame["file"] = json!(callee.file);
        }
        if self.all_fields || callee.line != 0 {
            frame["line"] = json!((callee.line != 0).then_some(callee.line));
        }
        self.list.push(frame);
        self.ids.insert(callee.clone(), id);
        id
    }

    /// Writes the file around its profiles.
    fn write(
        &self,
        output: &mut dyn Write,
        profiles: usize,
        mut profile: impl FnMut(&mut dyn Write, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let exporter = concat!("hotspan ", env!("CARGO_PKG_VERSION"));
        write!(output, "{{\"$schema\":{},\"exporter\":{},", json!(SCHEMA), json!(exporter))?;
        writeln!(output, "\"shared\":{{\"frames\":[")?;
        for (index, frame) in self.list.iter().enumerate() {
            let end = if index + 1 < self.list.len() { "," } else { "" };
            writeln!(output, "{frame}{end}")?;
        }
        writeln!(output, "]}},\"profiles\":[")?;
        for index in 0..profiles {
            profile(output, index)?;
            writeln!(output, "{}", if index + 1 < profiles { "," } else { "" })?;
        }
        writeln!(output, "]}}")
    }
}

/// The stacks of the samples, as far as they are written.
struct Stacks<'a> {
    model: &'a Model,
    /// The frame in the file, by that of the trace.
    ids: Vec<usize>,
    /// The frame that stands for all that lies too deep.
    deeper: usize,
    /// Of each stack the part that is written: itself, or what is around it at the greatest depth.
    shown: Vec<StackId>,
    depths: Vec<usize>,
}

impl<'a> Stacks<'a> {
    fn of(model: &'a Model, frames: &mut Frames) -> Self {
        let profile = model.profile();
        let name = |row: &hotspan_store::FrameRow| Callee {
            name: model.str(row.name).to_owned(),
            file: model.str(row.file).to_owned(),
            line: row.line,
            kind: row.kind,
        };
        let ids = profile.frames.rows().map(|row| frames.id(&name(&row))).collect();
        let mut stacks = Self { model, ids, deeper: 0, shown: Vec::new(), depths: Vec::new() };
        // The stack around another comes before it.
        for index in 0..profile.stacks.len() {
            let stack = StackId::at(index);
            let outer = profile.stacks.parent(stack);
            let depth = outer.map_or(0, |outer| stacks.depths[outer.index()]) + 1;
            let shown = if depth <= DEEPEST {
                stack
            } else {
                outer.map_or(stack, |outer| stacks.shown[outer.index()])
            };
            stacks.shown.push(shown);
            stacks.depths.push(depth);
        }
        if stacks.depths.iter().any(|&depth| depth > DEEPEST) {
            let (name, file) = (DEEPER.to_owned(), String::new());
            stacks.deeper = frames.id(&Callee { name, file, line: 0, kind: FrameKind::Builtin });
        }
        stacks
    }

    /// What is written of a stack, and whether that is all.
    fn shown(&self, stack: StackId) -> (StackId, bool) {
        match self.shown.get(stack.index()) {
            Some(&shown) if stack != StackId::NONE => (shown, shown == stack),
            _ => (stack, true),
        }
    }

    /// The frames in the file, outermost first.
    fn frames(&self, (stack, whole): (StackId, bool)) -> Vec<usize> {
        let id = |frame: FrameId| self.ids[frame.index()];
        let deeper = (!whole).then_some(self.deeper);
        let mut frames: Vec<usize> =
            deeper.into_iter().chain(self.model.profile().stacks.frames(stack).map(id)).collect();
        frames.reverse();
        frames
    }
}

/// The samples of a thread. Equal stacks in a row are one longer one, unless every sample is asked for.
fn write_samples(
    name: &str,
    stacks: &Stacks<'_>,
    samples: &[SampleRow],
    every_sample: bool,
    output: &mut dyn Write,
) -> io::Result<()> {
    let end = samples.iter().fold(0_i64, |sum, sample| sum.saturating_add(sample.weight.0));
    write!(
        output,
        "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end},\"samples\":[",
        json!(name)
    )?;
    let is_same = |one: &SampleRow, two: &SampleRow| stacks.shown(one.stack) == stacks.shown(two.stack);
    let runs = || samples.chunk_by(|one, two| !every_sample && is_same(one, two));
    for (index, run) in runs().enumerate() {
        let frames = run.first().map_or_else(Vec::new, |sample| stacks.frames(stacks.shown(sample.stack)));
        write!(output, "{}{}", if index > 0 { ",\n" } else { "\n" }, json!(frames))?;
    }
    write!(output, "],\"weights\":[")?;
    for (index, run) in runs().enumerate() {
        let weight = run.iter().fold(0_i64, |sum, sample| sum.saturating_add(sample.weight.0));
        write!(output, "{}{weight}", if index > 0 { "," } else { "" })?;
    }
    write!(output, "]}}")
}

/// Without samples the times of calls stand for them: each call of a thread begins and ends once, whatever its depth.
fn write_calls(tree: &CallTree, ids: &[usize], root: usize, output: &mut dyn Write) -> io::Result<()> {
    let thread = &tree.nodes[root];
    write!(
        output,
        "{{\"type\":\"evented\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{},\"events\":[",
        json!(thread.callee.name),
        thread.total.0 - thread.own.0
    )?;
    let mut time = 0_i64;
    let mut separator = "\n";
    // A call and whether it begins.
    let mut open: Vec<(usize, bool)> = thread.children.iter().rev().map(|&child| (child, true)).collect();
    while let Some((index, begins)) = open.pop() {
        let kind = if begins { "O" } else { "C" };
        write!(output, "{separator}{{\"type\":\"{kind}\",\"frame\":{},\"at\":{time}}}", ids[index])?;
        separator = ",\n";
        if begins {
            time = time.saturating_add(tree.nodes[index].own.0);
            open.push((index, false));
            open.extend(tree.nodes[index].children.iter().rev().map(|&child| (child, true)));
        }
    }
    write!(output, "]}}")
}

fn track_name(model: &Model, track: TrackId) -> String {
    let row = model.track(track);
    let number = row.ident.display(model.strings());
    let process = model.process(row.process).ident.display(model.strings());
    let name = row.name.map_or("", |name| model.str(name));
    format!("Process {process} Thread {number} \"{name}\"")
}
