//! speedscope's file: frames once, and for each thread its stacks in order of time.

use std::io::{self, Write};

use hashbrown::HashMap;
use hotspan_analyze::Model;
use hotspan_analyze::call_tree::{Callee, TreeOptions, call_tree};
use hotspan_store::{FrameId, TrackId};
use serde_json::{Value, json};

use super::Exporter;

/// The exporter of speedscope files.
pub struct Speedscope;

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
        let mut frames = Frames::default();
        let profiles = if model.profile().samples.is_empty() {
            from_tree(model, &mut frames)
        } else {
            from_samples(model, &mut frames)
        };
        let exporter = concat!("hotspan ", env!("CARGO_PKG_VERSION"));
        write!(output, "{{\"$schema\":{},\"exporter\":{},", json!(SCHEMA), json!(exporter))?;
        writeln!(output, "\"shared\":{{\"frames\":[")?;
        for (index, frame) in frames.list.iter().enumerate() {
            let end = if index + 1 < frames.list.len() { "," } else { "" };
            writeln!(output, "{frame}{end}")?;
        }
        writeln!(output, "]}},\"profiles\":[")?;
        for (index, profile) in profiles.iter().enumerate() {
            profile.write(output)?;
            writeln!(output, "{}", if index + 1 < profiles.len() { "," } else { "" })?;
        }
        writeln!(output, "]}}")
    }
}

#[derive(Default)]
struct Frames {
    list: Vec<Value>,
    ids: HashMap<Callee, usize>,
}

impl Frames {
    fn id(&mut self, callee: &Callee) -> usize {
        if let Some(&id) = self.ids.get(callee) {
            return id;
        }
        let id = self.list.len();
        let mut frame = json!({"name": callee.name});
        if !callee.file.is_empty() {
            frame["file"] = json!(callee.file);
        }
        if callee.line != 0 {
            frame["line"] = json!(callee.line);
        }
        self.list.push(frame);
        self.ids.insert(callee.clone(), id);
        id
    }
}

struct Profile {
    name: String,
    stacks: Vec<Vec<usize>>,
    weights: Vec<i64>,
}

impl Profile {
    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let end = self.weights.iter().fold(0_i64, |sum, &weight| sum.saturating_add(weight));
        write!(
            output,
            "{{\"type\":\"sampled\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end},\"samples\":[",
            json!(self.name)
        )?;
        for (index, stack) in self.stacks.iter().enumerate() {
            write!(output, "{}{}", if index > 0 { ",\n" } else { "\n" }, json!(stack))?;
        }
        write!(output, "],\"weights\":{}}}", json!(self.weights))
    }
}

fn from_samples(model: &Model, frames: &mut Frames) -> Vec<Profile> {
    let profile = model.profile();
    let mut ids: HashMap<FrameId, usize> = HashMap::new();
    let mut profiles: Vec<Profile> = Vec::new();
    let mut by_track: HashMap<TrackId, usize> = HashMap::new();
    for sample in profile.samples.rows() {
        let mut stack: Vec<usize> = profile
            .stacks
            .frames(sample.stack)
            .map(|frame| {
                *ids.entry(frame).or_insert_with(|| {
                    let row = profile.frames.row(frame);
                    let callee = Callee {
                        name: model.str(row.name).to_owned(),
                        file: model.str(row.file).to_owned(),
                        line: row.line,
                        kind: row.kind,
                    };
                    frames.id(&callee)
                })
            })
            .collect();
        stack.reverse();
        let thread = *by_track.entry(sample.track).or_insert_with(|| {
            let name = track_name(model, sample.track);
            profiles.push(Profile { name, stacks: Vec::new(), weights: Vec::new() });
            profiles.len() - 1
        });
        let thread = &mut profiles[thread];
        // Equal stacks in a row are one longer one.
        if thread.stacks.last() == Some(&stack) {
            if let Some(weight) = thread.weights.last_mut() {
                *weight = weight.saturating_add(sample.weight.0);
            }
        } else {
            thread.stacks.push(stack);
            thread.weights.push(sample.weight.0);
        }
    }
    profiles
}

/// Without samples the times of calls stand for them, a profile a thread.
fn from_tree(model: &Model, frames: &mut Frames) -> Vec<Profile> {
    let tree = call_tree(model, &TreeOptions { threads: true, ..TreeOptions::default() });
    tree.roots
        .iter()
        .map(|&root| {
            let name = tree.nodes[root].callee.name.clone();
            let mut profile = Profile { name, stacks: Vec::new(), weights: Vec::new() };
            let mut path = Vec::new();
            let mut open: Vec<(usize, usize)> =
                tree.nodes[root].children.iter().rev().map(|&child| (child, 0)).collect();
            while let Some((index, depth)) = open.pop() {
                let node = &tree.nodes[index];
                path.truncate(depth);
                path.push(frames.id(&node.callee));
                if node.own.0 > 0 {
                    profile.stacks.push(path.clone());
                    profile.weights.push(node.own.0);
                }
                open.extend(node.children.iter().rev().map(|&child| (child, depth + 1)));
            }
            profile
        })
        .collect()
}

fn track_name(model: &Model, track: TrackId) -> String {
    let row = model.track(track);
    let number = row.ident.display(model.strings());
    let process = model.process(row.process).ident.display(model.strings());
    let name = row.name.map_or("", |name| model.str(name));
    format!("Process {process} Thread {number} \"{name}\"")
}
