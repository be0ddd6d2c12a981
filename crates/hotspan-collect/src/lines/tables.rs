//! What is added up: a row per line of a function, and which functions are watched.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use hashbrown::HashMap;

use super::recorder::Measure;
use super::shared::Shared;
use crate::interpreter::Object;

/// A number that threads add to: one at a time with a GIL, side by side without.
#[derive(Debug, Default)]
pub(crate) struct Total(AtomicI64);

impl Total {
    #[inline]
    pub(crate) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds, and costs no more than it must.
    #[inline]
    pub(crate) fn add(&self, amount: i64, is_parallel: bool) {
        if is_parallel {
            self.0.fetch_add(amount, Ordering::Relaxed);
        } else {
            self.set(self.get().wrapping_add(amount));
        }
    }

    fn raise_to(&self, value: i64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}

/// What was added up on one line.
#[derive(Debug, Default)]
struct Totals {
    hits: Total,
    ticks: Total,
    memory: Total,
    increment: Total,
}

/// One line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row {
    pub(crate) hits: i64,
    pub(crate) ticks: u64,
    pub(crate) memory: i64,
    pub(crate) increment: i64,
}

/// When a recorder records; shared by all its tables.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) measure: Measure,
    /// Whether threads run Python code side by side.
    pub(crate) is_parallel: bool,
    pub(crate) on: AtomicBool,
    /// Nothing before this moment counts.
    pub(crate) since: AtomicU64,
}

/// The lines of one function, for one recorder.
#[derive(Debug)]
pub(crate) struct LineTable {
    pub(crate) switch: Arc<Switch>,
    /// The line of the first row.
    first: u32,
    rows: Vec<Totals>,
    /// The first line of the statement that a line is part of, by row; empty when lines count as they are.
    statements: Vec<u32>,
    last_memory: AtomicI64,
}

impl LineTable {
    pub(crate) fn new(switch: Arc<Switch>, first: u32, last: u32, statements: Vec<u32>) -> Self {
        let count = (last.saturating_sub(first) as usize).saturating_add(1);
        let rows = (0..count).map(|_| Totals::default()).collect();
        Self { switch, first, rows, statements, last_memory: AtomicI64::new(0) }
    }

    /// The lines that were executed, in order.
    pub(crate) fn rows(&self) -> Vec<(u32, Row)> {
        let row = |row: &Totals| Row {
            hits: row.hits.get(),
            ticks: row.ticks.get().cast_unsigned(),
            memory: row.memory.get(),
            increment: row.increment.get(),
        };
        let numbered = self.rows.iter().map(row).enumerate().filter(|(_, row)| row.hits > 0);
        numbered.map(|(index, row)| (self.first + index as u32, row)).collect()
    }

    /// Forgets everything added up so far.
    pub(crate) fn clear(&self) {
        for row in &self.rows {
            for total in [&row.hits, &row.ticks, &row.memory, &row.increment] {
                total.set(0);
            }
        }
        self.last_memory.store(0, Ordering::Relaxed);
    }

    #[inline]
    fn statement(&self, line: u32) -> u32 {
        let index = line.wrapping_sub(self.first) as usize;
        self.statements.get(index).copied().unwrap_or(line)
    }

    #[inline]
    fn row(&self, line: u32) -> Option<&Totals> {
        self.rows.get(line.wrapping_sub(self.first) as usize)
    }

    /// Adds time to the line that was running.
    #[inline]
    pub(crate) fn add_time(&self, line: u32, start: u64, now: u64) {
        let start = start.max(self.switch.since.load(Ordering::Relaxed));
        if let Some(row) = self.row(self.statement(line)) {
            row.ticks.add(now.saturating_sub(start).cast_signed(), self.switch.is_parallel);
        }
    }

