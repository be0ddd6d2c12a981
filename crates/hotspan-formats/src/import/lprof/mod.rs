//! line_profiler's `.lprof` files: a pickled `LineStats`, read without unpickling.
//!
//! [`pickle`] understands the few instructions such a file consists of and runs no code. Here its values become rows.

mod pickle;

use std::io::Read;

use hotspan_store::keys::LINE_UNIT;
use hotspan_store::{Bytes, Duration, FrameKind, FrameRow, LineRow, TraceBuilder};

use crate::error::ImportError;
use crate::import::{Importer, Sniff};
use crate::input::Input;
use pickle::{Pickle, Value, ValueId};

/// The importer of `.lprof` files.
pub struct Lprof;

/// The unit of our own files, and of line_profiler's on most systems.
const NANOSECOND: f64 = 1e-9;

/// Larger files do not come from line_profiler: a row takes some twenty bytes.
const LARGEST: u64 = 16 << 20;

impl Importer for Lprof {
    fn name(&self) -> &'static str {
        "line_profiler"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        let is_pickle = matches!(head, [0x80, 2..=5, ..]);
        let start = &head[..head.len().min(256)];
        let named = |name: &[u8]| start.windows(name.len()).any(|window| window == name);
        if is_pickle && named(b"LineStats") { Sniff::Yes } else { Sniff::No }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        input.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(not_stats("the file is larger than 16 MB", LARGEST));
        }
        builder.source.bytes = bytes.len() as u64;
        let (pickle, stats) = Pickle::parse(&bytes)
            .map_err(|error| ImportError::Damaged { reason: error.reason, offset: error.offset })?;
        Rows { pickle: &pickle, builder, room: bytes.len() }.stats(stats)
    }
}

fn not_stats(reason: &str, offset: u64) -> ImportError {
    ImportError::Damaged { reason: format!("{reason}, which line_profiler does not write"), offset }
}

struct Rows<'a> {
    pickle: &'a Pickle,
    builder: &'a mut TraceBuilder,
    /// A value may be shared, a row may not: there cannot be more rows than bytes.
    room: usize,
}

impl Rows<'_> {
    fn stats(&mut self, stats: ValueId) -> Result<(), ImportError> {
        let state = match self.pickle.value(stats) {
            Value::Object(Some(state)) => *state,
            _ => return Err(not_stats("there is no LineStats object", 0)),
        };
        let field = |name: &str| self.pickle.entry(state, name);
        let (Some(timings), Some(unit)) = (field("timings"), field("unit")) else {
            return Err(not_stats("timings or unit is missing", 0));
        };
        let unit = self.pickle.number(unit).filter(|unit| unit.is_finite() && *unit > 0.0);
        let Some(unit) = unit else { return Err(not_stats("the unit is not a number", 0)) };
        if unit != NANOSECOND {
            self.builder.metadata.set(LINE_UNIT, &format!("{unit:e}"));
        }
        let Value::Dict(entries) = self.pickle.value(timings) else {
            return Err(not_stats("timings is not a dictionary", 0));
        };
        for &(key, rows) in entries {
            self.function(key, rows, unit / NANOSECOND)?;
        }
        Ok(())
    }

    fn function(&mut self, key: ValueId, rows: ValueId, nanos: f64) -> Result<(), ImportError> {
        let (pickle, wrong) = (self.pickle, || not_stats("a function is not (file, line, name)", 0));
        let &[file, first_line, name] = pickle.items(key).ok_or_else(wrong)? else { return Err(wrong()) };
        let (Some(file), Some(name)) = (pickle.text(file), pickle.text(name)) else { return Err(wrong()) };
        let first_line = pickle.integer(first_line).and_then(|line| u32::try_from(line).ok());
        let row = FrameRow {
            name: self.builder.intern(name),
            file: self.builder.intern(file),
            line: 0,
            first_line: first_line.ok_or_else(wrong)?,
            kind: FrameKind::Python,
        };
        let function = self.builder.frame(row);
        let rows =
            pickle.items(rows).ok_or_else(|| not_stats("the lines of a function are not a list", 0))?;
        // A function that never ran is remembered by a row without hits.
        let mut line_row = |line, hits, time| -> Result<(), ImportError> {
            self.room =
                self.room.checked_sub(1).ok_or_else(|| not_stats("lines are repeated without end", 0))?;
            let (memory, increment) = (Bytes(0), Bytes(0));
            self.builder.push_line(LineRow { function, line, hits, time, memory, increment });
            Ok(())
        };
        if rows.is_empty() {
            line_row(row.first_line, 0, Duration(0))?;
        }
        for &line in rows {
            let wrong = || not_stats("a line is not (number, hits, time)", 0);
            let &[line, hits, time] = pickle.items(line).ok_or_else(wrong)? else { return Err(wrong()) };
            let line = pickle.integer(line).and_then(|line| u32::try_from(line).ok()).ok_or_else(wrong)?;
            let hits = pickle.integer(hits).filter(|hits| *hits >= 0).ok_or_else(wrong)?;
            let time =
                pickle.number(time).filter(|time| time.is_finite() && *time >= 0.0).ok_or_else(wrong)?;
            line_row(line, hits, Duration((time * nanos).round() as i64))?;
        }
        Ok(())
    }
}
