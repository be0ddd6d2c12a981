//! `hotspan advise`: what to change about the program, by all rules, on any trace.

use std::io::Write;
use std::path::PathBuf;

use hotspan_analyze::advice::{Advice, RULES, Selection, advise, documentation};
use serde_json::{Value, json};

use crate::error::CommandError;
use crate::files;
use crate::present;

const EXAMPLES: &str = "\
Examples:
  hotspan advise trace.json.gz
  hotspan advise trace.json.gz --only fp64-slow-path,numpy-round-trip
  hotspan advise trace.json.gz --fail-on any --ignore warm-up-in-window
  hotspan advise runs/ --json | jq '.[].findings[] | {rule, gain_percent, source}'
  hotspan advise --docs > advice.md

Exit code 3: --fail-on names a rule that found something.";

/// Say what to change about the program: findings with evidence, source line and estimated gain
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required_unless_present = "docs")]
    files: Vec<PathBuf>,
    /// Exit with code 3 when one of these rules finds something; `any` means all
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    fail_on: Vec<String>,
    /// Ask these rules only
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    only: Vec<String>,
    /// Do not ask these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Print the documentation of all rules, as Markdown
    #[arg(long, conflicts_with_all = ["fail_on", "only", "ignore", "json", "markdown"])]
    docs: bool,
    /// Print JSON: one object per file, times in nanoseconds
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    if arguments.docs {
        return Ok(output.write_all(documentation().as_bytes())?);
    }
    let selection = Selection { only: arguments.only.clone(), ignore: arguments.ignore.clone() };
    check_names(arguments, &selection)?;
    let mut objects = Vec::new();
    let mut failing: Vec<&str> = Vec::new();
    let result = files::for_each(&arguments.files, |path, model, position| {
        let advice = advise(model, &selection);
        failing.extend(matches(arguments, &advice));
        if arguments.json {
            let rank = model.distributed().and_then(|distributed| distributed.rank);
            let mut object = json!({"file": path.display().to_string(), "rank": rank});
            if let (Value::Object(object), Value::Object(told)) = (&mut object, present::advice_json(&advice))
            {
                object.extend(told);
            }
            objects.push(object);
            return Ok(());
        }
        if position.several {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, model))?;
        }
        let text = if arguments.markdown {
            present::advice_markdown(&advice)
        } else {
            present::advice_text(&advice)
        };
        Ok(output.write_all(text.as_bytes())?)
    });
    if arguments.json {
        present::write_json(&Value::Array(objects), output)?;
    }
    result?;
    failing.sort_unstable();
    failing.dedup();
    if failing.is_empty() { Ok(()) } else { Err(CommandError::Found(failing.join(", "))) }
}

fn matches(arguments: &Arguments, advice: &Advice) -> Vec<&'static str> {
    let wanted = |id: &str| arguments.fail_on.iter().any(|name| name == "any" || name == id);
    advice.findings.iter().map(|(rule, _)| rule.id).filter(|id| wanted(id)).collect()
}

/// A misspelt rule must not pass as one that found nothing.
fn check_names(arguments: &Arguments, selection: &Selection) -> Result<(), CommandError> {
    let known = |name: &str| name == "any" || RULES.iter().any(|rule| rule.id == name);
    let unknown = selection
        .unknown()
        .or_else(|| arguments.fail_on.iter().map(String::as_str).find(|name| !known(name)));
    match unknown {
        Some(name) => {
            let names: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
            Err(CommandError::Usage(format!("no rule is called `{name}`; the rules: {}", names.join(", "))))
        }
        None => Ok(()),
    }
}
