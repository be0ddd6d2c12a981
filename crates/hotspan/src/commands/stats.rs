//! `hotspan stats`: torch's operator table, and its sisters by shape, stack, module and thread; kernels, copies and
//! streams; functions. Each report of a trace that is one table has its name in `--by`.

mod columns;
mod functions;

use std::io::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use hotspan_analyze::reports::operators::by_stack;
use hotspan_analyze::{GroupBy, KeyAverages, Model, Report, ReportOptions, reports};
use serde_json::{Value, json};

use crate::commands::stats_lines;
use crate::error::CommandError;
use crate::files;
use crate::present::torch_table::{TableOptions, table};
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan stats trace.json.gz
  hotspan stats trace.json.gz --by shape --sort self_cpu_time_total --limit 20
  hotspan stats trace.json.gz --by kernel --markdown
  hotspan stats --by kernel --columns                      # what the columns mean, and what --sort takes
  hotspan stats profile.prof --sort tottime --limit 10     # pstats' table; several files are added up
  hotspan stats profile.prof --callers 'forward'
  hotspan stats train.py.lprof        # line_profiler's report; --json for programs
  hotspan stats runs/ --json | jq '.[] | {rank, rows: .rows[:3]}'";

/// Show what the time was spent on: torch's key_averages table
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required_unless_present = "columns")]
    files: Vec<PathBuf>,
    /// What a row stands for; by default an operator, or a function where there are only functions
    #[arg(long, value_parser = PossibleValuesParser::new(names()))]
    by: Option<String>,
    /// Sort by this column, largest first; torch's names work (self_cuda_time_total …)
    #[arg(long, value_name = "KEY")]
    sort: Option<String>,
    /// Show at most this many rows; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    /// With --by stack: how many stack entries tell rows apart
    #[arg(long, value_name = "N", default_value_t = 5)]
    stack_depth: usize,
    /// Add columns that are left out by default (--columns names them); to torch's text min, p50, p99, max, share of wall time
    /// and FLOP/s, too
    #[arg(long)]
    wide: bool,
    /// Say what the columns of the table mean, instead of showing it
    #[arg(long)]
    columns: bool,
    #[command(flatten)]
    functions: functions::FunctionArguments,
    #[command(flatten)]
    format: Format,
}

/// The reports that are one table, as `--by` calls them.
fn names() -> impl Iterator<Item = PossibleValue> {
    reports().filter_map(|report| report.by).map(|(name, help)| PossibleValue::new(name).help(help))
}

impl Arguments {
    fn by(&self) -> &str {
        self.by.as_deref().unwrap_or("op")
    }

    fn options(&self) -> ReportOptions {
        ReportOptions {
            sort: self.sort.clone(),
            limit: Some(if self.limit == 0 { usize::MAX } else { self.limit }),
            wide: self.wide,
            stack_depth: Some(self.stack_depth),
            ..ReportOptions::default()
        }
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    if arguments.columns {
        return columns::run(arguments, output);
    }
    let by_function = match &arguments.by {
        Some(by) => by == "function",
        None => arguments.functions.is_set() || functions::are_prof_files(&arguments.files),
    };
    if by_function {
        return functions::run(arguments, output);
    }
    let format = arguments.format;
    let mut objects = Vec::new();
    let mut shows_functions = false;
    let result = files::for_each(&arguments.files, |path, model, position| {
        if arguments.by.is_none() && !position.several && functions::has_only_functions(model) {
            shows_functions = true;
            return functions::show_trace(path, model, arguments, output);
        }
        if position.several && !format.json && !format.csv {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, model))?;
        }
        // A file that has nothing but lines is meant to show them.
        let has_only_lines = arguments.by.is_none() && stats_lines::is_all_there_is(model);
        let by = if has_only_lines { "line" } else { arguments.by() };
        if format.is_text() && by == "line" {
            return Ok(output.write_all(stats_lines::text(model).as_bytes())?);
        }
        if let Some(group_by) = torch_grouping(by, arguments).filter(|_| format.is_text()) {
            return Ok(output.write_all(torch_table(model, &group_by, arguments)?.as_bytes())?);
        }
        let Some(report) = Report::by(by) else { return Ok(()) };
        let rank = model.distributed().and_then(|distributed| distributed.rank);
        let file = path.display().to_string();
        for table in (report.tables)(model, &arguments.options())? {
            if format.json {
                objects.push(json!({"file": file, "rank": rank, "rows": present::json_rows(&table)}));
                continue;
            }
            let rank = rank.map_or(String::new(), |rank| rank.to_string());
            let prefix = [("file", file.clone()), ("rank", rank)];
            let prefix = if position.several { &prefix[..] } else { &[] };
            output.write_all(present::in_format(&table, format, prefix, position.first).as_bytes())?;
        }
        Ok(())
    });
    if format.json && !shows_functions {
        present::write_json(&Value::Array(objects), output)?;
    }
    result
}

/// What tells rows apart in those reports that torch has a text for.
fn torch_grouping(by: &str, arguments: &Arguments) -> Option<GroupBy> {
    match by {
        "op" => Some(GroupBy::default()),
        "shape" => Some(GroupBy { input_shapes: true, ..GroupBy::default() }),
        "stack" => Some(by_stack(&arguments.options())),
        _ => None,
    }
}

fn torch_table(model: &Model, group_by: &GroupBy, arguments: &Arguments) -> Result<String, CommandError> {
    let averages = KeyAverages::compute(model, group_by);
    let options = TableOptions {
        sort_by: Some(arguments.sort.as_deref().unwrap_or(averages.default_sort()).to_owned()),
        row_limit: (arguments.limit > 0).then_some(arguments.limit),
        ..TableOptions::default()
    };
    let options = if arguments.wide { options.wide() } else { options };
    Ok(table(&averages, &options)?)
}
