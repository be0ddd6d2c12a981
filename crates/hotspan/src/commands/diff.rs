//! `hotspan diff`: what got faster or slower from one trace to another.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::diff::{self, Diff, DiffRow, Verdict, diff_sides};
use hotspan_store::visible;
use serde_json::json;

use crate::error::CommandError;
use crate::files;
use crate::present::{self, Format};

const EXAMPLES: &str = "\
Examples:
  hotspan diff before.hotspan after.hotspan
  hotspan diff monday.json.gz tuesday.json.gz --by kernel --markdown
  hotspan diff before.hotspan after.hotspan --by shape --all --limit 0 --csv
  hotspan diff old1.hotspan old2.hotspan old3.hotspan -- new1.hotspan new2.hotspan new3.hotspan

Verdicts: `change` is more than runs of one program differ by, `noise` is not; `unknown` has fewer than three steps on a
side; `new` and `gone` occur in one trace only. Rows that are noise are shown with --all. On a busy machine record each side
three times: small changes can be told from noise only then.";

/// Smaller differences that may be noise are not worth a word: of the row, in percent, and of the step, as one part in so many.
const LEAST_PERCENT: f64 = 10.0;
const LEAST_OF_STEP: i64 = 100;

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// An operator or a marked range, by name
    Op,
    /// A Python function
    Function,
    /// A line of Python
    Line,
    /// A kernel, copy or fill on the device
    Kernel,
    /// An operator with the shapes of its inputs
    Shape,
    /// All calls in an nn.Module
    Module,
}

impl From<By> for diff::By {
    fn from(by: By) -> Self {
        match by {
            By::Op => Self::Operator,
            By::Function => Self::Function,
            By::Line => Self::Line,
            By::Kernel => Self::Kernel,
            By::Shape => Self::Shape,
            By::Module => Self::Module,
        }
    }
}

/// Compare two traces: what got faster or slower, with noise told from change
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The trace before the change and the one after it; or, with `--`, all traces before the change
    #[arg(required = true, value_name = "BEFORE AFTER")]
    files: Vec<PathBuf>,
    /// All traces after the change
    #[arg(last = true, value_name = "AFTER")]
    after: Vec<PathBuf>,
    /// What a row stands for
    #[arg(long, value_enum, default_value = "op")]
    by: By,
    /// Show at most this many rows below the total; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 30)]
    limit: usize,
    /// Show rows whose change is noise, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let (before, after) = sides(arguments)?;
    let open = |paths: &[PathBuf]| paths.iter().map(|path| files::open(path)).collect::<Result<Vec<_>, _>>();
    let (models_before, models_after) = (open(before)?, open(after)?);
    let result = diff_sides(
        &models_before.iter().collect::<Vec<_>>(),
        &models_after.iter().collect::<Vec<_>>(),
        arguments.by.into(),
    );
    // Programs choose for themselves what to leave out.
    let with_noise = arguments.all || arguments.format.json || arguments.format.csv;
    let table = result.report(arguments.limit, with_noise);
    if arguments.format.json {
        let steps = result.steps.map(|(before, after)| json!({"before": before, "after": after}));
        let name = |paths: &[PathBuf]| match paths {
            [one] => json!(one.display().to_string()),
            several => json!(several.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()),
        };
        let object = json!({
            "before": name(before),
            "after": name(after),
            "measure": result.measure,
            "machine_percent": result.machine_percent,
            "steps": steps,
            "rows": present::json_rows(&table),
        });
        return Ok(present::write_json(&object, output)?);
    }
    output.write_all(present::in_format(&table, arguments.format, &[], true).as_bytes())?;
    let hidden = result.noise_count();
    if hidden > 0 && !with_noise {
        writeln!(output, "\n{hidden} rows differ by noise only (--all shows them).")?;
        if before.len().min(after.len()) == 1
            && let Some(words) = may_be_a_change(&result)
        {
            writeln!(output, "{words}")?;
        }
    }
    Ok(())
}

/// The largest of the differences that are worth a word and cannot be told from noise, and how they could be.
fn may_be_a_change(result: &Diff) -> Option<String> {
    let least = result.total.before?.time.0 / LEAST_OF_STEP;
    let counts = |row: &&DiffRow| {
        let percent = row.percent().unwrap_or_default();
        row.verdict == Verdict::Noise && percent.abs() >= LEAST_PERCENT && row.change().0.abs() >= least
    };
    let row = result.rows.iter().find(counts)?;
    let (change, percent) = (row.change(), row.percent()?);
    let key = visible(&row.key);
    Some(format!(
        "The largest that may be more is {key}: {change} ({percent:.1} %). Three recordings of each side may tell whether that is a change:\n\
         hotspan diff old1 old2 old3 -- new1 new2 new3"
    ))
}

/// The recordings of each side.
fn sides(arguments: &Arguments) -> Result<(&[PathBuf], &[PathBuf]), CommandError> {
    match (arguments.files.as_slice(), arguments.after.as_slice()) {
        ([before, after], []) => Ok((std::slice::from_ref(before), std::slice::from_ref(after))),
        (_, []) => Err(CommandError::Usage(
            "give one trace before and one after, or several with `--` between the sides".to_owned(),
        )),
        sides => Ok(sides),
    }
}
