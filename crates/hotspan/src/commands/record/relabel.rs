//! Samples under other names: short files, first lines or none, and frames that stand for threads and processes, where the options of
//! py-spy ask for them.

use std::collections::HashMap;

use hotspan_analyze::Model;
use hotspan_store::{FrameId, FrameKind, FrameRow, SampleRow, StackId, TraceBuilder, TrackId};

use super::super::short_names::ShortNames;

/// What is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Relabel {
    /// Files have the names of their packages.
    pub(super) short_files: bool,
    /// A frame has the line its function begins at.
    pub(super) first_lines: bool,
    /// No frame has a line.
    pub(super) no_lines: bool,
    /// The outermost frame of a stack is its thread.
    pub(super) threads: bool,
    /// Outside of that is its process.
    pub(super) processes: bool,
    /// Samples of threads that did not hold the GIL are left out.
    pub(super) gil_only: bool,
}

impl Relabel {
    /// The same samples, relabelled.
    pub(super) fn apply(self, model: &Model) -> Model {
        let profile = model.profile();
        let mut builder = TraceBuilder::new();
        builder.metadata = model.metadata().clone();
        builder.losses = model.losses().clone();
        builder.clock = model.clock();
        let mut short_names = ShortNames::default();
        let frames: Vec<FrameId> = profile
            .frames
            .rows()
            .map(|row| {
                let file = match row.kind {
                    FrameKind::Python if self.short_files => short_names.of(model.str(row.file)),
                    _ => model.str(row.file).to_owned(),
                };
                let (name, file) = (builder.intern(model.str(row.name)), builder.intern(&file));
                let first_line = if self.no_lines { 0 } else { row.first_line };
                let line = if self.first_lines || self.no_lines { first_line } else { row.line };
                builder.frame(FrameRow { name, file, line, first_line, kind: row.kind })
            })
            .collect();
        let mut stacks: HashMap<(TrackId, StackId), StackId> = HashMap::new();
        for sample in profile.samples.rows().filter(|sample| sample.gil || !self.gil_only) {
            let track = self.track(model, sample.track, &mut builder);
            let stack = *stacks.entry((sample.track, sample.stack)).or_insert_with(|| {
                let outside = self.outside(model, sample.track, &mut builder);
                let path: Vec<FrameId> = profile.stacks.frames(sample.stack).collect();
                let inner = path.iter().rev().map(|frame| frames[frame.index()]);
                inner.fold(outside, |stack, frame| builder.stack(stack, frame))
            });
            builder.push_sample(SampleRow { track, stack, ..sample });
        }
        Model::new(builder.finish())
    }

    fn track(self, model: &Model, track: TrackId, builder: &mut TraceBuilder) -> TrackId {
        let row = model.track(track);
        let process = model.process(row.process);
        let name = row.name.map(|name| builder.intern(model.str(name)));
        let process_name = process.name.map(|name| builder.intern(model.str(name)));
        let process_id = builder.process(process.ident);
        builder.process_mut(process_id).name = process_name;
        let track = builder.track(process.ident, row.ident);
        builder.track_mut(track).name = name;
        track
    }

    /// The frames outside of all others, in py-spy's words.
    fn outside(self, model: &Model, track: TrackId, builder: &mut TraceBuilder) -> StackId {
        let row = model.track(track);
        let process = model.process(row.process);
        let mut names = Vec::new();
        if self.processes {
            let command = process.name.map_or("", |name| model.str(name));
            names.push(format!("process {}:\"{command}\"", process.ident.display(model.strings())));
        }
        if self.threads {
            let number = row.ident.display(model.strings()).to_string();
            names.push(match row.name.map(|name| model.str(name)).filter(|name| !name.is_empty()) {
                Some(name) => format!("thread ({number}): {name}"),
                None => format!("thread ({number})"),
            });
        }
        names.iter().fold(StackId::NONE, |stack, name| {
            let (name, file) = (builder.intern(name), builder.intern(""));
            let frame =
                builder.frame(FrameRow { name, file, line: 0, first_line: 0, kind: FrameKind::Builtin });
            builder.stack(stack, frame)
        })
    }
}
