//! Checking a chunk: every id, number and length in it, against what the file has said before.

mod args;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, StructArray};
use hashbrown::HashSet;

use crate::args::ArgKey;
use crate::builder::{MAX_CATEGORIES, TraceBuilder};
use crate::file::chunk::NO_STRING;
use crate::file::columns::{Checked, Chunk, Damaged, cells, optional};
use crate::ids::{ArgSchemaId, FrameId, Ident, ProcessId, StackId, StringId};
use crate::profile::{FrameKind, SampleState};
use crate::table::Growing;
use crate::trace::{Process, Track};

/// What a chunk adds beyond plain copies of columns, checked.
#[derive(Default)]
pub(super) struct Additions {
    pub(super) processes: Vec<(usize, Process)>,
    pub(super) tracks: Vec<(usize, Track)>,
    pub(super) arg_schemas: Vec<Vec<ArgKey>>,
}

/// How many of each thing there will be once the chunk is accepted; ids must be below.
pub(super) struct Check<'a> {
    builder: &'a TraceBuilder,
    strings: usize,
    categories: usize,
}

impl<'a> Check<'a> {
    pub(super) fn new(builder: &'a TraceBuilder, chunk: &Chunk) -> Checked<Self> {
        let strings = builder.strings.len() + chunk.strings()?.len();
        let categories = builder.categories.len() + chunk.numbers("categories")?.len();
        // The last string id means "none".
        if strings > NO_STRING as usize || categories > MAX_CATEGORIES {
            return Err(Damaged);
        }
        Ok(Self { builder, strings, categories })
    }

    pub(super) fn all(&self, chunk: &Chunk) -> Checked<Additions> {
        let mut seen = HashSet::new();
        for &name in &chunk.numbers("categories")? {
            let new = !self.builder.has_category(StringId(name)) && seen.insert(name);
            ensure(new && (name as usize) < self.strings)?;
        }
        ensure(chunk.numbers("verbatim")?.iter().all(|&id| (id as usize) < self.strings))?;
        let arg_schemas = self.arg_schemas(chunk)?;
        let row_counts = self.args(chunk, &arg_schemas)?;
        let processes = self.processes(chunk)?;
        let process_count = count_with(self.builder.processes.len(), &processes);
        let tracks = self.tracks(chunk, process_count)?;
        let track_count = count_with(self.builder.tracks.len(), &tracks);
        for table in ["spans", "instants", "counters", "flows"] {
            if let Some(rows) = chunk.table(table)? {
                self.events(&rows, track_count, &arg_schemas, &row_counts)?;
            }
        }
        self.profile(chunk, track_count)?;
        Ok(Additions { processes, tracks, arg_schemas })
    }

    fn name(&self, id: u32) -> Checked<Option<StringId>> {
        match id {
            NO_STRING => Ok(None),
            id if (id as usize) < self.strings => Ok(Some(StringId(id))),
            _ => Err(Damaged),
        }
    }

    fn idents(&self, rows: &StructArray) -> Checked<Vec<Ident>> {
        let (values, is_text) =
            (cells::<Int64Type>(rows, "ident")?, cells::<UInt8Type>(rows, "ident_is_text")?);
        let ident = |(&value, &is_text): (&i64, &u8)| match is_text {
            0 => Ok(Ident::Int(value)),
            _ => {
                let id = u32::try_from(value).map_err(|_| Damaged)?;
                self.name(id)?.map(Ident::Text).ok_or(Damaged)
            }
        };
        values.iter().zip(is_text).map(ident).collect()
    }

    fn processes(&self, chunk: &Chunk) -> Checked<Vec<(usize, Process)>> {
        let Some(rows) = chunk.table("processes")? else { return Ok(Vec::new()) };
        let idents = self.idents(&rows)?;
        let (names, labels) = (cells::<UInt32Type>(&rows, "name")?, cells::<UInt32Type>(&rows, "labels")?);
        let sort = optional(&rows, "sort_index", "has_sort_index")?;
        let mut next = self.builder.processes.len();
        let mut result = Vec::with_capacity(idents.len());
        for (row, &index) in cells::<UInt32Type>(&rows, "index")?.iter().enumerate() {
            let index = index as usize;
            let process = Process {
                ident: idents[row],
                name: self.name(names[row])?,
                labels: self.name(labels[row])?,
                sort_index: sort[row],
            };
            ensure_next(index, &mut next)?;
            ensure(self.builder.processes.get(index).is_none_or(|known| known.ident == process.ident))?;
            result.push((index, process));
        }
        Ok(result)
    }

