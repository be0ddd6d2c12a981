//! `hotspan stats`: torch's operator table, and its sisters by shape, stack, module and thread; kernels, copies and
//! streams; functions.

mod functions;

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::Model;
use hotspan_analyze::copies::{copies, copy_table};
use hotspan_analyze::kernels::kernels;
use hotspan_analyze::streams::{stream_table, streams};
use hotspan_analyze::table::{TableOptions, sort, table};
use hotspan_analyze::{GroupBy, KeyAverages, Table};
use serde_json::{Value, json};

use crate::commands::stats_lines;
use crate::error::CommandError;
use crate::files;
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan stats model.json.gz
  hotspan stats model.json.gz --by shape --sort self_cpu_time_total --limit 20
  hotspan stats model.json.gz --by kernel --markdown
  hotspan stats profile.prof --sort tottime --limit 10     # pstats' table; several files are added up
  hotspan stats profile.prof --callers 'forward'
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
    /// Copies and fills of a kind
    Copy,
    /// A stream of a device
    Stream,
    /// An operator on a thread
    Thread,
    /// A Python function, as pstats shows it
    Function,
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
    /// What a row stands for; by default an operator, or a function where there are only functions
    #[arg(long, value_enum)]
    by: Option<By>,
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
    functions: functions::FunctionArguments,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    fn by(&self) -> By {
        self.by.unwrap_or(By::Op)
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let by_function = match arguments.by {
        Some(by) => by == By::Function,
        None => arguments.functions.is_set() || functions::are_prof_files(&arguments.files),
    };
    if by_function {
        return functions::run(arguments, output);
    }
    let Format { json, csv, markdown } = arguments.format;
    let mut objects = Vec::new();
    let mut shows_functions = false;
    let result = files::for_each(&arguments.files, |path, model, position| {
        if arguments.by.is_none() && !position.several && functions::has_only_functions(model) {
            shows_functions = true;
            return functions::show_trace(path, model, arguments, output);
        }
        if position.several && !json && !csv {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, model))?;
        }
        // A file that knows nothing but lines is meant to show them.
        let by_line =
            arguments.by() == By::Line || (arguments.by.is_none() && stats_lines::is_all_there_is(model));
        if by_line && !json && !csv && !markdown {
            return Ok(output.write_all(stats_lines::text(model).as_bytes())?);
        }
        let is_torch_table = matches!(arguments.by(), By::Op | By::Shape | By::Stack);
        if is_torch_table && !json && !csv && !markdown {
            return Ok(output.write_all(torch_table(model, arguments)?.as_bytes())?);
        }
        let report =
            if by_line { hotspan_analyze::lines::line_table(model) } else { report(model, arguments)? };
        let rank = model.distributed().and_then(|distributed| distributed.rank);
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
    if json && !shows_functions {
        writeln!(output, "{:#}", Value::Array(objects))?;
    }
    result
}

fn averages(model: &Model, arguments: &Arguments) -> KeyAverages {
    let group_by = GroupBy {
        input_shapes: arguments.by() == By::Shape,
        stack_depth: if arguments.by() == By::Stack { arguments.stack_depth } else { 0 },
        module: arguments.by() == By::Module,
        thread: arguments.by() == By::Thread,
        ..GroupBy::default()
    };
    KeyAverages::compute(model, &group_by)
}

/// What rows are sorted by when nobody says.
fn sort_key<'a>(arguments: &'a Arguments, averages: &KeyAverages) -> &'a str {
    let has_device_time = averages.rows.iter().any(|row| row.self_device_time_total.0 > 0);
    let default = if has_device_time { "self_device_time_total" } else { "self_cpu_time_total" };
    arguments.sort.as_deref().unwrap_or(default)
}

fn torch_table(model: &Model, arguments: &Arguments) -> Result<String, CommandError> {
    let averages = averages(model, arguments);
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

fn report(model: &Model, arguments: &Arguments) -> Result<Table, CommandError> {
    let device_table = match arguments.by() {
        By::Kernel => Some(kernels(model).report()),
        By::Copy => Some(copy_table(&copies(model))),
        By::Stream => Some(stream_table(&streams(model), *model.recording())),
        By::Op | By::Shape | By::Stack | By::Module | By::Thread | By::Function | By::Line => None,
    };
    let mut report = if let Some(mut report) = device_table {
        if let Some(key) = &arguments.sort {
            report.sort_by(key).map_err(|keys| {
                CommandError::Usage(format!("cannot sort by `{key}`; valid keys: {}", keys.join(", ")))
            })?;
        }
        report
    } else {
        let mut averages = averages(model, arguments);
        let key = sort_key(arguments, &averages).to_owned();
        sort(&mut averages, &key)?;
        averages.report()
    };
    if arguments.limit > 0 {
        report.rows.truncate(arguments.limit);
    }
    Ok(report)
}
