//! One walk over the events in order of time, adding each to its row and taking it from its parent's.

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringTable};

use crate::averages::key::{Key, Keys};
use crate::averages::{Average, DeviceKind, Distribution, GroupBy, KeyAverages, RecordScope};
use crate::model::Model;
use crate::model::events::Role;
use crate::model::launches::Launches;
use crate::model::memory_events::MemoryEventKind;
use crate::model::memory_use::Use;
use crate::model::nesting::Nesting;

const NO_ROW: u32 = u32::MAX;

pub(super) fn compute(model: &Model, group_by: &GroupBy) -> KeyAverages {
    compute_keeping_times(model, group_by).0
}

/// The time of every call, row by row, and the row of every span.
pub(super) struct Times {
    times: Vec<i64>,
    bounds: Vec<(usize, usize)>,
    row_of: Vec<u32>,
}

impl Times {
    pub(super) fn of_row(&self, row: usize) -> &[i64] {
        let (begin, end) = self.bounds.get(row).copied().unwrap_or_default();
        self.times.get(begin..end).unwrap_or_default()
    }

    /// The calls of a row, in the order of the file.
    pub(super) fn spans_of_row(&self, row: usize) -> Vec<SpanId> {
        let of_row = self.row_of.iter().enumerate().filter(|&(_, &known)| known as usize == row);
        of_row.map(|(index, _)| SpanId::at(index)).collect()
    }
}

pub(super) fn compute_keeping_times(model: &Model, group_by: &GroupBy) -> (KeyAverages, Times) {
    let (events, nesting, memory, flops) =
        (model.events(), model.merged_nesting(), model.memory_use(), model.flops());
    let use_device = DeviceKind::of(model);
    let mut rows = Rows {
        model,
        nesting,
        keys: Keys::new(model, group_by),
        by_key: HashMap::new(),
        rows: Vec::new(),
        device: use_device.unwrap_or(DeviceKind::Cuda),
        row_of: vec![NO_ROW; model.spans().len()],
    };

    let mut loose = memory.uncovered().iter().peekable();
    for &span in nesting.order() {
        let begin = model.spans().time(span);
        while let Some(&(_, track, used)) = loose.next_if(|(time, _, _)| *time < begin) {
            let key = rows.keys.plain(events.memory, track.0);
            rows.add_instant(key, used);
        }
        if nesting.is_merged(span) {
            continue;
        }
        if events.role(span) == Role::Python && !group_by.python_functions {
            rows.take_from_parent(span, memory.of_span(model, span));
            continue;
        }
        rows.add_span(span, flops.of_span(span));
    }
    for &(_, track, used) in loose {
        let key = rows.keys.plain(events.memory, track.0);
        rows.add_instant(key, used);
    }
    let failed = model.memory_events().iter().filter(|event| event.kind == MemoryEventKind::Failure);
    for event in failed {
        let key = rows.keys.plain(events.out_of_memory, event.track.0);
        rows.add_instant(key, event.used());
    }
    rows.add_device_time(model.launches());
    let times = rows.add_distributions();

    let metadata = model.metadata();
    let asked_for =
        |key: &str| metadata.get(key).is_some_and(|value| value.trim() == "1" || value.trim() == "true");
    let averages = KeyAverages {
        rows: rows.rows,
        use_device,
        profile_memory: asked_for("profile_memory") || memory.is_recorded(),
        with_flops: asked_for("with_flops"),
        wall_time: model.wall(),
        unattributed_device_spans: model.launches().unattributed(),
    };
    (averages, times)
}

struct Rows<'a> {
    model: &'a Model,
    nesting: &'a Nesting,
    keys: Keys<'a>,
    by_key: HashMap<Key, u32>,
    rows: Vec<Average>,
    device: DeviceKind,
    /// The row of each span.
    row_of: Vec<u32>,
}

impl Average {
    fn add_memory(&mut self, used: Use) {
        self.cpu_memory_usage += used.cpu;
        self.self_cpu_memory_usage += used.cpu;
        self.device_memory_usage += used.device;
        self.self_device_memory_usage += used.device;
    }
}

