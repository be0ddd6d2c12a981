//! The operator table, and its sisters by shape, stack, module and thread. Kernels, copies and what devices did in marked ranges are
//! no rows of them: their time stands beside the operators that launched them, and they have reports of their own. torch's text,
//! which lists all in one table, is made of [`KeyAverages`] itself.

use hotspan_store::Duration;

use super::{Report, SHAPES, TORCH};
use crate::model::Model;
use crate::averages::{Average, DeviceKind, GroupBy, KeyAverages};
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::{ReportOptions, Schema, SortError, share};

pub(super) const REPORTS: &[Report] = &[
    Report {
        id: "operators",
        by: Some(("op", "An operator, by name")),
        record: TORCH,
        tables: |model, options| tables(model, options, &GroupBy::default()),
    },
    Report {
        id: "shapes",
        by: Some(("shape", "An operator with the shapes of its inputs")),
        record: SHAPES,
        tables: |model, options| tables(model, options, &GroupBy { input_shapes: true, ..GroupBy::default() }),
    },
    Report {
        id: "stacks",
        by: Some(("stack", "An operator with the Python stack it was called from")),
        record: SHAPES,
        tables: |model, options| tables(model, options, &by_stack(options)),
    },
    Report {
        id: "modules",
        by: Some(("module", "An operator in an nn.Module")),
        record: SHAPES,
        tables: |model, options| tables(model, options, &GroupBy { module: true, ..GroupBy::default() }),
    },
    Report {
        id: "threads",
        by: Some(("thread", "An operator on a thread")),
        record: TORCH,
        tables: |model, options| tables(model, options, &GroupBy { thread: true, ..GroupBy::default() }),
    },
];

/// What tells the rows of the report by stack apart.
#[must_use]
pub fn by_stack(options: &ReportOptions) -> GroupBy {
    GroupBy { stack_depth: options.stack_depth.unwrap_or(5), ..GroupBy::default() }
}

fn tables(model: &Model, options: &ReportOptions, group_by: &GroupBy) -> Result<Vec<Table>, SortError> {
    let averages = KeyAverages::compute(model, group_by);
    let sort = options.sort.as_deref().map(device_key);
    let called = averages.rows.iter().filter(|row| row.device == DeviceKind::Cpu);
    let schema = averages.schema().door(|row| Some(row.door(group_by)));
    let table = schema.show(called, &ReportOptions { sort, ..options.clone() });
    Ok(vec![table.map_err(|error| as_asked(error, options.sort.as_deref()))?])
}

/// `cuda`, `xpu` and `privateuse1` in a key mean `device`.
fn device_key(key: &str) -> String {
    ["cuda", "xpu", "privateuse1"].iter().fold(key.to_owned(), |key, name| key.replace(name, "device"))
}

fn as_asked(error: SortError, key: Option<&str>) -> SortError {
    SortError { key: key.map_or(error.key, str::to_owned), ..error }
}

/// The kind of doors to rows of the operator table.
pub(crate) const OPERATOR: &str = "operator";

/// The door to a row that is told from others by its name alone.
pub(crate) fn operator_door(name: &str, device: DeviceKind, is_annotation: bool) -> Door {
    let door = Door::new(OPERATOR).with("name", name).with("device", device.title());
    door.with_any("annotation", is_annotation.then_some("1"))
}

impl Average {
    /// The door to a row of a table that is grouped so.
    #[must_use]
    pub fn door(&self, group_by: &GroupBy) -> Door {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        operator_door(&self.key, self.device, self.is_user_annotation)
            .with_any("shapes", group_by.input_shapes.then(|| format!("{:?}", self.input_shapes)))
            .with_any("stack", (group_by.stack_depth > 0).then(|| self.stack.join("; ")))
            .with_any("module", group_by.module.then(|| text(&self.module)))
            .with_any("thread", group_by.thread.then(|| text(&self.thread)))
    }
}

/// How the table is grouped that has a row with this door.
pub(crate) fn grouped_by(door: &Door) -> GroupBy {
    let has = |name: &str| door.get(name).is_some();
    let by_stack = if has("stack") { by_stack(&ReportOptions::default()) } else { GroupBy::default() };
    GroupBy { input_shapes: has("shapes"), module: has("module"), thread: has("thread"), ..by_stack }
}

