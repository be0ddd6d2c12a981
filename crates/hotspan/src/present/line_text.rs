//! The texts of line_profiler and memory_profiler, character for character. Source text comes from the caller.

mod block;
mod number;

use std::fmt::Write;

use hotspan_analyze::lines::{LineFunction, line_functions};
use hotspan_store::{LineRow, Trace, visible};

use block::block_length;
use number::general;

/// Gives the text of a source file, or nothing when there is none.
type Source<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What `line_report` shows; the names are line_profiler's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineReportOptions {
    /// The unit of the times shown, in seconds.
    pub unit: f64,
    /// Leave functions out that never ran.
    pub skip_zero: bool,
    /// The function that took longest comes last.
    pub sort: bool,
    /// Show the lines of each function.
    pub details: bool,
    /// Show the time of each function, after all lines.
    pub summarize: bool,
    /// Begin with the unit of the times.
    pub heading: bool,
    /// How wide the columns are at least.
    pub widths: LineReportWidths,
}

/// How wide the columns of `line_report` are at least, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineReportWidths {
    /// The number of the line.
    pub line: usize,
    /// How often it was executed.
    pub hits: usize,
    /// How long it took in all.
    pub time: usize,
    /// How long it took each time.
    pub per_hit: usize,
    /// Its share of the time of the function.
    pub percent: usize,
}

impl Default for LineReportWidths {
    fn default() -> Self {
        Self { line: 6, hits: 9, time: 12, per_hit: 8, percent: 8 }
    }
}

impl Default for LineReportOptions {
    fn default() -> Self {
        Self {
            unit: 1e-9,
            skip_zero: false,
            sort: false,
            details: true,
            summarize: false,
            heading: true,
            widths: LineReportWidths::default(),
        }
    }
}

const NANOSECOND: f64 = 1e-9;

/// The report that `kernprof -l -v` and `python -m line_profiler` print.
#[must_use]
pub fn line_report(trace: &Trace, options: &LineReportOptions, source: Source<'_>) -> String {
    let mut functions = line_functions(trace);
    functions.retain(|function| !function.has_memory());
    line_function_report(functions, options, source)
}

/// The same report of functions that come from no trace.
#[must_use]
pub fn line_function_report(
    mut functions: Vec<LineFunction>,
    options: &LineReportOptions,
    source: Source<'_>,
) -> String {
    if options.sort {
        functions.sort_by_key(LineFunction::time);
    }
    let mut text = String::new();
    if options.heading {
        let _ = write!(text, "Timer unit: {} s\n\n", general(options.unit, 6));
    }
    if options.details {
        for function in &functions {
            if !(options.skip_zero && function.lines.is_empty()) {
                show_function(&mut text, function, options, source);
            }
        }
    }
    if options.summarize {
        for function in &functions {
            let seconds = function.time().0 as f64 * NANOSECOND;
            if !options.skip_zero || seconds != 0.0 {
                let (file, name) = (visible(&function.file), visible(&function.name));
                let _ = writeln!(text, "{seconds:6.2} seconds - {file}:{} - {name}", function.first_line);
            }
        }
    }
    text
}

/// More empty lines than this are not shown between those that ran.
const MOST_EMPTY_LINES: u32 = 10_000;

/// The lines of a function's source as shown, with their numbers and without their ends.
fn source_lines(function: &LineFunction, source: Source<'_>) -> Option<Vec<(u32, String)>> {
    let text = source(&function.file)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let from = (function.first_line.max(1) as usize - 1).min(lines.len());
    let lines = &lines[from..];
    let shown = lines[..block_length(lines)].iter();
    let shown = shown.map(|line| visible_source(line.trim_end_matches('\n').trim_end_matches('\r')));
    Some((function.first_line..).zip(shown).collect())
}

