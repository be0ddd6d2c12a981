//! torch's `.table()`: the operator table as text, character for character.
//!
//! Columns, widths, units, truncation and footer are torch's. One thing is not: with stacks and FLOPs together, torch
//! prints the values of those two columns under each other's title; here they stand under their own. Columns that torch
//! does not have come only when asked for, after `# of Calls`; they are those of [`KeyAverages::schema`].

mod format;

use std::borrow::Cow;
use std::fmt::Write;

use hotspan_analyze::averages::{Average, DeviceKind, KeyAverages};
use hotspan_analyze::report::schema::SortError;
use hotspan_analyze::{Cell, Shown, Unit};
use hotspan_store::{Duration, visible};

use format::{FlopsScale, flops_scale, memory, shapes, share, shorten, time, trim_path};

/// The columns of `distribution`: what an average hides.
const DISTRIBUTION: [&str; 4] = ["min", "p50", "p99", "max"];

/// One unit for all times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

/// How the table looks; the default is torch's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// Sort by this column of [`KeyAverages::schema`], largest first. `None` keeps the order of the first events.
    pub sort_by: Option<String>,
    /// Show at most this many rows; `None` shows all.
    pub row_limit: Option<usize>,
    /// The widest that `Source Location` may be.
    pub max_src_column_width: Option<usize>,
    /// The widest that `Name` may be.
    pub max_name_column_width: Option<usize>,
    /// The widest that `Input Shapes` may be.
    pub max_shapes_column_width: Option<usize>,
    /// A line above the table.
    pub header: Option<String>,
    /// Leave out what is called by another row.
    pub top_level_events_only: bool,
    /// One unit for all times; `None` chooses for each.
    pub time_unit: Option<TimeUnit>,
    /// Show FLOPs; `None` when the recording asked for them.
    pub flops: Option<bool>,
    /// Columns of [`KeyAverages::schema`] to add, by their keys.
    pub extra: Vec<&'static str>,
    /// Add the floating point operations per second, which torch does not have.
    pub flop_rate: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            sort_by: None,
            row_limit: Some(100),
            max_src_column_width: Some(75),
            max_name_column_width: Some(55),
            max_shapes_column_width: Some(80),
            header: None,
            top_level_events_only: false,
            time_unit: None,
            flops: None,
            extra: Vec::new(),
            flop_rate: false,
        }
    }
}

impl TableOptions {
    /// The same with every column that torch does not have.
    #[must_use]
    pub fn wide(mut self) -> Self {
        self.extra = DISTRIBUTION.to_vec();
        self.extra.push("wall_percent");
        self.extra.extend(extra_columns());
        self.flop_rate = true;
        self
    }

    /// Adds a column that torch does not have, or the group of that name; returns whether there is one.
    pub fn add(&mut self, name: &str) -> bool {
        match name {
            "distribution" => self.extra.extend(DISTRIBUTION),
            "wall" => self.extra.push("wall_percent"),
            "flop_rate" => self.flop_rate = true,
            _ => {
                let found = extra_columns().into_iter().find(|&key| key == name);
                self.extra.extend(found);
                return found.is_some();
            }
        }
        true
    }
}

/// The columns that only wide tables have.
fn extra_columns() -> Vec<&'static str> {
    let declared = KeyAverages::default().report().declared.into_iter();
    declared.filter(|column| column.shown == Shown::Wide).map(|column| column.key).collect()
}

/// The table as text; empty when there are no rows.
///
/// # Errors
/// When there is no such column to sort by.
pub fn table(averages: &KeyAverages, options: &TableOptions) -> Result<String, SortError> {
    let averages = &with_visible_text(averages);
    let rows = averages.sorted(options.sort_by.as_deref())?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    Ok(TorchTable::new(averages, options, &rows).print(&rows))
}

/// The same rows with texts that are safe to show. torch prints them as they are; ordinary texts are the same.
fn with_visible_text(averages: &KeyAverages) -> Cow<'_, KeyAverages> {
    let is_hostile = |text: &String| matches!(visible(text), Cow::Owned(_));
    let has_hostile = |row: &Average| {
        is_hostile(&row.key) || is_hostile(&row.overload_name) || row.stack.iter().any(is_hostile)
    };
    if !averages.rows.iter().any(has_hostile) {
        return Cow::Borrowed(averages);
    }
    let mut averages = averages.clone();
    for row in &mut averages.rows {
        for text in [&mut row.key, &mut row.overload_name].into_iter().chain(&mut row.stack) {
            *text = visible(text).into_owned();
        }
    }
    Cow::Owned(averages)
}

const DEFAULT_WIDTH: usize = 12;
const SPACING: &str = "  ";

