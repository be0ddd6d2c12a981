//! `hotspan stats --by function`: pstats' tables, of `.prof` files and of any trace that knows functions.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use hotspan_analyze::Functions;
use hotspan_analyze::Model;
use hotspan_analyze::functions::{Calls, FunctionName, Restriction};
use hotspan_formats::Importer;
use hotspan_formats::import::prof::Prof;
use serde_json::{Value, json};

use super::Arguments;
use crate::error::CommandError;
use crate::files;
use crate::present;
use crate::present::pstats_text::{callees_text, callers_text, stats_text};

/// What is shown of functions, beside their table.
#[derive(Debug, clap::Args)]
pub(super) struct FunctionArguments {
    /// With --by function: who called the functions that match
    #[arg(long, value_name = "REGEX", conflicts_with = "callees")]
    callers: Option<String>,
    /// With --by function: what the functions that match called
    #[arg(long, value_name = "REGEX")]
    callees: Option<String>,
    /// With --by function: show only those that match a regular expression, the first N, or a share below 1; repeatable
    #[arg(long, value_name = "RESTRICTION")]
    only: Vec<String>,
    /// With --by function: show files without their folders
    #[arg(long)]
    strip_dirs: bool,
}

impl FunctionArguments {
    /// Whether something was asked for that only functions have.
    pub(super) fn is_set(&self) -> bool {
        self.callers.is_some() || self.callees.is_some() || !self.only.is_empty() || self.strip_dirs
    }
}

/// Whether all of the files are `.prof` files, which hold nothing but functions.
pub(super) fn are_prof_files(paths: &[PathBuf]) -> bool {
    let is_prof = |path: &PathBuf| {
        let mut head = Vec::new();
        path.is_file()
            && std::fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut head)).is_ok()
            && Prof.sniff(&head) == hotspan_formats::Sniff::Yes
    };
    !paths.is_empty() && paths.iter().all(is_prof)
}

/// Whether a trace is about functions and nothing else.
pub(super) fn has_only_functions(model: &Model) -> bool {
    let profile = model.profile();
    model.spans().is_empty() && !(profile.calls.is_empty() && profile.samples.is_empty())
}

/// Adds up all files and shows the functions.
pub(super) fn run(arguments: &Arguments, output: &mut dyn Write) -> Result<(), CommandError> {
    let mut functions = Functions::default();
    let mut names = Vec::new();
    let opened = files::for_each(&arguments.files, |path, model, _| {
        functions.add(Functions::of(model));
        names.push(path.display().to_string());
        Ok(())
    });
    if !names.is_empty() {
        show(functions, &names, arguments, output)?;
    }
    opened
}

/// Shows the functions of one trace.
pub(super) fn show_trace(
    path: &Path,
    model: &Model,
    arguments: &Arguments,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    show(Functions::of(model), &[path.display().to_string()], arguments, output)
}

fn show(
    mut functions: Functions,
    files: &[String],
    arguments: &Arguments,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    if functions.is_empty() {
        crate::progress::say(
            "note: no functions: record with python -m hotspan.cprofile, or with_stack=True in hotspan.profiler",
        );
    }
    let wanted = &arguments.functions;
    if wanted.strip_dirs {
        functions = functions.without_folders();
    }
    let keys = arguments.sort.as_deref().unwrap_or("cumulative");
    functions.sort(keys)?;
    let mut restrictions: Vec<Restriction> =
        wanted.only.iter().map(|text| Restriction::parse(text)).collect();
    let pattern = |pattern: &String| Restriction::Pattern(pattern.clone());
    restrictions.extend(wanted.callers.as_ref().or(wanted.callees.as_ref()).map(pattern));
    if arguments.limit > 0 {
        restrictions.push(Restriction::Count(arguments.limit));
    }
    if !arguments.format.is_text() {
        let chosen = functions.restricted(&restrictions);
        let report = chosen.report();
        if arguments.format.json {
            let mut rows = present::json_rows(&report);
            for (row, function) in rows.as_array_mut().into_iter().flatten().zip(chosen.rows()) {
                if wanted.callers.is_some() {
                    row["callers"] = function.callers.iter().map(call).collect();
                }
                if wanted.callees.is_some() {
                    row["callees"] = functions.callees(&function.function).iter().map(call).collect();
                }
            }
            present::write_json(&json!([{"files": files, "rows": rows}]), output)?;
        } else {
            output.write_all(present::in_format(&report, arguments.format, &[], true).as_bytes())?;
        }
        return Ok(());
    }
    let text = if wanted.callers.is_some() {
        callers_text(&functions, &restrictions)
    } else if wanted.callees.is_some() {
        callees_text(&functions, &restrictions)
    } else {
        stats_text(&functions, files, &restrictions)
    };
    Ok(output.write_all(text.as_bytes())?)
}

fn call((name, sums): &(FunctionName, Calls)) -> Value {
    json!({
        "file": name.file,
        "line": name.line,
        "function": name.name,
        "ncalls": sums.calls,
        "pcalls": sums.primitive,
        "tottime": sums.own.0,
        "cumtime": sums.total.0,
    })
}
