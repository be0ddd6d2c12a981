//! `hotspan tree`: the call tree of a trace in the terminal.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use hotspan_analyze::{ShowOptions, TreeOptions, TreeSource, call_tree};
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::files;
use crate::present::{self, Style};
use crate::progress::say;

const EXAMPLES: &str = "\
Examples:
  hotspan record -o run.hotspan -- python train.py && hotspan tree run.hotspan
  hotspan tree profile.speedscope.json --threads
  hotspan tree trace.json.gz --all --least 0.1    # operators and Python functions, insides of libraries too";

/// Show who called whom and how long it took, as a tree
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces with samples, Python functions or operators, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    show: Show,
    /// Tell lines of a function apart
    #[arg(long)]
    lines: bool,
    /// Put each thread at the root
    #[arg(short, long)]
    threads: bool,
    /// Leave out samples of threads that waited
    #[arg(long)]
    busy: bool,
    /// Print JSON: one object per file, times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// What of a tree is shown.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Show {
    /// Show the insides of libraries too
    #[arg(long)]
    all: bool,
    /// Leave out what took less than this share of the whole
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    least: f64,
    /// Show at most this many levels; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 0)]
    depth: usize,
}

impl From<Show> for ShowOptions {
    fn from(show: Show) -> Self {
        Self { all: show.all, least_share: show.least, depth: show.depth }
    }
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let options = TreeOptions {
        lines: arguments.lines,
        threads: arguments.threads,
        busy_only: arguments.busy,
        ..TreeOptions::default()
    };
    let style = Style::of(io::stdout().is_terminal());
    let mut objects = Vec::new();
    let result = files::for_each(&arguments.files, |path, model, position| {
        let tree = call_tree(model, &options);
        let report = tree.report(&arguments.show.into());
        if arguments.json {
            let file = path.display().to_string();
            objects.push(json!({
                "file": file, "total_ns": tree.total.0, "count": tree.count, "rows": present::tree_json(&report),
            }));
            return Ok(());
        }
        if position.several {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, model))?;
        }
        if tree.source == TreeSource::Nothing {
            say(&format!("note: {} has neither samples nor calls", path.display()));
        }
        Ok(output.write_all(present::tree(&report, style.color).as_bytes())?)
    });
    if arguments.json {
        present::write_json(&Value::Array(objects), output)?;
    }
    result
}
