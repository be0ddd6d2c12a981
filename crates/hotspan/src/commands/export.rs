//! `hotspan export`: a trace in another format.

use std::path::PathBuf;

use hotspan_formats::EXPORTERS;

use crate::error::CommandError;
use crate::progress::say;
use crate::{destination, files};

const EXAMPLES: &str = "\
Examples:
  hotspan export trace.json.gz --to hotspan -o trace.hotspan
  hotspan export trace.hotspan --to chrome -o trace.json.gz   # gzip or zstd by suffix
  hotspan export trace.hotspan --to chrome -o - | jq .traceEvents";

/// Write a trace in another format
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The trace to read: Kineto or Chrome JSON, plain, gzip or zstd, or .hotspan
    file: PathBuf,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = exporter_names())]
    to: String,
    /// The file to write; a name that ends in .gz or .zst is compressed, `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

fn exporter_names() -> clap::builder::PossibleValuesParser {
    let values = EXPORTERS
        .iter()
        .map(|exporter| clap::builder::PossibleValue::new(exporter.name()).help(exporter.help()));
    values.collect::<Vec<_>>().into()
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let Some(exporter) = EXPORTERS.iter().find(|exporter| exporter.name() == arguments.to) else {
        return Err(CommandError::Usage(format!("there is no format `{}`", arguments.to)));
    };
    let model = files::open(&arguments.file)?;
    destination::save(&model, *exporter, &arguments.output)?;
    if destination::is_stdout(&arguments.output) {
        return Ok(());
    }
    let size = std::fs::metadata(&arguments.output).map_or(0, |metadata| metadata.len());
    let size = hotspan_store::Bytes(i64::try_from(size).unwrap_or(i64::MAX));
    say(&format!("wrote {} ({size}, {} spans)", arguments.output.display(), model.spans().len()));
    Ok(())
}