/// A line of source text. Tabs stay, as line_profiler leaves them: they indent.
fn visible_source(line: &str) -> String {
    line.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// What is shown without the source: the lines that ran and, unless that would be absurd, those between them.
fn empty_lines(function: &LineFunction) -> Vec<(u32, String)> {
    let first = function.first_line;
    let last = function.lines.last().map_or(first, |row| row.line.max(first));
    if last - first > MOST_EMPTY_LINES {
        return function.lines.iter().map(|row| (row.line, String::new())).collect();
    }
    (first..=last).map(|line| (line, String::new())).collect()
}

fn show_function(
    text: &mut String,
    function: &LineFunction,
    options: &LineReportOptions,
    source: Source<'_>,
) {
    let LineReportWidths { line: number, percent: share, .. } = options.widths;
    let LineFunction { file, first_line, name, lines } = function;
    let (file, name) = (visible(file), visible(name));
    let total = function.time().0 as f64;
    let _ = writeln!(text, "Total time: {} s", general(total * NANOSECOND, 6));
    let contents = if let Some(contents) = source_lines(function, source) {
        let _ = writeln!(text, "File: {file}\nFunction: {name} at line {first_line}");
        contents
    } else {
        let _ = writeln!(text, "\nCould not find file {file}");
        text.push_str("Are you sure you are running this program from the same directory\n");
        text.push_str("that you ran the profiler from?\nContinuing without the function's contents.\n");
        empty_lines(function)
    };
    let display: Vec<Shown> = lines.iter().map(|row| Shown::of(row, options, total)).collect();
    let width = |least: usize, part: fn(&Shown) -> &String| {
        display.iter().map(|shown| part(shown).len()).max().unwrap_or(0).max(least)
    };
    let hits = width(options.widths.hits, |shown| &shown.hits);
    let time = width(options.widths.time, |shown| &shown.time);
    let per_hit = width(options.widths.per_hit, |shown| &shown.per_hit);
    let heading = format!(
        "{:>number$} {:>hits$} {:>time$} {:>per_hit$} {:>share$}  Line Contents",
        "Line #", "Hits", "Time", "Per Hit", "% Time"
    );
    let _ = writeln!(text, "\n{heading}\n{}", "=".repeat(heading.len()));
    let mut row = |line: u32, shown: [&str; 4], contents: &str| {
        let [nhits, ntime, nper_hit, percent] = shown;
        let _ = writeln!(
            text,
            "{line:>number$} {nhits:>hits$} {ntime:>time$} {nper_hit:>per_hit$} {percent:>share$}  {contents}"
        );
    };
    for &(line, ref contents) in &contents {
        match lines.binary_search_by_key(&line, |row| row.line) {
            Ok(at) => row(line, display[at].parts(), contents),
            Err(_) => row(line, [""; 4], contents),
        }
    }
    text.push('\n');
}

/// The numbers of a line as they are shown.
struct Shown {
    hits: String,
    time: String,
    per_hit: String,
    percent: String,
}

impl Shown {
    fn of(row: &LineRow, options: &LineReportOptions, total: f64) -> Self {
        let widths = options.widths;
        let time = row.time.0 as f64;
        let scaled = time * (NANOSECOND / options.unit);
        let number = |value: f64, room: usize| {
            let fixed = format!("{value:5.1}");
            if fixed.len() > room { format!("{:>5}", general(value, 3)) } else { fixed }
        };
        let hits = row.hits.to_string();
        Self {
            hits: if hits.len() > widths.hits { general(row.hits as f64, 6) } else { hits },
            time: number(scaled, widths.time),
            per_hit: number(scaled / row.hits.max(1) as f64, widths.per_hit),
            percent: if total == 0.0 { String::new() } else { format!("{:5.1}", 100.0 * time / total) },
        }
    }

    fn parts(&self) -> [&str; 4] {
        [&self.hits, &self.time, &self.per_hit, &self.percent]
    }
}

const MEBIBYTE: f64 = 1_048_576.0;

/// The report that `python -m memory_profiler` prints.
#[must_use]
pub fn memory_report(trace: &Trace, precision: usize, source: Source<'_>) -> String {
    let mut text = String::new();
    let precision = precision.min(12);
    for function in line_functions(trace) {
        if !function.has_memory() {
            continue;
        }
        let heading = format!(
            "{:>6} {:>12} {:>12}  {:>10}   {}",
            "Line #", "Mem usage", "Increment", "Occurrences", "Line Contents"
        );
        let _ = writeln!(
            text,
            "Filename: {}\n\n{heading}\n{}",
            visible(&function.file),
            "=".repeat(heading.len())
        );
        let amount =
            |bytes: i64| format!("{:width$.precision$} MiB", bytes as f64 / MEBIBYTE, width = precision + 4);
        let contents = source_lines(&function, source).unwrap_or_else(|| empty_lines(&function));
        for &(line, ref contents) in &contents {
            let found = function.lines.binary_search_by_key(&line, |row| row.line);
            let [memory, increment, occurrences] = match found.map(|at| function.lines[at]) {
                Ok(row) => [amount(row.memory.0), amount(row.increment.0), row.hits.to_string()],
                Err(_) => Default::default(),
            };
            let _ = writeln!(text, "{line:>6} {memory:>12} {increment:>12}  {occurrences:>10}   {contents}");
        }
        text.push_str("\n\n");
    }
    text
}
