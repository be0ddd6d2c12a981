//! `hotspan stats`: torch's operator table, and its sisters by shape, stack, module, thread and kernel.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::kernels::kernels;
use hotspan_analyze::table::{TableOptions, sort, table};
use hotspan_analyze::{GroupBy, KeyAverages, Table};
use hotspan_store::Trace;
use serde_json::{Value, json};

use crate::commands::stats_lines;
use crate::error::CommandError;
use crate::files;
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan stats trace.json.gz
  hotspan stats trace.json.gz --by shape --sort self_cpu_time_total --limit 20
  hotspan stats trace.json.gz --by kernel --markdown
  hotspan stats train.py.lprof        # line_profiler's report; --json for programs
  hotspan stats runs/ --json | jq '.[] | {rank, rows: .rows[:3]}'";

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// An operator, by name
    Op,
    /// An operator with the shapes of its inputs
    Shape,
    /// An operator with the Python stack it was called from
    Stack,
    /// An operator in an nn.Module
    Module,
    /// A kernel, copy or fill on the device
    Kernel,
    /// An operator on a thread
    Thread,
    /// A line of Python, as line_profiler and memory_profiler show them
    Line,
}

/// Show what the time was spent on: torch's key_averages table, in a blink
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What a row stands for
    #[arg(long, value_enum, default_value = "op")]
    by: By,
    /// Sort by this column, largest first; torch's names work (self_cuda_time_total …)
    #[arg(long, value_name = "KEY")]
    sort: Option<String>,
    /// Show at most this many rows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    /// With --by stack: how many stack entries tell rows apart
    #[arg(long, value_name = "N", default_value_t = 5)]
    stack_depth: usize,
    /// Add columns torch does not have: min, p50, p99, max, share of wall time, FLOP/s
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let Format { json, csv, markdown } = arguments.format;
    let mut objects = Vec::new();
    let result = files::for_each(&arguments.files, |path, trace, position| {
        if position.several && !json && !csv {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, trace))?;
        }
        // A file that knows nothing but lines is meant to show them.
        let by_line =
            arguments.by == By::Line || (arguments.by == By::Op && stats_lines::is_all_there_is(trace));
        if by_line && !json && !csv && !markdown {
            return Ok(output.write_all(stats_lines::text(trace).as_bytes())?);
        }
        let is_torch_table = matches!(arguments.by, By::Op | By::Shape | By::Stack);
        if is_torch_table && !json && !csv && !markdown {
            return Ok(output.write_all(torch_table(trace, arguments)?.as_bytes())?);
        }
        let report =
            if by_line { hotspan_analyze::lines::line_table(trace) } else { report(trace, arguments)? };
        let rank = trace.distributed().and_then(|distributed| distributed.rank);
        let file = path.display().to_string();
        if json {
            objects.push(json!({"file": file, "rank": rank, "rows": present::json_rows(&report)}));
            return Ok(());
        }
        let text = if csv {
            let prefix = [("file", file), ("rank", rank.map_or(String::new(), |rank| rank.to_string()))];
            present::csv(&report, if position.several { &prefix } else { &[] }, position.first)
        } else if markdown {
            present::markdown(&report)
        } else {
            present::text(&report)
        };
        Ok(output.write_all(text.as_bytes())?)
    });
    if json {
        writeln!(output, "{:#}", Value::Array(objects))?;
    }
    result
}

fn averages(trace: &Trace, arguments: &Arguments) -> KeyAverages {
    let group_by = GroupBy {
        input_shapes: arguments.by == By::Shape,
        stack_depth: if arguments.by == By::Stack { arguments.stack_depth } else { 0 },
        module: arguments.by == By::Module,
        thread: arguments.by == By::Thread,
        ..GroupBy::default()
    };
    KeyAverages::compute(trace, &group_by)
}

/// What rows are sorted by when nobody says.
fn sort_key<'a>(arguments: &'a Arguments, averages: &KeyAverages) -> &'a str {
    let has_device_time = averages.rows.iter().any(|row| row.self_device_time_total.0 > 0);
    let default = if has_device_time { "self_device_time_total" } else { "self_cpu_time_total" };
    arguments.sort.as_deref().unwrap_or(default)
}

fn torch_table(trace: &Trace, arguments: &Arguments) -> Result<String, CommandError> {
    let averages = averages(trace, arguments);
    let options = TableOptions {
        sort_by: Some(sort_key(arguments, &averages).to_owned()),
        row_limit: (arguments.limit > 0).then_some(arguments.limit),
        distribution: arguments.wide,
        wall_share: arguments.wide,
        flop_rate: arguments.wide,
        ..TableOptions::default()
    };
    Ok(present::printable(&table(&averages, &options)?))
}

fn report(trace: &Trace, arguments: &Arguments) -> Result<Table, CommandError> {
    let mut report = if arguments.by == By::Kernel {
        let mut report = kernels(trace).report();
        if let Some(key) = &arguments.sort {
            report.sort_by(key).map_err(|keys| {
                CommandError::Usage(format!("cannot sort by `{key}`; valid keys: {}", keys.join(", ")))
            })?;
        }
        report
    } else {
        let mut averages = averages(trace, arguments);
        let key = sort_key(arguments, &averages).to_owned();
        sort(&mut averages, &key)?;
        averages.report()
    };
    if arguments.limit > 0 {
        report.rows.truncate(arguments.limit);
    }
    Ok(report)
}
