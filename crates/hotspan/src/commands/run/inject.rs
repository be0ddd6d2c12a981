//! How the processes of a program learn that they are recorded: a folder in PYTHONPATH, and what to do in a variable.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hotspan_collect::clock::{UnixNanos, WallOffset};
use serde_json::{Value, json};

use super::Arguments;
use crate::error::CommandError;

/// Makes every Python of the program record itself.
pub(super) fn inject(
    command: &mut Command,
    python: Option<&Path>,
    options: &Value,
) -> Result<(), CommandError> {
    let package = package(python)?;
    let mut paths = vec![package.join("_inject")];
    paths.extend(
        env::var_os("PYTHONPATH")
            .iter()
            .flat_map(env::split_paths)
            .filter(|path| !path.as_os_str().is_empty()),
    );
    let paths = env::join_paths(paths)
        .map_err(|error| CommandError::Usage(format!("PYTHONPATH cannot be extended: {error}")))?;
    command.env("PYTHONPATH", paths).env("HOTSPAN_RUN", options.to_string());
    command.env_remove("HOTSPAN_PYTHON").env_remove("HOTSPAN_PACKAGE");
    Ok(())
}

/// What the agent is told.
pub(super) fn options(arguments: &Arguments, spool: &Path, started: UnixNanos) -> Value {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let since = started.0.saturating_add(arguments.delay.map_or(0, nanos));
    // The program may change its directory before it loads the file.
    let lines: Vec<String> = arguments.lines.iter().map(|target| absolute(target)).collect();
    let mut options = json!({
        "rate": arguments.rate,
        "shapes": arguments.shapes,
        "memory": arguments.memory,
        "stack": arguments.stack,
        "functions": arguments.functions,
        "lines": lines,
        "memory_lines": arguments.memory_lines,
        "since": arguments.delay.map(|_| since),
        "until": arguments.duration.map(|duration| since.saturating_add(nanos(duration))),
        "steps": arguments.steps.map(|(first, last)| [first, last]),
        "every": arguments.every,
        "budget": arguments.budget,
        "segment": arguments.limits().segment(),
    });
    tell_run(&mut options, spool);
    options
}

/// What is the same in all processes of a run.
pub(super) fn tell_run(options: &mut Value, spool: &Path) {
    options["spool"] = any_path(spool);
    options["launcher"] = std::process::id().into();
    options["wall_offset"] = WallOffset::now().0.into();
}

/// A path as text or, where it is none, as its bytes.
fn any_path(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().into(), Value::from)
}

/// A file, and perhaps a function of it, by its whole path.
fn absolute(target: &str) -> String {
    let (file, function) = match target.rsplit_once(':') {
        Some((file, function)) if !function.contains('/') => (file, Some(function)),
        _ => (target, None),
    };
    let path = Path::new(file).canonicalize().unwrap_or_else(|_| PathBuf::from(file));
    function.map_or_else(|| path.display().to_string(), |name| format!("{}:{name}", path.display()))
}

/// Prints the folder of hotspan. A folder of that name where the user happens to be is not it.
const WHERE_HOTSPAN_IS: &str = "\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
import hotspan
print(hotspan.__path__[0])";

/// The folder of the Python package: the wheel says where, otherwise Python is asked.
pub(super) fn package(python: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(package) = env::var_os("HOTSPAN_PACKAGE") {
        return Ok(package.into());
    }
    let python = python.unwrap_or(Path::new("python3"));
    let asked = Command::new(python).args(["-c", WHERE_HOTSPAN_IS]).output();
    match asked {
        Ok(answer) if answer.status.success() => {
            Ok(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim().to_owned()))
        }
        _ => Err(CommandError::Usage(format!(
            "{} does not have hotspan: install it there with `pip install hotspan`",
            python.display()
        ))),
    }
}