impl KeyAverages {
    /// What rows are sorted by when nobody says.
    #[must_use]
    pub fn default_sort(&self) -> &'static str {
        let has_device_time = self.rows.iter().any(|row| row.self_device_time_total.0 > 0);
        if has_device_time { "self_device_time_total" } else { "self_cpu_time_total" }
    }

    /// The rows, largest first by a column; `cuda`, `xpu` and `privateuse1` in a key mean `device`. Without a key they keep their order.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn sorted(&self, key: Option<&str>) -> Result<Vec<&Average>, SortError> {
        let mut rows: Vec<&Average> = self.rows.iter().collect();
        if let Some(key) = key {
            let sorted = self.schema().sort(&mut rows, &device_key(key));
            sorted.map_err(|error| as_asked(error, Some(key)))?;
        }
        Ok(rows)
    }

    /// The rows in their order, as a table.
    #[must_use]
    pub fn report(&self) -> Table {
        self.schema().table(&self.rows)
    }

    /// The columns of the operator table.
    #[must_use]
    pub fn schema(&self) -> Schema<'_, Average> {
        let device = self.use_device.map_or("Device", DeviceKind::title);
        let any = |test: fn(&Average) -> bool| self.rows.iter().any(test);
        let with_device = any(|row| row.self_device_time_total.0 > 0);
        let with_device_memory = any(|row| row.self_device_memory_usage.0 != 0);
        let with_shapes = any(|row| row.input_shapes.as_ref().is_some_and(|shapes| !shapes.is_empty()));
        let (cpu_sum, device_sum) = (self.self_cpu_time_total(), self.self_device_time_total());
        Schema::<Average>::new("operators", "Operators")
            .text("name", "Name", |row| &row.key)
            .help("The operator, kernel or marked range.")
            .sorted_as("key")
            .text("overload_name", "Overload Name", |row| &row.overload_name)
            .help("Which overload of the operator was called.")
            .when(any(|row| !row.overload_name.is_empty()))
            .text("device", "Device", |row| row.device.title())
            .help("Where the row's own time is spent: on the CPU, or on this kind of device.")
            .index("device_index", "Device Index", |row| row.device_index.map(|index| index.to_string()))
            .help("The number of the device.")
            .if_any()
            .text("thread", "Thread", |row| row.thread.as_deref())
            .help("The thread or stream that it ran on.")
            .if_any()
            .percent("self_cpu_percent", "Self CPU %", move |row| share(row.self_cpu_time_total, cpu_sum))
            .help("Self CPU as a share of that of all rows.")
            .duration("self_cpu_time_total", "Self CPU", |row| row.self_cpu_time_total)
            .help("Time on the processor, without what it called.")
            .duration("cpu_time_total", "CPU total", |row| row.cpu_time_total)
            .help("Time on the processor, with all it called.")
            .duration("cpu_time", "CPU time avg", |row| per_call(row.cpu_time_total, row))
            .help("Time on the processor per call, with all it called.")
            .compared_by(|left, right| left.cpu_time().total_cmp(&right.cpu_time()))
            .hidden()
            .duration("self_cpu_time", "Self CPU avg", |row| per_call(row.self_cpu_time_total, row))
            .help("Time on the processor per call, without what it called.")
            .wide()
            .duration("self_device_time_total", format!("Self {device}"), |row| row.self_device_time_total)
            .help("Time of the kernels it launched itself.")
            .when(with_device)
            .percent("self_device_percent", format!("Self {device} %"), move |row| {
                // What a device did in a marked range is counted in the kernels there.
                let is_range = row.is_user_annotation && row.device != DeviceKind::Cpu;
                share(row.self_device_time_total, device_sum).filter(|_| !is_range)
            })
            .help("Time of the kernels it launched itself, as a share of that of all kernels.")
            .when(with_device)
            .duration("device_time_total", format!("{device} total"), |row| row.device_time_total)
            .help("Time of the kernels that it and all it called launched.")
            .when(with_device)
            .duration("device_time", format!("{device} time avg"), |row| per_call(row.device_time_total, row))
            .help("Time of the kernels that it and all it called launched, per call.")
            .compared_by(|left, right| left.device_time().total_cmp(&right.device_time()))
            .hidden()
            .bytes("cpu_memory_usage", "CPU Mem", |row| row.cpu_memory_usage)
            .help("Memory of the computer that was allocated less that released, with all it called.")
            .when(self.profile_memory)
            .bytes("self_cpu_memory_usage", "Self CPU Mem", |row| row.self_cpu_memory_usage)
            .help("Memory of the computer that was allocated less that released, without what it called.")
            .when(self.profile_memory)
            .bytes("device_memory_usage", format!("{device} Mem"), |row| row.device_memory_usage)
            .help("Memory of the device that was allocated less that released, with all it called.")
            .when(with_device_memory)
            .bytes("self_device_memory_usage", format!("Self {device} Mem"), |row| row.self_device_memory_usage)
            .help("Memory of the device that was allocated less that released, without what it called.")
            .when(with_device_memory)
            .count("count", "# of Calls", |row| row.count)
            .help("How many times it was called.")
            .duration("min", "Min", |row| row.calls.min)
            .help("The shortest call.")
            .duration("p50", "p50", |row| row.calls.p50)
            .help("The median call.")
            .duration("p99", "p99", |row| row.calls.p99)
            .help("99 of 100 calls took at most as long.")
            .duration("max", "Max", |row| row.calls.max)
            .help("The longest call.")
            .percent("wall_percent", "Wall %", |row| share(row.own_time_total(), self.wall_time))
            .help("Its calls as a share of the time from the first event to the last; threads may add up to more than 100 %.")
            .sorted_as("wall")
            .compared_by(|left, right| left.own_time_total().cmp(&right.own_time_total()))
            .count("flops", "FLOPs", |row| (row.flops > 0).then_some(row.flops))
            .help("Floating point operations, from formulas for the shapes of the inputs.")
            .if_any()
            .number("flops_per_second", "FLOP/s", Average::flops_per_second)
            .help("Floating point operations per second of device time, or of CPU time where no device did them.")
            .when(any(|row| row.flops > 0))
            .text("input_shapes", "Input Shapes", |row| row.input_shapes.as_ref().map(|shapes| format!("{shapes:?}")))
            .help("The dimensions of each input; empty for what is no tensor.")
            .compared_by(|left, right| left.input_shapes.cmp(&right.input_shapes))
            .when(with_shapes)
            .text("module", "Module", |row| row.module.as_deref())
            .help("The nn.Module in which it was called.")
            .if_any()
            .text("stack", "Source Location", |row| row.stack.join("; "))
            .help("The Python functions it was called from, innermost first.")
            .compared_by(|left, right| left.stack.cmp(&right.stack))
            .when(any(|row| !row.stack.is_empty()))
            .count("scope", "Scope", |row| row.scope as u64)
            .help("Where the first of its events comes from: 0 a function, 1 the backward pass, 2 a marked range.")
            .hidden()
            .sorted_by(self.default_sort())
    }
}

fn per_call(time: Duration, row: &Average) -> Option<Duration> {
    i64::try_from(row.count).ok().filter(|&count| count > 0).map(|count| Duration(time.0 / count))
}
