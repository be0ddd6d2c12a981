//! The `LineRecorder`: which functions are watched, when, and what came of it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hashbrown::HashMap;
use hotspan_store::{Bytes, Duration, FrameKind, FrameRow, LineRow, TraceBuilder};

use super::active;
use super::quiet::quiet_ticks;
use super::tables::{LineTable, REGISTRY, Registry, Row, Switch};
use crate::clock::{self, ClockStart, Ticks};
use crate::interpreter::{Interpreter, Object};
use crate::locks::lock;

/// How many recorders record.
static ENABLED: AtomicUsize = AtomicUsize::new(0);

/// Whether any recorder records.
pub(crate) fn any_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed) > 0
}

/// What is measured on each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Hits and time.
    Time,
    /// The memory of the process.
    Memory,
}

/// A function to watch.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, with its class.
    pub name: String,
    /// Its source file.
    pub file: String,
    /// The line it begins at, decorators included.
    pub first_line: u32,
    /// Its last line.
    pub last_line: u32,
    /// For each line from the first on, the line its statement begins at; empty: lines count as they are.
    pub statements: Vec<u32>,
}

/// Records the lines of chosen functions.
#[derive(Debug)]
pub struct LineRecorder {
    switch: Arc<Switch>,
    functions: Mutex<Vec<(Function, Arc<LineTable>)>>,
    started: ClockStart,
}

impl LineRecorder {
    /// A recorder that watches nothing yet, and does not record.
    #[must_use]
    pub fn new(measure: Measure) -> Self {
        if measure == Measure::Memory {
            // Measured now, so that it is not in the middle of the program.
            quiet_ticks();
        }
        let switch = Arc::new(Switch {
            measure,
            is_parallel: Interpreter::get().is_some_and(|python| python.is_parallel),
            on: AtomicBool::new(false),
            since: AtomicU64::new(0),
        });
        Self { switch, functions: Mutex::default(), started: ClockStart::measure() }
    }

    /// Watches a function: its own code object, and others whose lines count as its own; each with its first line.
    ///
    /// # Safety
    /// The GIL is held; `codes` are code objects.
    pub unsafe fn add(&self, function: Function, codes: &[(*mut Object, u32)]) {
        let Some(python) = Interpreter::get() else { return };
        let (first, last) = (function.first_line, function.last_line.max(function.first_line));
        let table = LineTable::new(Arc::clone(&self.switch), first, last, function.statements.clone());
        let table = Arc::new(table);
        for &(code, first_line) in codes {
            // SAFETY: the caller's promise; what is done with the registry calls no Python.
            let added = unsafe {
                REGISTRY.write(python.is_parallel, |registry| {
                    registry.get_or_insert_with(Registry::default).add(code, first_line, Arc::clone(&table))
                })
            };
            if added == Some(true) {
                // SAFETY: `code` is alive; it stays so while it is watched.
                unsafe { (python.inc_ref)(code) };
            }
        }
        lock(&self.functions).push((function, table));
    }

    /// Begins or goes on to record.
    pub fn enable(&self) {
        self.switch.since.store(clock::now().0, Ordering::Relaxed);
        if !self.switch.on.swap(true, Ordering::Relaxed) {
            ENABLED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pauses.
    pub fn disable(&self) {
        if self.switch.on.swap(false, Ordering::Relaxed) {
            ENABLED.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether it records.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.switch.on.load(Ordering::Relaxed)
    }

    /// The code objects that it records on this thread at the moment, outermost first, each with its line.
    ///
    /// # Safety
    /// The GIL is held.
    #[must_use]
    pub unsafe fn running_lines(&self) -> Vec<(*mut Object, u32)> {
        if !self.is_enabled() {
            return Vec::new();
        }
        // SAFETY: the caller's promise.
        unsafe { active::running(&self.switch) }
    }

    /// The interpreter has stopped telling about frames: those that were running are forgotten.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn forget_frames(&self) {
        // SAFETY: the caller's promise; what is done with the registry calls no Python.
        unsafe {
            REGISTRY.write(self.switch.is_parallel, |registry| {
                if let Some(registry) = registry {
                    registry.forget_frames();
                }
            })
        };
    }

    /// Forgets what was recorded.
    pub fn clear(&self) {
        for (_, table) in lock(&self.functions).iter() {
            table.clear();
        }
    }

    /// What was recorded, as rows of a trace. A function that never ran has one row without hits.
    #[must_use]
    pub fn to_builder(&self) -> TraceBuilder {
        let calibration = self.started.finish();
        let origin = calibration.unix(Ticks(0)).0;
        let nanos = |ticks: u64| calibration.unix(Ticks(ticks)).0 - origin;
        let mut builder = TraceBuilder::new();
        builder.source.format = "hotspan lines".to_owned();
        for (function, rows) in self.merged() {
            let row = FrameRow {
                name: builder.intern(&function.name),
                file: builder.intern(&function.file),
                line: 0,
                first_line: function.first_line,
                kind: FrameKind::Python,
            };
            let frame = builder.frame(row);
            let rows = if rows.is_empty() { vec![(function.first_line, Row::default())] } else { rows };
            for (line, row) in rows {
                builder.push_line(LineRow {
                    function: frame,
                    line,
                    hits: row.hits,
                    time: Duration(nanos(row.ticks)),
                    memory: Bytes(row.memory),
                    increment: Bytes(row.increment),
                });
            }
        }
        builder
    }

    /// Functions in the order they were added; those of the same name, file and line are one.
    fn merged(&self) -> Vec<(Function, Vec<(u32, Row)>)> {
        let functions = lock(&self.functions);
        let mut indices: HashMap<(&str, u32, &str), usize> = HashMap::new();
        let mut merged: Vec<(Function, Vec<(u32, Row)>)> = Vec::new();
        for (function, table) in functions.iter() {
            let key = (function.file.as_str(), function.first_line, function.name.as_str());
            let rows = table.rows();
            let Some(&index) = indices.get(&key) else {
                indices.insert(key, merged.len());
                merged.push((function.clone(), rows));
                continue;
            };
            let lines = &mut merged[index].1;
            for (line, row) in rows {
                match lines.binary_search_by_key(&line, |(line, _)| *line) {
                    Ok(at) => {
                        let sum = &mut lines[at].1;
                        sum.hits += row.hits;
                        sum.ticks += row.ticks;
                        sum.memory = sum.memory.max(row.memory);
                        sum.increment += row.increment;
                    }
                    Err(at) => lines.insert(at, (line, row)),
                }
            }
        }
        merged
    }

    /// Stops watching; the code objects that nobody watches any more, each with a reference that the caller gives back.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn close(&self) -> Vec<*mut Object> {
        self.disable();
        // SAFETY: the caller's promise; what is done with the registry calls no Python.
        let removed = unsafe {
            REGISTRY.write(self.switch.is_parallel, |registry| {
                registry.as_mut().map(|registry| registry.remove(&self.switch))
            })
        };
        removed.flatten().unwrap_or_default()
    }
}