/// A column: its title, how wide it is and what a row shows in it.
struct Column<'a> {
    title: String,
    width: usize,
    left: bool,
    value: Box<dyn Fn(&'a Average) -> String + 'a>,
}

/// The columns as torch lays them out, and what stands below them.
struct TorchTable<'a> {
    options: &'a TableOptions,
    columns: Vec<Column<'a>>,
    /// The index of `Source Location` among the columns.
    source: Option<usize>,
    self_cpu: Duration,
    self_device: Duration,
    device: Option<&'static str>,
}

impl<'a> TorchTable<'a> {
    fn new(averages: &'a KeyAverages, options: &'a TableOptions, rows: &[&'a Average]) -> Self {
        let any = |test: &dyn Fn(&Average) -> bool| rows.iter().any(|row| test(row));
        let has_device_time = any(&|row| row.self_device_time_total.0 > 0);
        let has_device_memory = any(&|row| row.self_device_memory_usage.0 > 0);
        let device = averages.use_device.map(DeviceKind::title);
        let mut table = Self {
            options,
            columns: Vec::new(),
            source: None,
            self_cpu: averages.self_cpu_time_total(),
            self_device: averages.self_device_time_total(),
            device: has_device_time.then(|| device.unwrap_or("None")),
        };
        table.add_names(rows);
        table.add_cpu_times();
        if let Some(device) = table.device {
            table.add_device_times(device);
        }
        if averages.profile_memory {
            table.add("CPU Mem", |row| memory(row.cpu_memory_usage));
            table.add("Self CPU Mem", |row| memory(row.self_cpu_memory_usage));
            if let Some(device) = device.filter(|_| has_device_memory) {
                table.add(&format!("{device} Mem"), |row| memory(row.device_memory_usage));
                table.add(&format!("Self {device} Mem"), |row| memory(row.self_device_memory_usage));
            }
        }
        table.add("# of Calls", |row| row.count.to_string());
        table.add_extras(averages);
        table.add_shapes(rows);
        table.add_source(rows);
        let scale = flops_scale(rows.iter().map(|row| row.flops));
        if let Some(FlopsScale { factor, unit }) =
            scale.filter(|_| options.flops.unwrap_or(averages.with_flops))
        {
            table.add(&format!("Total {unit}"), move |row| match row.flops {
                0 => "--".to_owned(),
                flops => format!("{:8.3}", flops as f64 * factor),
            });
        }
        if options.flop_rate && rows.iter().any(|row| row.flops > 0) {
            table.add("GFLOP/s", |row| {
                row.flops_per_second().map_or_else(|| "--".to_owned(), |rate| format!("{:.3}", rate / 1e9))
            });
        }
        table
    }

    fn add(&mut self, title: &str, value: impl Fn(&'a Average) -> String + 'a) {
        self.add_wide(title, DEFAULT_WIDTH, false, value);
    }

    fn add_wide(
        &mut self,
        title: &str,
        width: usize,
        left: bool,
        value: impl Fn(&'a Average) -> String + 'a,
    ) {
        self.columns.push(Column { title: title.to_owned(), width, left, value: Box::new(value) });
    }

    fn add_time(&mut self, title: &str, micros: impl Fn(&'a Average) -> f64 + 'a) {
        let unit = self.options.time_unit;
        self.add(title, move |row| time(micros(row), unit));
    }

    fn add_names(&mut self, rows: &[&Average]) {
        let limit = self.options.max_name_column_width;
        let width = limited(rows.iter().map(|row| row.key.chars().count()), limit);
        self.add_wide("Name", width, false, move |row| shorten(&row.key, limit));
        if rows.iter().any(|row| !row.overload_name.is_empty()) {
            self.add_wide("Overload Name", width, false, move |row| shorten(&row.overload_name, limit));
        }
    }

    fn add_cpu_times(&mut self) {
        let whole = self.self_cpu;
        self.add("Self CPU %", move |row| share(row.self_cpu_time_total, whole));
        self.add_time("Self CPU", |row| row.self_cpu_time_total.as_micros());
        self.add("CPU total %", move |row| match row.is_async {
            true => "0".to_owned(),
            false => share(row.cpu_time_total, whole),
        });
        self.add_time("CPU total", |row| row.cpu_time_total.as_micros());
        self.add_time("CPU time avg", Average::cpu_time);
    }

    fn add_device_times(&mut self, device: &str) {
        let whole = self.self_device;
        self.add_time(&format!("Self {device}"), |row| row.self_device_time_total.as_micros());
        self.add(&format!("Self {device} %"), move |row| share(row.self_device_time_total, whole));
        self.add_time(&format!("{device} total"), |row| row.device_time_total.as_micros());
        self.add_time(&format!("{device} time avg"), Average::device_time);
    }

    fn add_extras(&mut self, averages: &'a KeyAverages) {
        let unit = self.options.time_unit;
        for column in averages.schema().into_columns() {
            if self.options.extra.contains(&column.column().key) {
                let (title, counts) = (column.column().title.clone(), column.column().unit);
                self.columns.push(Column {
                    title,
                    width: DEFAULT_WIDTH,
                    left: false,
                    value: Box::new(move |row| match column.cell(row) {
                        Cell::Duration(duration) => time(duration.as_micros(), unit),
                        Cell::Percent(percent) => format!("{percent:.2}%"),
                        Cell::Bytes(bytes) => memory(bytes),
                        Cell::Count(count) => count.to_string(),
                        Cell::Number(number) => format!("{number:.3}"),
                        Cell::Text(text) => visible(&text).into_owned(),
                        Cell::Missing if counts == Unit::Percent => "NaN".to_owned(),
                        Cell::Missing => "--".to_owned(),
                    }),
                });
            }
        }
    }

    fn add_shapes(&mut self, rows: &[&Average]) {
        if !rows.iter().any(|row| row.input_shapes.as_ref().is_some_and(|shapes| !shapes.is_empty())) {
            return;
        }
        let texts = rows.iter().map(|row| shapes(row).chars().count());
        let width = limited(texts, self.options.max_shapes_column_width);
        self.add_wide("Input Shapes", width, false, move |row| shapes(row).chars().take(width).collect());
    }

    fn add_source(&mut self, rows: &[&Average]) {
        let entries = rows.iter().flat_map(|row| &row.stack).map(|entry| entry.chars().count());
        if entries.clone().next().is_none() {
            return;
        }
        let width = limited(entries, self.options.max_src_column_width);
        self.source = Some(self.columns.len());
        self.add_wide("Source Location", width, true, move |row| {
            row.stack.first().map_or_else(String::new, |entry| trim_path(entry, width))
        });
    }

    fn print(&self, rows: &[&'a Average]) -> String {
        let mut text = String::new();
        let spaces = SPACING.len() * (self.columns.len() - 1);
        let line_length = self.columns.iter().map(|column| column.width).sum::<usize>() + spaces;
        let notes = [
            self.options.header.as_deref(),
            self.options.top_level_events_only.then_some("This report only display top-level ops statistics"),
        ];
        for note in notes.into_iter().flatten() {
            let _ = writeln!(text, "{}\n{note}", "=".repeat(line_length));
        }
        self.separator(&mut text);
        self.line(&mut text, |_, column| column.title.clone());
        self.separator(&mut text);
        let shown = rows.iter().filter(|row| row.is_top_level || !self.options.top_level_events_only);
        for row in shown.take(self.options.row_limit.unwrap_or(usize::MAX)) {
            self.line(&mut text, |_, column| (column.value)(row));
            if let Some(source) = self.source {
                let width = self.columns[source].width;
                for entry in row.stack.iter().skip(1) {
                    let entry = trim_path(entry, width);
                    self.line(
                        &mut text,
                        |index, _| if index == source { entry.clone() } else { String::new() },
                    );
                }
                self.line(&mut text, |_, _| String::new());
            }
        }
        self.separator(&mut text);
        let unit = self.options.time_unit;
        let _ = writeln!(text, "Self CPU time total: {}", time(self.self_cpu.as_micros(), unit));
        if let Some(device) = self.device {
            let _ = writeln!(text, "Self {device} time total: {}", time(self.self_device.as_micros(), unit));
        }
        text
    }

    fn separator(&self, text: &mut String) {
        for column in &self.columns {
            text.push_str(&"-".repeat(column.width));
            text.push_str(SPACING);
        }
        text.push('\n');
    }

    fn line(&self, text: &mut String, value: impl Fn(usize, &Column<'a>) -> String) {
        for (index, column) in self.columns.iter().enumerate() {
            let (value, width) = (value(index, column), column.width);
            let _ = if column.left {
                write!(text, "{value:<width$}{SPACING}")
            } else {
                write!(text, "{value:>width$}{SPACING}")
            };
        }
        text.push('\n');
    }
}

/// The widest text and four more, but not beyond the limit.
fn limited(lengths: impl Iterator<Item = usize>, limit: Option<usize>) -> usize {
    let width = lengths.max().unwrap_or(0) + 4;
    limit.map_or(width, |limit| width.min(limit))
}

/// A time as tables show it: `1.500ms`.
#[must_use]
pub fn time_text(time: Duration) -> String {
    microseconds_text(time.as_micros())
}

/// Microseconds likewise.
#[must_use]
pub fn microseconds_text(time: f64) -> String {
    format::time(time, None)
}
