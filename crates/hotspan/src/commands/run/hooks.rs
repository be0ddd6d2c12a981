//! The hooks for the program's torch, made ready before the program starts.
//!
//! Which torch that is only its Python knows; it is asked without importing anything. Programs without torch pay for the
//! question, no more. A launcher in another language than Python is taken to start the Python among its arguments, or the default one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hotspan_collect::torch::{Hooks, Origin, TorchInstall, handover};

use crate::commands::run::inject::package;
use crate::commands::run::interpreter::{self, is_python};
use crate::progress::say;

/// Where `python -m hotspan` found torch in its own environment, or nothing where there is none.
const OWN_TORCH: &str = "HOTSPAN_TORCH";
/// Prints the folder of the torch that would be imported; only what every Python has loaded is used.
const QUESTION: &str = "\
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from _frozen_importlib_external import PathFinder
spec = PathFinder.find_spec('torch')
print(spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else '')";

/// Makes the hooks ready that the program will need, and tells it which. Nothing here keeps it from running.
pub(super) fn prepare(command: &mut Command, python: Option<&Path>) {
    let own = env::var_os(OWN_TORCH);
    command.env_remove(OWN_TORCH).env_remove(handover::VARIABLE);
    let Some(torch) = torch_of(&python_of(command), own) else { return };
    let Ok(install) = TorchInstall::at(&torch) else { return };
    let package = package(python).ok();
    let (ready, why_not_carried) = Hooks::ready(&install, package.as_deref());
    let found = match ready.into_iter().next() {
        Some(hooks) => Ok(hooks.library),
        None => compile(&install, why_not_carried.as_deref()),
    };
    let found = found.as_deref().map_err(String::as_str);
    command.env(handover::VARIABLE, handover::tell(&torch, found));
}

fn compile(install: &TorchInstall, why_not_carried: Option<&str>) -> Result<PathBuf, String> {
    say(&format!("compiling the hooks for torch {}, once for this torch", install.version()));
    match Hooks::compile(install, why_not_carried) {
        Ok(hooks) => {
            if let Origin::Compiled(time) = hooks.origin {
                say(&format!("that took {:.1} s; now the program starts", time.as_secs_f64()));
            }
            Ok(hooks.library)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// The Python that a command runs: itself, the one that its script names, one among its arguments (`mpirun -n 2 python train.py`),
/// or the default one.
fn python_of(command: &Command) -> OsString {
    let program = command.get_program();
    let default = || env::var_os("HOTSPAN_PYTHON").unwrap_or_else(|| "python3".into());
    if is_python(Path::new(program)) {
        return program.to_owned();
    }
    let of_script = find_program(program).and_then(|path| interpreter::of_script(&path));
    let started = || command.get_args().find(|word| is_python(Path::new(word))).map(OsStr::to_owned);
    of_script.or_else(started).unwrap_or_else(default)
}

fn find_program(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program));
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn torch_of(python: &OsStr, own: Option<OsString>) -> Option<PathBuf> {
    let is_own =
        env::var_os("HOTSPAN_PYTHON").is_some_and(|mine| is_same(Path::new(&mine), Path::new(python)));
    let found = match own {
        Some(torch) if is_own => torch,
        _ => ask(python)?,
    };
    (!found.is_empty()).then(|| PathBuf::from(found))
}

/// Whether both are names of one Python in one environment: `bin/python` and `bin/python3`.
fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.canonicalize().ok();
    one == other || (one.parent() == other.parent() && file(one).is_some() && file(one) == file(other))
}

fn ask(python: &OsStr) -> Option<OsString> {
    let answer = Command::new(python)
        .args(["-c", QUESTION])
        .env_remove("HOTSPAN_RUN")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8(answer.stdout).ok()?.trim_end_matches('\n').into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_python_of_a_console_script_stands_in_its_first_line() {
        let folder = env::temp_dir().join(format!("hotspan-scripts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let script = folder.join("torchrun");
        let of = |text: &str| {
            std::fs::write(&script, text).unwrap();
            python_of(&Command::new(&script))
        };
        assert_eq!(of("#!/opt/env/bin/python3.12\nimport sys\n"), "/opt/env/bin/python3.12");
        assert_eq!(
            of("#!/bin/sh\n'''exec' /opt/env/bin/python \"$0\" \"$@\"\n' '''\n"),
            "/opt/env/bin/python"
        );
        let default = env::var_os("HOTSPAN_PYTHON").unwrap_or_else(|| "python3".into());
        assert_eq!(of("#!/bin/sh\npython train.py\n"), default);
        assert_eq!(python_of(&Command::new("/a/python3.14t")), "/a/python3.14t");
        let mut launcher = Command::new("/bin/mpirun");
        assert_eq!(python_of(launcher.args(["-n", "2", "/b/python3", "train.py"])), "/b/python3");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
