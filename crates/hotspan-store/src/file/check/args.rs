//! Checking the args of a chunk: its new layouts, and the rows that it adds to each.

use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};

use super::{Check, ensure};
use crate::args::build::MAX_LAYOUTS;
use crate::args::{ArgKey, ArgOrigin, ArgType};
use crate::file::columns::{Checked, Chunk, Damaged, Segments, cells, piece};

impl Check<'_> {
    pub(super) fn arg_schemas(&self, chunk: &Chunk) -> Checked<Vec<Vec<ArgKey>>> {
        let Some(rows) = chunk.table("layout_keys")? else { return Ok(Vec::new()) };
        let (origins, kinds) = (cells::<UInt8Type>(&rows, "place")?, cells::<UInt8Type>(&rows, "kind")?);
        let names = cells::<UInt32Type>(&rows, "name")?;
        let known = self.builder.args.arg_schemas.len();
        let mut arg_schemas: Vec<Vec<ArgKey>> = Vec::new();
        for (row, &layout) in cells::<UInt16Type>(&rows, "layout")?.iter().enumerate() {
            let key = ArgKey {
                name: self.name(names[row])?.ok_or(Damaged)?,
                origin: ArgOrigin::from_code(origins[row]).ok_or(Damaged)?,
                kind: ArgType::from_code(kinds[row]).ok_or(Damaged)?,
            };
            // Keys of one layout follow each other, and layouts are numbered without gaps.
            if usize::from(layout) == known + arg_schemas.len() {
                arg_schemas.push(Vec::new());
            }
            ensure(usize::from(layout) + 1 == known + arg_schemas.len() && usize::from(layout) >= known)?;
            arg_schemas.last_mut().ok_or(Damaged)?.push(key);
        }
        ensure(known + arg_schemas.len() <= MAX_LAYOUTS + 1)?;
        Ok(arg_schemas)
    }

    pub(super) fn keys<'b>(&'b self, new: &'b [Vec<ArgKey>], layout: usize) -> Checked<&'b [ArgKey]> {
        let known = &self.builder.args.arg_schemas;
        match layout.checked_sub(known.len()) {
            None => Ok(&known[layout].keys),
            Some(index) => new.get(index).map(Vec::as_slice).ok_or(Damaged),
        }
    }

    /// Checks the rows of args: each layout that grows has exactly one piece for each of its keys, in order. Gives the
    /// number of rows of each layout.
    pub(super) fn args(&self, chunk: &Chunk, new: &[Vec<ArgKey>]) -> Checked<Vec<u32>> {
        let known = self.builder.args.arg_schemas.iter().map(|layout| layout.next);
        let mut row_counts: Vec<u32> = known.chain(new.iter().map(|_| 0)).collect();
        let values = chunk.table("values")?;
        let segments = values.as_ref().map(Segments::new).transpose()?;
        let mut piece = 0;
        let mut before = None;
        if let Some(rows) = chunk.table("arg_rows")? {
            let (arg_schemas, counts) =
                (cells::<UInt16Type>(&rows, "layout")?, cells::<UInt32Type>(&rows, "count")?);
            for (&layout, &count) in arg_schemas.iter().zip(counts) {
                ensure(before.is_none_or(|before| before < layout))?;
                before = Some(layout);
                let total = row_counts.get_mut(usize::from(layout)).ok_or(Damaged)?;
                *total = total.checked_add(count).ok_or(Damaged)?;
                for (position, key) in self.keys(new, layout.into())?.iter().enumerate() {
                    let segments = segments.as_ref().ok_or(Damaged)?;
                    ensure(segments.arg_schemas.get(piece) == Some(&layout))?;
                    ensure(segments.positions.get(piece).map(|&found| usize::from(found)) == Some(position))?;
                    self.segment(segments, piece, key.kind, count as usize)?;
                    piece += 1;
                }
            }
        }
        ensure(piece == segments.map_or(0, |segments| segments.len()))?;
        Ok(row_counts)
    }

    fn segment(&self, segments: &Segments<'_>, index: usize, kind: ArgType, count: usize) -> Checked<()> {
        let [small, ints, floats, ids] = [segments.small, segments.ints, segments.floats, segments.ids]
            .map(|list| list.value_length(index) as usize);
        match kind {
            ArgType::Int => ensure((small, ints) == (count, 0) || (small, ints) == (0, count))?,
            ArgType::Float => ensure(floats == count)?,
            ArgType::Text | ArgType::Json => {
                let values = piece::<UInt32Type>(segments.ids, index)?;
                ensure(ids == count && values.values().iter().all(|&id| (id as usize) < self.strings))?;
            }
        }
        ensure(small + ints + floats + ids == count)
    }
}
