//! `hotspan report`: a recorded program at a glance, or two of them side by side.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hotspan_analyze::overview::compare::{Comparison, compare};
use hotspan_analyze::{Overview, Table, overview};
use hotspan_store::Trace;
use serde_json::{Map, Value, json};

use crate::commands::run::spool;
use crate::error::CommandError;
use crate::present::Style;
use crate::{files, present};

const EXAMPLES: &str = "\
Examples:
  hotspan report train.hotspan
  hotspan report train.hotspan --markdown > report.md
  hotspan report before.hotspan after.hotspan   # what got faster and slower
  hotspan report train.hotspan --html report.html   # the dashboard in one file, to share
  hotspan report train.hotspan.spool            # of a run that was killed";

/// Show where the time of a program went and what to change, or compare two runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A recording, or the folder of one that was cut off
    file: PathBuf,
    /// Another recording to compare it with: what got faster and slower since the first
    after: Option<PathBuf>,
    #[command(flatten)]
    format: ReportFormat,
    /// Write the dashboard with its data into one HTML file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown", "after"])]
    html: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(multiple = false)]
pub(crate) struct ReportFormat {
    /// Print JSON, times in nanoseconds
    #[arg(long)]
    pub(crate) json: bool,
    /// Print Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let style = Style::of(io::stdout().is_terminal());
    let trace = open(&arguments.file)?;
    if let Some(html) = &arguments.html {
        let page = hotspan_view::static_page(&trace, &arguments.file)
            .ok_or_else(|| CommandError::Usage("this hotspan was built without the web app".to_owned()))?;
        // It appears whole or not at all.
        let unfinished = html.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&unfinished, page)?;
        return Ok(std::fs::rename(unfinished, html)?);
    }
    match &arguments.after {
        None => write(&trace, arguments.format, style, output),
        Some(path) => write_comparison(&compare(&trace, &open(path)?), arguments.format, style, output),
    }
}

fn open(path: &Path) -> Result<Trace, CommandError> {
    if !path.is_dir() {
        return files::open(path);
    }
    if let Some(trace) = spool::open(path) {
        return Ok(trace);
    }
    let mut traces = Vec::new();
    files::for_each(&[path.to_owned()], |_, trace, _| {
        traces.push(trace.clone());
        Ok(())
    })?;
    Ok(hotspan_store::merge(&traces))
}

/// Writes the report of a trace.
pub(crate) fn write(
    trace: &Trace,
    format: ReportFormat,
    style: Style,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let overview = overview(trace);
    let text = if format.json {
        format!("{:#}\n", overview_json(&overview))
    } else if format.markdown {
        overview_markdown(&overview)
    } else {
        present::report_text(&overview, style)
    };
    Ok(output.write_all(text.as_bytes())?)
}

fn sections(tables: &[Table]) -> Value {
    let section = |table: &Table| (table.title.clone(), present::json_rows(table));
    Value::Object(tables.iter().map(section).collect::<Map<_, _>>())
}

fn overview_json(overview: &Overview) -> Value {
    json!({
        "wall_time_ns": overview.wall_time.as_ref().map(|wall_time| wall_time.total.0),
        "report": sections(&overview.report()),
        "advice": present::advice_json(&overview.advice),
        "missing": overview.missing,
        "cost": overview.cost.map(|cost| json!({
            "in_program_ns": cost.in_program.0,
            "agent_ns": cost.agent.0,
        })),
    })
}

fn overview_markdown(overview: &Overview) -> String {
    let mut out = markdown(&overview.report());
    out.push_str(&format!("\n## What to change\n\n{}", present::advice_markdown(&overview.advice)));
    if !overview.missing.is_empty() {
        out.push_str("\n## What is missing\n\n");
        overview.missing.iter().for_each(|text| out.push_str(&format!("- {text}\n")));
    }
    out
}

fn markdown(tables: &[Table]) -> String {
    let section = |table: &Table| {
        let bare = Table { title: String::new(), ..table.clone() };
        format!("## {}\n\n{}", table.title, present::markdown(&bare))
    };
    tables.iter().map(section).collect::<Vec<_>>().join("\n")
}

fn write_comparison(
    comparison: &Comparison,
    format: ReportFormat,
    style: Style,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let tables = comparison.report();
    let text = if format.json {
        let wall = |side: fn((hotspan_store::Duration, hotspan_store::Duration)) -> i64| {
            comparison.wall_time.map(side)
        };
        let object = json!({
            "wall_time_ns": {"before": wall(|(before, _)| before.0), "after": wall(|(_, after)| after.0)},
            "summary": comparison.in_words(),
            "report": sections(&tables),
            "findings": {
                "gone": comparison.findings_gone,
                "new": comparison.findings_new,
                "kept": comparison.findings_kept,
            },
        });
        format!("{object:#}\n")
    } else if format.markdown {
        let words: String = comparison.in_words().iter().map(|text| format!("- {text}\n")).collect();
        format!("{words}\n{}", markdown(&tables))
    } else {
        present::comparison_text(comparison, style)
    };
    Ok(output.write_all(text.as_bytes())?)
}
