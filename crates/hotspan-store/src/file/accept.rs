//! Accepting a chunk: once checked, it becomes part of the trace.

use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};

use crate::args::growing::GrowingColumn;
use crate::builder::TraceBuilder;
use crate::file::check::Check;
use crate::file::columns::{Checked, Chunk, Damaged, Segments, cells, optional, piece, text};
use crate::ids::StringId;
use crate::losses::{Loss, Losses};
use crate::metadata::Source;
use crate::table::Growing;

/// All chunks accepted so far.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    pub(super) builder: TraceBuilder,
    /// The losses as of the last chunk.
    pub(super) losses: Losses,
    /// Whether the last chunk of a finished file was seen.
    pub(super) complete: bool,
}

impl Accepted {
    /// Adds a chunk, or leaves the trace as it was (but for names that nothing refers to).
    pub(super) fn accept(&mut self, chunk: &Chunk) -> Checked<()> {
        let check = Check::new(&self.builder, chunk)?;
        let additions = check.all(chunk)?;

        for text in chunk.strings()?.iter().flatten() {
            let next = self.builder.strings.len();
            if self.builder.strings.intern(text).index() != next {
                return Err(Damaged);
            }
        }
        for keys in additions.arg_schemas {
            self.builder.args.add_layout(&self.builder.strings, keys).ok_or(Damaged)?;
        }
        for &name in chunk.numbers("categories")?.as_slice() {
            self.builder.add_category(StringId(name));
        }
        for (index, process) in additions.processes {
            self.builder.set_process(index, process);
        }
        for (index, track) in additions.tracks {
            self.builder.set_track(index, track);
        }
        self.add_args(chunk)?;
        self.add_events(chunk)?;
        self.add_notes(chunk)
    }

    fn add_args(&mut self, chunk: &Chunk) -> Checked<()> {
        if let Some(rows) = chunk.table("arg_rows")? {
            let (arg_schemas, counts) =
                (cells::<UInt16Type>(&rows, "layout")?, cells::<UInt32Type>(&rows, "count")?);
            for (&layout, &count) in arg_schemas.iter().zip(counts) {
                self.builder.args.arg_schemas[usize::from(layout)].next += count;
            }
        }
        let Some(values) = chunk.table("values")? else { return Ok(()) };
        let segments = Segments::new(&values)?;
        for index in 0..segments.len() {
            let layout = &mut self.builder.args.arg_schemas[usize::from(segments.arg_schemas[index])];
            let column = &mut layout.columns[usize::from(segments.positions[index])];
            match column {
                GrowingColumn::Small(_) | GrowingColumn::Int(_) => {
                    column.extend_small(piece::<UInt32Type>(segments.small, index)?.values());
                    column.extend_ints(piece::<Int64Type>(segments.ints, index)?.values());
                }
                GrowingColumn::Float(_) => {
                    column.extend_floats(piece::<Float64Type>(segments.floats, index)?.values());
                }
                GrowingColumn::Id(_) => column.extend_ids(piece::<UInt32Type>(segments.ids, index)?.values()),
            }
        }
        Ok(())
    }

    fn add_events(&mut self, chunk: &Chunk) -> Checked<()> {
        let builder = &mut self.builder;
        if let Some(rows) = chunk.table("spans")? {
            builder.spans.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        if let Some(rows) = chunk.table("instants")? {
            builder.instants.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        if let Some(rows) = chunk.table("counters")? {
            builder.counters.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        if let Some(rows) = chunk.table("flows")? {
            builder.flows.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        let profile = &mut builder.profile;
        let (frames, stacks) = (chunk.table("frames")?, chunk.table("stacks")?);
        profile.extend_interned(frames.as_ref(), stacks.as_ref()).ok_or(Damaged)?;
        if let Some(rows) = chunk.table("samples")? {
            profile.samples.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        if let Some(rows) = chunk.table("call_stats")? {
            profile.calls.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        if let Some(rows) = chunk.table("line_stats")? {
            profile.lines.extend_from_arrow(&rows).ok_or(Damaged)?;
        }
        builder.verbatim.extend(chunk.numbers("verbatim")?.iter().map(|&id| StringId(id)));
        Ok(())
    }

    fn add_notes(&mut self, chunk: &Chunk) -> Checked<()> {
        for (key, value) in chunk.pairs("metadata")? {
            self.builder.metadata.set(&key, &value);
        }
        for (key, value) in chunk.pairs("source")? {
            set_source(&mut self.builder.source, &key, value);
        }
        if let Some(clock) = chunk.column("clock") {
            let clock = clock.as_struct_opt().ok_or(Damaged)?;
            let base = optional(clock, "base_unix", "has_base_unix")?;
            self.builder.clock.origin = *cells::<Int64Type>(clock, "origin")?.first().ok_or(Damaged)?;
            self.builder.clock.base_unix = base.into_iter().next().flatten();
        }
        if let Some(rows) = chunk.table("losses")? {
            self.losses = losses(&rows)?;
        }
        if let Some(complete) = chunk.column("complete") {
            let complete = complete.as_primitive_opt::<UInt8Type>().ok_or(Damaged)?;
            self.complete = complete.values().first() == Some(&1);
        }
        Ok(())
    }
}

fn set_source(source: &mut Source, key: &str, value: String) {
    match key {
        "format" => source.format = value,
        "compression" => source.compression = Some(value),
        "path" => source.path = Some(value),
        "bytes" => source.bytes = value.parse().unwrap_or(0),
        // A later minor version may say more.
        _ => {}
    }
}

fn losses(rows: &StructArray) -> Checked<Losses> {
    let names = text(rows, "name")?;
    let (counts, offsets) = (cells::<UInt64Type>(rows, "count")?, cells::<Int64Type>(rows, "first_offset")?);
    let mut losses = Losses::default();
    for ((name, &count), &offset) in names.iter().zip(counts).zip(offsets) {
        let known = Loss::ALL.iter().copied().find(|loss| Some(loss.name()) == name);
        losses.add_many(known.unwrap_or(Loss::UnknownLoss), count, u64::try_from(offset).ok());
    }
    Ok(losses)
}
