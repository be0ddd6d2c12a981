//! `hotspan report`: a recorded program at a glance.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::{Table, overview};
use hotspan_store::Trace;
use serde_json::{Map, Value, json};

use crate::error::CommandError;
use crate::{files, present};

const EXAMPLES: &str = "\
Examples:
  hotspan report train.hotspan
  hotspan report train.hotspan --markdown > report.md
  hotspan report train.hotspan --html report.html    # the dashboard in one file, to share
  hotspan report train.hotspan.spool        # of a run that was killed";

/// Show where the time of a program went and what cost most
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A recording, or the folder of one that was cut off
    file: PathBuf,
    #[command(flatten)]
    format: ReportFormat,
    /// Write the dashboard with its data into one HTML file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "markdown"])]
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
    let trace = if arguments.file.is_dir() {
        let mut traces = Vec::new();
        files::for_each(std::slice::from_ref(&arguments.file), |_, trace, _| {
            traces.push(trace.clone());
            Ok(())
        })?;
        hotspan_store::merge(&traces)
    } else {
        files::open(&arguments.file)?
    };
    if let Some(html) = &arguments.html {
        let page = hotspan_view::static_page(&trace, &arguments.file)
            .ok_or_else(|| CommandError::Usage("this hotspan was built without the web app".to_owned()))?;
        // It appears whole or not at all.
        let unfinished = html.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&unfinished, page)?;
        return Ok(std::fs::rename(unfinished, html)?);
    }
    write(&trace, arguments.format, output)
}

/// Writes the report of a trace.
pub(crate) fn write(trace: &Trace, format: ReportFormat, output: &mut dyn Write) -> Result<(), CommandError> {
    let tables = overview(trace).report();
    if format.json {
        let section = |table: &Table| (table.title.clone(), present::json_rows(table));
        let sections: Map<String, Value> = tables.iter().map(section).collect();
        writeln!(output, "{:#}", json!({"report": sections}))?;
        return Ok(());
    }
    for (index, table) in tables.iter().enumerate() {
        let text = if format.markdown {
            format!("## {}\n\n{}", table.title, present::markdown(table))
        } else {
            present::text(table)
        };
        write!(output, "{}{text}", if index == 0 { "" } else { "\n" })?;
    }
    Ok(())
}
