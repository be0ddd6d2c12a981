//! What `hotspan record` writes: in which format, to which file, by which exporter.

use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_analyze::Model;
use hotspan_analyze::{ShowOptions, TreeOptions, call_tree};
use hotspan_formats::export::collapsed::Collapsed;
use hotspan_formats::export::flamegraph::Flamegraph;
use hotspan_formats::export::speedscope::EVERY_SAMPLE;
use hotspan_formats::{EXPORTERS, Exporter, uncompressed};
use hotspan_store::Losses;

use super::Arguments;
use super::relabel::Relabel;
use crate::error::CommandError;
use crate::present::{self, Outlet};
use crate::progress::say;
use crate::{destination, files};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// An interactive flame graph (SVG)
    Flamegraph,
    /// Stacks with counts, a line each
    Collapsed,
    /// The same as py-spy writes it: files have short names (see --full-filenames), -s and -t name processes and threads
    Raw,
    /// For https://www.speedscope.app
    Speedscope,
    /// A Chrome trace, for Perfetto
    #[value(alias = "chrometrace")]
    Chrome,
    /// For pstats, snakeviz and gprof2dot
    Pstats,
    /// hotspan's own file: nothing is lost, and all commands open it
    Hotspan,
    /// The call tree as text
    Tree,
}

/// What cannot be written is better said before hours of recording than after.
pub(super) fn refuse_early(format: Format, output: Option<&Path>) -> Result<(), CommandError> {
    if format == Format::Pstats && listed("prof").is_none() {
        return Err(CommandError::Usage("this hotspan cannot write pstats files of samples".to_owned()));
    }
    output.filter(|path| !destination::is_stdout(path)).map_or(Ok(()), files::check_place)
}

/// An exporter by its name.
fn listed(name: &str) -> Option<&'static dyn Exporter> {
    EXPORTERS.iter().find(|exporter| exporter.name() == name).copied()
}

pub(super) fn format_of(output: Option<&Path>) -> Format {
    let name = output.map(|path| path.display().to_string()).unwrap_or_default();
    let name = uncompressed(&name);
    match name.rsplit('.').next() {
        Some("hotspan") => Format::Hotspan,
        Some("txt" | "folded" | "collapsed" | "raw") => Format::Collapsed,
        Some("prof" | "pstats") => Format::Pstats,
        Some("json") if name.ends_with(".speedscope.json") => Format::Speedscope,
        Some("json") => Format::Chrome,
        _ => Format::Flamegraph,
    }
}

pub(super) fn output_path(arguments: &Arguments, format: Format) -> Result<Option<PathBuf>, CommandError> {
    match (&arguments.output, format) {
        (Some(output), Format::Tree) if destination::is_stdout(output) => Ok(None),
        (Some(output), _) => {
            let must_be_a_file = format == Format::Hotspan;
            destination::refuse_stdout(must_be_a_file.then_some(output), "a recording")?;
            Ok(Some(output.clone()))
        }
        (None, Format::Tree) => Ok(None),
        (None, _) => {
            let ending = match format {
                Format::Collapsed | Format::Raw => "txt",
                Format::Speedscope => "speedscope.json",
                Format::Chrome => "json",
                Format::Pstats => "prof",
                Format::Hotspan => "hotspan",
                Format::Flamegraph | Format::Tree => "svg",
            };
            let what = match (arguments.pid, arguments.command.first()) {
                (Some(pid), _) => pid.to_string(),
                (None, Some(program)) => {
                    Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
                }
                (None, None) => {
                    return Err(CommandError::Usage("give --pid or a command after `--`".to_owned()));
                }
            };
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(Some(PathBuf::from(format!("{what}-{}.{ending}", now.as_secs()))))
        }
    }
}

/// Says what was lost, before anything that could fail.
pub(super) fn tell(losses: &Losses, samples: u64) {
    for loss in losses.serious() {
        say(&format!("note: {loss}"));
    }
    if samples == 0 {
        say(
            "note: no samples: the program was idle or ended at once (-i keeps samples of threads that wait)",
        );
    }
}

pub(super) fn write(
    arguments: &Arguments,
    format: Format,
    output: Option<&Path>,
    model: &Model,
) -> Result<(), CommandError> {
    let relabelled;
    let model = match relabel(arguments, format) {
        Some(relabel) => {
            relabelled = relabel.apply(model);
            &relabelled
        }
        None => model,
    };
    let samples = model.profile().samples.len();
    tell(model.losses(), samples as u64);
    let options = TreeOptions {
        lines: !arguments.function,
        // Raw stacks have a frame for the thread.
        threads: arguments.threads && format != Format::Raw,
        busy_only: busy_only(arguments),
        ..TreeOptions::default()
    };
    let (collapsed, flamegraph);
    let exporter: Option<&dyn Exporter> = match format {
        Format::Flamegraph => {
            flamegraph = Flamegraph { options, title: Some(title(arguments)) };
            Some(&flamegraph)
        }
        Format::Collapsed | Format::Raw => {
            collapsed = Collapsed { options };
            Some(&collapsed)
        }
        Format::Speedscope => Some(&EVERY_SAMPLE),
        Format::Chrome => listed("chrome"),
        Format::Hotspan => listed("hotspan"),
        Format::Pstats => listed("prof"),
        Format::Tree => return write_tree(arguments, output, model),
    };
    let Some(exporter) = exporter else {
        return Err(CommandError::Usage("this hotspan cannot write that format".to_owned()));
    };
    let Some(output) = output else { return Ok(()) };
    destination::save(model, exporter, output)?;
    say(&format!("wrote {} ({samples} samples)", destination::name(output)));
    Ok(())
}

/// What the options change about names and lines; the exporters of trees see to functions themselves.
fn relabel(arguments: &Arguments, format: Format) -> Option<Relabel> {
    let is_raw = format == Format::Raw;
    let lists_frames = matches!(format, Format::Speedscope | Format::Chrome);
    let changes = Relabel {
        short_files: is_raw && !arguments.full_filenames,
        first_lines: arguments.function && lists_frames,
        no_lines: arguments.nolineno,
        threads: is_raw && arguments.threads,
        processes: is_raw && arguments.subprocesses,
        gil_only: arguments.native && arguments.gil,
    };
    // A trace is kept as it was recorded.
    (changes != Relabel::default() && format != Format::Hotspan).then_some(changes)
}

/// From outside, threads that wait are left out while sampling; from within they are always seen.
fn busy_only(arguments: &Arguments) -> bool {
    arguments.native && !arguments.idle
}

fn title(arguments: &Arguments) -> String {
    match arguments.pid {
        Some(pid) => format!("process {pid}"),
        None => {
            let words: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        }
    }
}

fn write_tree(arguments: &Arguments, output: Option<&Path>, model: &Model) -> Result<(), CommandError> {
    let options = TreeOptions {
        lines: false,
        threads: arguments.threads,
        busy_only: busy_only(arguments),
        ..TreeOptions::default()
    };
    let show: ShowOptions = arguments.show.into();
    let report = call_tree(model, &options).report(&show);
    match output {
        Some(path) => {
            let text = present::tree(&report, false);
            destination::write(path, text.as_bytes())?;
            say(&format!("wrote {}", path.display()));
        }
        None => {
            let mut stdout = Outlet::stdout();
            let color = stdout.style().color;
            stdout.write_all(present::tree(&report, color).as_bytes())?;
            stdout.flush()?;
        }
    }
    Ok(())
}