    fn tracks(&self, chunk: &Chunk, processes: usize) -> Checked<Vec<(usize, Track)>> {
        let Some(rows) = chunk.table("tracks")? else { return Ok(Vec::new()) };
        let idents = self.idents(&rows)?;
        let (names, owners) = (cells::<UInt32Type>(&rows, "name")?, cells::<UInt32Type>(&rows, "process")?);
        let sort = optional(&rows, "sort_index", "has_sort_index")?;
        let mut next = self.builder.tracks.len();
        let mut result = Vec::with_capacity(idents.len());
        for (row, &index) in cells::<UInt32Type>(&rows, "index")?.iter().enumerate() {
            let index = index as usize;
            let track = Track {
                process: ProcessId(owners[row]),
                ident: idents[row],
                name: self.name(names[row])?,
                sort_index: sort[row],
            };
            ensure(track.process.index() < processes)?;
            ensure_next(index, &mut next)?;
            let same = |known: &Track| known.ident == track.ident && known.process == track.process;
            ensure(self.builder.tracks.get(index).is_none_or(same))?;
            result.push((index, track));
        }
        Ok(result)
    }

    fn events(
        &self,
        rows: &StructArray,
        tracks: usize,
        new: &[Vec<ArgKey>],
        row_counts: &[u32],
    ) -> Checked<()> {
        below(rows, "name", self.strings)?;
        below(rows, "track", tracks)?;
        let categories = cells::<UInt16Type>(rows, "category")?;
        ensure(categories.iter().all(|&id| usize::from(id) < self.categories))?;
        codes(rows, "scope", 3)?;
        codes(rows, "phase", 2)?;
        codes(rows, "binds_enclosing", 1)?;
        // Nobody looks at the row of an event without args.
        let limits: Vec<u32> = row_counts
            .iter()
            .enumerate()
            .map(|(layout, &rows)| match self.keys(new, layout) {
                Ok([]) => u32::MAX,
                _ => rows,
            })
            .collect();
        let arg_schemas = cells::<UInt16Type>(rows, "layout")?;
        let arg_rows = cells::<UInt32Type>(rows, "arg_row")?;
        ensure(arg_schemas.iter().zip(arg_rows).all(|(&layout, &row)| {
            limits.get(ArgSchemaId(layout).index()).is_some_and(|&limit| row < limit || limit == u32::MAX)
        }))
    }

    /// Checks frames, stacks and what refers to them.
    fn profile(&self, chunk: &Chunk, tracks: usize) -> Checked<()> {
        let known = &self.builder.profile;
        let (mut frames, mut stacks) = (known.frames.len(), known.stacks.len());
        if let Some(rows) = chunk.table("frames")? {
            below(&rows, "name", self.strings)?;
            below(&rows, "file", self.strings)?;
            codes(&rows, "kind", FrameKind::LAST)?;
            frames += rows.len();
        }
        if let Some(rows) = chunk.table("stacks")? {
            below(&rows, "frame", frames)?;
            let mut parents = cells::<UInt32Type>(&rows, "parent")?.iter().zip(stacks..);
            ensure(parents.all(|(&parent, own)| parent == StackId::NONE.0 || (parent as usize) < own))?;
            stacks += rows.len();
        }
        // The last number of each means "none".
        ensure(frames < u32::MAX as usize && stacks < u32::MAX as usize)?;
        if let Some(rows) = chunk.table("samples")? {
            below(&rows, "stack", stacks)?;
            below(&rows, "track", tracks)?;
            codes(&rows, "state", SampleState::LAST)?;
            codes(&rows, "gil", 1)?;
        }
        if let Some(rows) = chunk.table("call_stats")? {
            below(&rows, "callee", frames)?;
            let callers = cells::<UInt32Type>(&rows, "caller")?;
            ensure(callers.iter().all(|&id| id == FrameId::NONE.0 || (id as usize) < frames))?;
        }
        match chunk.table("line_stats")? {
            Some(rows) => below(&rows, "function", frames),
            None => Ok(()),
        }
    }
}