    /// Counts a line that begins, unless it only continues a statement of several lines.
    #[inline]
    pub(crate) fn add_hit(&self, line: u32, previous: Option<u32>) {
        let statement = self.statement(line);
        if !self.statements.is_empty()
            && let Some(previous) = previous
            && self.statement(previous) == statement
            && (line != statement || previous != statement)
        {
            return;
        }
        if let Some(row) = self.row(statement) {
            row.hits.add(1, self.switch.is_parallel);
        }
    }

    /// Adds the growth of the process to the line that has ended.
    pub(crate) fn add_memory(&self, line: u32, memory: i64) {
        let increment = memory - self.last_memory.swap(memory, Ordering::Relaxed);
        if let Some(row) = self.row(line) {
            row.hits.add(1, self.switch.is_parallel);
            row.increment.add(increment, self.switch.is_parallel);
            row.memory.raise_to(memory);
        }
    }
}

/// A watched code object.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) tables: Vec<Arc<LineTable>>,
    /// The line it begins at.
    pub(crate) first_line: u32,
    /// How many running frames there are of it, on all threads. Those of threads that have ended stay: where it is not 0,
    /// there may be some.
    pub(crate) running: Total,
}

impl Watched {
    /// Whether a recorder of memory records it.
    #[inline]
    pub(crate) fn wants_memory(&self) -> bool {
        self.tables_of(Measure::Memory).next().is_some()
    }

    /// The tables of recorders that record, by what they measure.
    #[inline]
    pub(crate) fn tables_of(&self, measure: Measure) -> impl Iterator<Item = &LineTable> {
        let wanted = move |table: &&LineTable| {
            table.switch.on.load(Ordering::Relaxed) && table.switch.measure == measure
        };
        self.tables.iter().map(|table| &**table).filter(wanted)
    }
}

/// Addresses are spread well enough by one multiplication.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// All watched code objects, by address. Each is kept alive while it is here.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    codes: HashMap<usize, Arc<Watched>, BuildHasherDefault<AddressHasher>>,
    /// Changes when frames were lost from sight, so that threads forget those they remember.
    pub(crate) epoch: u64,
}

impl Registry {
    #[inline]
    pub(crate) fn find(&self, code: *mut Object) -> Option<&Arc<Watched>> {
        self.codes.get(&(code as usize))
    }

    /// Adds a table to a code object; true when the code object is new here.
    pub(crate) fn add(&mut self, code: *mut Object, first_line: u32, table: Arc<LineTable>) -> bool {
        let key = code as usize;
        let (mut tables, running, new) = match self.codes.get(&key) {
            Some(earlier) => (earlier.tables.clone(), earlier.running.get(), false),
            None => (Vec::new(), 0, true),
        };
        tables.push(table);
        // Running frames hold the old one until they notice; a new epoch makes them.
        self.epoch += u64::from(!new && running > 0);
        self.codes.insert(key, Arc::new(Watched { tables, first_line, running: Total::default() }));
        new
    }

    /// Removes the tables of a recorder; the code objects nobody watches any more.
    pub(crate) fn remove(&mut self, switch: &Arc<Switch>) -> Vec<*mut Object> {
        self.epoch += 1;
        let mut unwatched = Vec::new();
        let mut kept = Vec::new();
        for (&code, watched) in &self.codes {
            let rest: Vec<_> =
                watched.tables.iter().filter(|table| !Arc::ptr_eq(&table.switch, switch)).cloned().collect();
            if rest.is_empty() {
                unwatched.push(code as *mut Object);
            } else {
                let first_line = watched.first_line;
                kept.push((code, Arc::new(Watched { tables: rest, first_line, running: Total::default() })));
            }
        }
        self.codes = kept.into_iter().collect();
        unwatched
    }

    /// Makes all threads forget the frames they are in.
    pub(crate) fn forget_frames(&mut self) {
        self.epoch += 1;
    }
}

/// What is watched in this process; empty until the first function is added.
pub(crate) static REGISTRY: Shared<Option<Registry>> = Shared::new(None);
