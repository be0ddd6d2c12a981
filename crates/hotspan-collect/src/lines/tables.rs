//! What is added up: a row per line of a function, and which functions are watched.

use std::cell::{Cell, UnsafeCell};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use hashbrown::HashMap;

use super::recorder::Measure;
use crate::interpreter::Object;

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
    pub(crate) on: Cell<bool>,
    /// Nothing before this moment counts.
    pub(crate) since: Cell<u64>,
}

/// The lines of one function, for one recorder.
#[derive(Debug)]
pub(crate) struct LineTable {
    pub(crate) switch: Rc<Switch>,
    /// The line of the first row.
    first: u32,
    rows: UnsafeCell<Vec<Row>>,
    /// The first line of the statement that a line is part of, by row; empty when lines count as they are.
    statements: Vec<u32>,
    last_memory: Cell<i64>,
}

impl LineTable {
    pub(crate) fn new(switch: Rc<Switch>, first: u32, last: u32, statements: Vec<u32>) -> Self {
        let count = (last.saturating_sub(first) as usize).saturating_add(1);
        Self {
            switch,
            first,
            rows: UnsafeCell::new(vec![Row::default(); count]),
            statements,
            last_memory: Cell::new(0),
        }
    }

    /// The lines that were executed, in order.
    pub(crate) fn rows(&self) -> Vec<(u32, Row)> {
        // SAFETY: rows are reached with the GIL held only, and a callback that changes them calls no Python, so that it has
        // ended when this runs.
        let rows = unsafe { &*self.rows.get() };
        let numbered = rows.iter().enumerate().filter(|(_, row)| row.hits > 0);
        numbered.map(|(index, row)| (self.first + index as u32, *row)).collect()
    }

    /// Forgets everything added up so far.
    pub(crate) fn clear(&self) {
        // SAFETY: the same: no reference to the rows outlives the method that made it.
        unsafe { &mut *self.rows.get() }.fill(Row::default());
        self.last_memory.set(0);
    }

    #[inline]
    fn statement(&self, line: u32) -> u32 {
        let index = line.wrapping_sub(self.first) as usize;
        self.statements.get(index).copied().unwrap_or(line)
    }

    #[inline]
    fn with(&self, line: u32, change: impl FnOnce(&mut Row)) {
        let index = line.wrapping_sub(self.first) as usize;
        // SAFETY: the GIL is held and `change` does not call Python, so no one else has the rows.
        if let Some(row) = unsafe { &mut *self.rows.get() }.get_mut(index) {
            change(row);
        }
    }

    /// Adds time to the line that was running.
    #[inline]
    pub(crate) fn add_time(&self, line: u32, start: u64, now: u64) {
        let start = start.max(self.switch.since.get());
        let line = self.statement(line);
        self.with(line, |row| row.ticks += now.saturating_sub(start));
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
        self.with(statement, |row| row.hits += 1);
    }

    /// Adds the growth of the process to the line that has ended.
    pub(crate) fn add_memory(&self, line: u32, memory: i64) {
        let increment = memory - self.last_memory.replace(memory);
        self.with(line, |row| {
            row.hits += 1;
            row.increment += increment;
            row.memory = row.memory.max(memory);
        });
    }
}

/// A watched code object.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) tables: Vec<Rc<LineTable>>,
    /// The line it begins at.
    pub(crate) first_line: u32,
    /// How many running frames there are of it, on all threads.
    pub(crate) running: Cell<usize>,
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
        let wanted = move |table: &&LineTable| table.switch.on.get() && table.switch.measure == measure;
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
    codes: HashMap<usize, Rc<Watched>, BuildHasherDefault<AddressHasher>>,
    /// Changes when frames were lost from sight, so that threads forget those they remember.
    pub(crate) epoch: u64,
}

impl Registry {
    #[inline]
    pub(crate) fn find(&self, code: *mut Object) -> Option<&Rc<Watched>> {
        self.codes.get(&(code as usize))
    }

    /// Adds a table to a code object; true when the code object is new here.
    pub(crate) fn add(&mut self, code: *mut Object, first_line: u32, table: Rc<LineTable>) -> bool {
        let key = code as usize;
        let (mut tables, running, new) = match self.codes.get(&key) {
            Some(earlier) => (earlier.tables.clone(), earlier.running.get(), false),
            None => (Vec::new(), 0, true),
        };
        tables.push(table);
        // Running frames hold the old one until they notice; a new epoch makes them.
        self.epoch += u64::from(!new && running > 0);
        self.codes.insert(key, Rc::new(Watched { tables, first_line, running: Cell::new(0) }));
        new
    }

    /// Removes the tables of a recorder; the code objects nobody watches any more.
    pub(crate) fn remove(&mut self, switch: &Rc<Switch>) -> Vec<*mut Object> {
        self.epoch += 1;
        let mut unwatched = Vec::new();
        let mut kept = Vec::new();
        for (&code, watched) in &self.codes {
            let rest: Vec<_> =
                watched.tables.iter().filter(|table| !Rc::ptr_eq(&table.switch, switch)).cloned().collect();
            if rest.is_empty() {
                unwatched.push(code as *mut Object);
            } else {
                let first_line = watched.first_line;
                kept.push((code, Rc::new(Watched { tables: rest, first_line, running: Cell::new(0) })));
            }
        }
        self.codes = kept.into_iter().collect();
        unwatched
    }

    /// Makes all threads forget the frames they are in.
    pub(crate) fn forget_frames(&mut self) {
        self.epoch += 1;
        for watched in self.codes.values() {
            watched.running.set(0);
        }
    }
}

/// Something that only code which holds the GIL touches.
pub(crate) struct UnderGil<T>(UnsafeCell<T>);

// SAFETY: `get` demands the GIL, which is a lock around all uses and orders them. That holds for counts of references in `T`
// too: a thread that ends without the GIL leaves its own behind, see `Frames`.
unsafe impl<T> Sync for UnderGil<T> {}

impl<T> UnderGil<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// # Safety
    /// The GIL is held, and no other reference is alive: none is kept while Python is called.
    #[expect(clippy::mut_from_ref, reason = "the GIL is the lock")]
    pub(crate) unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}

/// What is watched in this process; empty until the first function is added.
pub(crate) static REGISTRY: UnderGil<Option<Registry>> = UnderGil::new(None);