impl Rows<'_> {
    fn add_span(&mut self, span: SpanId, flops: u64) {
        let key = self.keys.of(span);
        let row = match self.by_key.get(&key) {
            Some(&row) => row,
            None => self.begin_row(key, Some(span)),
        };
        self.row_of[span.index()] = row;
        let (spans, memory) = (self.model.spans(), self.model.memory_use());
        let duration = spans.duration(span);
        let average = &mut self.rows[row as usize];
        average.count += 1;
        average.flops = average.flops.saturating_add(flops);
        if key.on_device {
            average.device_time_total += duration;
            average.self_device_time_total += duration;
            return;
        }
        let used = memory.of_span(self.model, span);
        average.cpu_time_total += duration;
        // Nobody is in a range that goes on by itself.
        if !self.model.events().is_async(span) {
            average.self_cpu_time_total += duration;
        }
        average.add_memory(used);
        self.take_from_parent(span, used);
    }

    /// What a call took is not its parent's own. That holds for Python functions too, whether they have rows or not:
    /// torch leaves their time out of the table.
    fn take_from_parent(&mut self, span: SpanId, used: Use) {
        let parent = self.nesting.parent(span).map_or(NO_ROW, |parent| self.row_of[parent.index()]);
        if let Some(parent) = self.rows.get_mut(parent as usize) {
            parent.self_cpu_time_total -= self.model.spans().duration(span);
            parent.self_cpu_memory_usage -= used.cpu;
            parent.self_device_memory_usage -= used.device;
        }
    }

    fn add_instant(&mut self, key: Key, used: Use) {
        let row = match self.by_key.get(&key) {
            Some(&row) => row,
            None => self.begin_row(key, None),
        };
        let average = &mut self.rows[row as usize];
        average.count += 1;
        average.add_memory(used);
    }

    /// Starts a row; `first` is its first event.
    fn begin_row(&mut self, key: Key, first: Option<SpanId>) -> u32 {
        let row = self.rows.len() as u32;
        self.by_key.insert(key, row);
        let names: &StringTable = &self.model.events().names;
        let thread = key.track.map(|track| {
            let track = &self.model.tracks()[track as usize];
            track.ident.display(self.model.strings())
        });
        let scope = |span| self.model.merged_scope(span);
        // Python functions are not rows unless asked for, so an operator called from one is at the top.
        let is_inside = |span| {
            let outwards =
                std::iter::successors(self.nesting.parent(span), |&outer| self.nesting.parent(outer));
            outwards.into_iter().any(|outer| self.row_of[outer.index()] != NO_ROW)
        };
        self.rows.push(Average {
            key: names.get(key.name.key).to_owned(),
            overload_name: names.get(key.name.overload).to_owned(),
            input_shapes: self.keys.shapes(key.shapes),
            stack: self.keys.stacks.as_ref().map_or(Vec::new(), |stacks| stacks.entries(key.stack).to_vec()),
            module: key.module.map(|module| self.model.str(module).to_owned()),
            thread,
            device_index: key.device,
            device: if key.on_device { self.device } else { DeviceKind::Cpu },
            scope: first.map_or(RecordScope::Function, scope),
            is_user_annotation: key.annotation,
            is_async: first.is_some_and(|span| self.model.events().is_async(span)),
            is_top_level: !first.is_some_and(is_inside),
            ..Average::default()
        });
        row
    }

    /// Adds kernels to the operators that launched them, and from those outwards.
    fn add_device_time(&mut self, launches: &Launches) {
        if launches.owners().is_empty() {
            return;
        }
        let spans = self.model.spans();
        let mut totals = vec![Duration::ZERO; spans.len()];
        for &(device, owner) in launches.owners() {
            let owner = if self.nesting.is_merged(owner) { self.nesting.parent(owner) } else { Some(owner) };
            let Some(owner) = owner else { continue };
            let duration = spans.duration(device);
            totals[owner.index()] += duration;
            if let Some(row) = self.rows.get_mut(self.row_of[owner.index()] as usize) {
                row.self_device_time_total += duration;
            }
        }
        // Children come after their parents in the order, so backwards every total is final when it is passed on.
        for &span in self.nesting.order().iter().rev() {
            let total = totals[span.index()];
            if total == Duration::ZERO || self.nesting.is_merged(span) {
                continue;
            }
            if let Some(row) = self.rows.get_mut(self.row_of[span.index()] as usize) {
                row.device_time_total += total;
            }
            if let Some(parent) = self.nesting.parent(span) {
                totals[parent.index()] += total;
            }
        }
    }

    fn add_distributions(&mut self) -> Times {
        // All durations, sorted by row, in one piece of memory.
        let mut begins = Vec::with_capacity(self.rows.len() + 1);
        let mut total = 0_usize;
        let mut counts = vec![0_usize; self.rows.len()];
        for &row in self.row_of.iter().filter(|&&row| row != NO_ROW) {
            counts[row as usize] += 1;
        }
        for count in counts {
            begins.push(total);
            total += count;
        }
        let mut times = vec![0_i64; total];
        let mut next = begins.clone();
        for span in self.model.spans().ids() {
            let row = self.row_of[span.index()];
            if row != NO_ROW {
                times[next[row as usize]] = self.model.spans().duration(span).0;
                next[row as usize] += 1;
            }
        }
        let bounds: Vec<(usize, usize)> = begins.into_iter().zip(next).collect();
        for (row, &(begin, end)) in self.rows.iter_mut().zip(&bounds) {
            row.calls = Distribution::of(&mut times[begin..end]);
        }
        Times { times, bounds, row_of: std::mem::take(&mut self.row_of) }
    }
}