/// Every id of a column is that of a row.
fn below(rows: &StructArray, name: &str, limit: usize) -> Checked<()> {
    ensure(cells::<UInt32Type>(rows, name)?.iter().all(|&id| (id as usize) < limit))
}

/// Every code of a column, where there is one, has a meaning.
fn codes(rows: &StructArray, name: &str, limit: u8) -> Checked<()> {
    let Some(column) = rows.column_by_name(name) else { return Ok(()) };
    let column = column.as_primitive_opt::<UInt8Type>().ok_or(Damaged)?;
    ensure(column.values().iter().all(|&code| code <= limit))
}

fn ensure(holds: bool) -> Checked<()> {
    if holds { Ok(()) } else { Err(Damaged) }
}

/// A row changes a known one or is the next new one.
fn ensure_next(index: usize, next: &mut usize) -> Checked<()> {
    *next += usize::from(index == *next);
    ensure(index < *next)
}

fn count_with<T>(known: usize, rows: &[(usize, T)]) -> usize {
    rows.iter().map(|(index, _)| index + 1).max().unwrap_or(0).max(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ArgOrigin, ArgType};
    use crate::file::accept::Accepted;
    use crate::file::chunk;
    use crate::losses::Losses;
    use crate::metadata::Clock;

    type Change = fn(&mut chunk::Chunk<'_>);

    /// A chunk with a right checksum, as a hostile writer would make it.
    fn accept(change: Change) -> Checked<()> {
        let mut chunk =
            chunk::Chunk { strings: vec!["name", "other"], categories: vec![1], ..Default::default() };
        let process = Process { ident: Ident::Int(1), name: None, labels: None, sort_index: None };
        chunk.processes = vec![(0, process)];
        chunk.tracks =
            vec![(0, Track { process: ProcessId(0), ident: Ident::Int(1), name: None, sort_index: None })];
        chunk.layout_keys =
            vec![(1, ArgKey { name: StringId(1), origin: ArgOrigin::Args, kind: ArgType::Text })];
        change(&mut chunk);
        let batch = chunk.encode(Clock::default(), &Losses::default(), true).unwrap();
        Accepted::default().accept(&Chunk::new(batch)?)
    }

    fn span(name: u32, category: u16, track: u32, layout: u16, arg_row: u32) -> Vec<arrow_array::ArrayRef> {
        let mut spans = crate::events::SpansBuilder::default();
        spans.push((
            crate::units::Timestamp(0),
            crate::units::Duration(0),
            StringId(name),
            crate::ids::CategoryId(category),
            crate::ids::TrackId(track),
            ArgSchemaId(layout),
            arg_row,
        ));
        spans.take().slice_columns(0, 1)
    }

    fn frame(name: u32, kind: u8) -> Vec<arrow_array::ArrayRef> {
        let mut frames = crate::profile::FramesBuilder::default();
        frames.push((StringId(name), StringId(0), 1, 1, FrameKind::Python));
        frames.kind[0] = kind;
        frames.take().slice_columns(0, 1)
    }

    fn stacks(rows: &[(u32, u32)]) -> Vec<arrow_array::ArrayRef> {
        let mut stacks = crate::profile::StacksBuilder::default();
        rows.iter().for_each(|&(parent, frame)| stacks.push((StackId(parent), FrameId(frame))));
        stacks.take().slice_columns(0, rows.len())
    }

    fn sample() -> Vec<arrow_array::ArrayRef> {
        let mut samples = crate::profile::SamplesBuilder::default();
        let (time, weight) = (crate::units::Timestamp(0), crate::units::Duration(0));
        samples.push((time, crate::ids::TrackId(0), StackId(0), weight, SampleState::Io, 0));
        samples.take().slice_columns(0, 1)
    }

    fn calls(caller: u32, callee: u32) -> Vec<arrow_array::ArrayRef> {
        let mut calls = crate::profile::CallStatsBuilder::default();
        let zero = crate::units::Duration(0);
        calls.push((FrameId(caller), FrameId(callee), 1, 1, zero, zero));
        calls.take().slice_columns(0, 1)
    }

    #[test]
    fn a_chunk_that_refers_to_what_exists_is_accepted() {
        assert_eq!(accept(|_| {}), Ok(()));
        assert_eq!(accept(|chunk| chunk.events[0] = span(1, 0, 0, 0, 0)), Ok(()));
        assert_eq!(accept(|chunk| chunk.verbatim = vec![2]), Ok(()));
        let profile = |chunk: &mut chunk::Chunk<'_>| {
            chunk.events[4] = frame(1, 2);
            chunk.events[5] = stacks(&[(u32::MAX, 0), (0, 0)]);
            chunk.events[6] = sample();
            chunk.events[7] = calls(u32::MAX, 0);
        };
        assert_eq!(accept(profile), Ok(()));
    }

    #[test]
    fn ids_of_nothing_are_refused() {
        let changes: &[(&str, Change)] = &[
            ("a string twice", |chunk| chunk.strings = vec!["name", "name"]),
            ("the empty string, which every file has", |chunk| chunk.strings = vec!["", "name"]),
            ("name of a category", |chunk| chunk.categories = vec![3]),
            ("a category twice", |chunk| chunk.categories = vec![1, 1]),
            ("verbatim text", |chunk| chunk.verbatim = vec![3]),
            ("number of a process", |chunk| chunk.processes[0].0 = 1),
            ("name of a process", |chunk| chunk.processes[0].1.name = Some(StringId(3))),
            ("ident of a process", |chunk| chunk.processes[0].1.ident = Ident::Text(StringId(3))),
            ("number of a thread", |chunk| chunk.tracks[0].0 = 7),
            ("process of a thread", |chunk| chunk.tracks[0].1.process = ProcessId(1)),
            ("number of a layout", |chunk| chunk.layout_keys[0].0 = 2),
            ("the layout that every file has", |chunk| chunk.layout_keys[0].0 = 0),
            ("name of a key", |chunk| chunk.layout_keys[0].1.name = StringId(3)),
            ("rows of no layout", |chunk| chunk.arg_rows = vec![(2, 1)]),
            ("rows without values", |chunk| chunk.arg_rows = vec![(1, 1)]),
            ("rows out of order", |chunk| chunk.arg_rows = vec![(0, 1), (0, 1)]),
            ("more rows than can be numbered", |chunk| chunk.arg_rows = vec![(0, u32::MAX), (1, u32::MAX)]),
            ("name of a span", |chunk| chunk.events[0] = span(3, 0, 0, 0, 0)),
            ("category of a span", |chunk| chunk.events[0] = span(1, 1, 0, 0, 0)),
            ("thread of a span", |chunk| chunk.events[0] = span(1, 0, 1, 0, 0)),
            ("layout of a span", |chunk| chunk.events[0] = span(1, 0, 0, 2, 0)),
            ("args of a span", |chunk| chunk.events[0] = span(1, 0, 0, 1, 0)),
            ("name of a frame", |chunk| chunk.events[4] = frame(3, 0)),
            ("kind of a frame", |chunk| chunk.events[4] = frame(1, 9)),
            ("frame of a stack", |chunk| chunk.events[5] = stacks(&[(u32::MAX, 0)])),
            ("a stack that is its own parent", |chunk| {
                chunk.events[4] = frame(1, 0);
                chunk.events[5] = stacks(&[(0, 0)]);
            }),
            ("parent of a stack", |chunk| {
                chunk.events[4] = frame(1, 0);
                chunk.events[5] = stacks(&[(u32::MAX, 0), (2, 0)]);
            }),
            ("stack of a sample", |chunk| chunk.events[6] = sample()),
            ("caller of a call", |chunk| {
                chunk.events[4] = frame(1, 0);
                chunk.events[7] = calls(1, 0);
            }),
            ("callee of a call", |chunk| chunk.events[7] = calls(u32::MAX, 0)),
        ];
        for (what, change) in changes {
            assert_eq!(accept(*change), Err(Damaged), "{what}");
        }
    }
}
