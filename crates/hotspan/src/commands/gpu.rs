//! `hotspan gpu`: how well devices were used, why they were idle, what launching cost, what operators could have taken.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::gpu::gpu;

use crate::error::CommandError;
use crate::present::{self, Format};
use crate::progress::say;

const EXAMPLES: &str = "\
Examples:
  hotspan gpu trace.json.gz
  hotspan gpu trace.json.gz --limit 0 --json | jq '.[0].idle'
  hotspan gpu runs/ --markdown

docs/gpu-analysis.md says what each number is. For kernels, copies and streams: hotspan stats --by kernel|copy|stream";

/// Show how well GPUs were used, and why they were idle
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show at most this many gaps, culprits and operators; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 15)]
    limit: usize,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    present::sections(&arguments.files, arguments.format, output, |path, model| {
        let Some(gpu) = gpu(model) else {
            say(&format!("note: {}: no device did anything in this trace", path.display()));
            return Ok(Vec::new());
        };
        Ok(gpu.report(model, arguments.limit))
    })
}
