//! `hotspan report`: a recorded program at a glance, or two of them side by side.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotspan_analyze::Model;
use hotspan_analyze::overview::compare::{Comparison, compare};
use hotspan_analyze::{Overview, Table, overview};
use hotspan_store::visible;
use serde_json::{Map, Value, json};

use crate::commands::report_html;
use crate::error::CommandError;
use crate::present::Style;
use crate::{files, present, run_folder};

const EXAMPLES: &str = "\
Examples:
  hotspan report train.hotspan
  hotspan report train.hotspan --markdown > report.md
  hotspan report before.hotspan after.hotspan   # what got faster and slower
  hotspan report train.hotspan --html report.html   # the dashboard in one file, to share
  hotspan report ranks/ --html report.html          # of a folder with a trace for each rank
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
    /// Write the dashboard with its data into one HTML file; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
    html: Option<PathBuf>,
    /// Put the text of the program's Python files into the HTML file as well
    #[arg(long, requires = "html")]
    with_source: bool,
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
    if let Some(html) = &arguments.html {
        let mut traces = Vec::new();
        for path in std::iter::once(&arguments.file).chain(&arguments.after) {
            if is_cut_off(path) {
                traces.push((path.clone(), open(path)?));
            } else {
                traces.extend(report_html::traces(path)?);
            }
        }
        return report_html::write(&traces, arguments.with_source, html);
    }
    let model = open(&arguments.file)?;
    match &arguments.after {
        None => write(&model, arguments.format, style, output),
        Some(path) => write_comparison(&compare(&model, &open(path)?), arguments.format, style, output),
    }
}

/// Whether a path is what a run that was killed left behind: a folder of parts that belong together.
fn is_cut_off(path: &Path) -> bool {
    path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().contains(".spool"))
}

fn open(path: &Path) -> Result<Model, CommandError> {
    if !path.is_dir() {
        return files::open(path);
    }
    if let Some(trace) = run_folder::open(path) {
        return Ok(Model::new(trace));
    }
    let mut traces = Vec::new();
    files::for_each(&[path.to_owned()], |_, model, _| {
        traces.push(Arc::clone(model.trace()));
        Ok(())
    })?;
    Ok(Model::new(hotspan_store::merge(&traces)))
}

/// Writes the report of a trace.
pub(crate) fn write(
    model: &Model,
    format: ReportFormat,
    style: Style,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    let overview = overview(model);
    let text = if format.json {
        present::json_text(&overview_json(&overview)) + "\n"
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
        "verdict": overview.verdict.as_ref().map(|verdict| json!({
            "sentence": verdict.sentence,
            "source": verdict.source,
        })),
        "about": overview.about,
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
    let verdict = overview.verdict.as_ref().map(|verdict| format!("**{}**\n\n", visible(&verdict.sentence)));
    let mut out = verdict.unwrap_or_default() + &markdown(&overview.report());
    out.push_str(&format!("\n## What to change\n\n{}", present::advice_markdown(&overview.advice)));
    if !overview.missing.is_empty() {
        out.push_str("\n## What is missing\n\n");
        overview.missing.iter().for_each(|text| out.push_str(&format!("- {}\n", visible(text))));
    }
    out
}

fn markdown(tables: &[Table]) -> String {
    let section = |table: &Table| {
        format!("## {}\n\n{}", visible(&table.title), present::markdown(&table.clone().titled("")))
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
        present::json_text(&object) + "\n"
    } else if format.markdown {
        let words: String =
            comparison.in_words().iter().map(|text| format!("- {}\n", visible(text))).collect();
        format!("{words}\n{}", markdown(&tables))
    } else {
        present::comparison_text(comparison, style)
    };
    Ok(output.write_all(text.as_bytes())?)
}
