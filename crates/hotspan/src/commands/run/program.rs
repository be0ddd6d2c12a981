//! What `hotspan run` starts: Python with a script, folder, archive, module, code or standard input, or any command as it is.
//!
//! A command is looked for where a shell would look, then beside the Python that hotspan runs in: the scripts of an environment are
//! found although it is not activated.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::interpreter;
use crate::error::CommandError;

/// What was asked for on the command line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    pub(super) module: Option<&'a OsString>,
    pub(super) code: Option<&'a OsString>,
    /// A script or command with its arguments; with a module or code only the arguments.
    pub(super) words: &'a [OsString],
    /// The Python that was asked for.
    pub(super) python: Option<&'a Path>,
}

/// How a word is run.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    ByPython,
    /// By the Python that it names.
    By(OsString),
    Itself(OsString),
}

impl Program<'_> {
    /// The command to start.
    pub(super) fn command(&self) -> Result<Command, CommandError> {
        let option = self.module.map(|module| ("-m", module)).or(self.code.map(|code| ("-c", code)));
        if let Some((option, value)) = option {
            let mut command = Command::new(self.python());
            command.arg(option).arg(value).args(self.words);
            return Ok(command);
        }
        let Some((first, rest)) = self.words.split_first() else {
            return Err(CommandError::Usage(
                "nothing to run: give a script, a command, or -m and a module".to_owned(),
            ));
        };
        let mut command = match self.find(first)? {
            Run::Itself(path) => Command::new(path),
            Run::ByPython => by(self.python(), first),
            Run::By(python) => by(python, first),
        };
        command.args(rest);
        Ok(command)
    }

    /// The words as they were typed.
    pub(super) fn in_words(&self) -> String {
        let option = |option: &str, value: &OsString| [OsString::from(option), value.clone()];
        let module = self.module.into_iter().flat_map(|module| option("-m", module));
        let code = self.code.into_iter().flat_map(|code| option("-c", code));
        let words = module.chain(code).chain(self.words.iter().cloned());
        words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    fn python(&self) -> OsString {
        let chosen = self.python.map(|python| python.as_os_str().to_owned());
        chosen.or_else(|| env::var_os("HOTSPAN_PYTHON")).unwrap_or_else(|| "python3".into())
    }

    fn find(&self, first: &OsStr) -> Result<Run, CommandError> {
        let path = Path::new(first);
        let is_bare = !first.as_encoded_bytes().contains(&b'/');
        if first == "-" || (is_for_python(path) && path.exists()) {
            return Ok(Run::ByPython);
        }
        if is_bare && let Some(found) = self.in_path(path) {
            return Ok(Run::Itself(found));
        }
        if path.is_dir() {
            return if path.join("__main__.py").exists() {
                Ok(Run::ByPython)
            } else {
                let folder = path.display();
                Err(CommandError::Usage(format!("{folder}: a folder without __main__.py cannot be run")))
            };
        }
        if is_for_python(path) {
            return Err(CommandError::Usage(format!("{}: no such file", path.display())));
        }
        let runs_itself = !is_bare && is_executable(path);
        Ok(match interpreter::too_long(path) {
            Some(python) => Run::By(python),
            None if !runs_itself && interpreter::of_script(path).is_some() => Run::ByPython,
            None => Run::Itself(first.to_owned()),
        })
    }

    /// Where a shell would find a command, or else beside Python; beside the Python that was asked for before all.
    fn in_path(&self, command: &Path) -> Option<OsString> {
        let beside = |python: &Path| python.parent().map(|folder| folder.join(command));
        let found = |path: Option<PathBuf>| path.filter(|path| is_executable(path));
        if let Some(path) = found(self.python.and_then(beside)) {
            return Some(path.into_os_string());
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        if env::split_paths(&folders).any(|folder| is_executable(&folder.join(command))) {
            // As it was typed: programs see their name.
            return Some(command.as_os_str().to_owned());
        }
        let python = env::var_os("HOTSPAN_PYTHON").map(PathBuf::from);
        found(python.as_deref().and_then(beside)).map(PathBuf::into_os_string)
    }
}

fn by(python: OsString, script: &OsStr) -> Command {
    let mut command = Command::new(python);
    command.arg(script);
    command
}

/// Whether a name says that Python runs it: a script or an archive.
fn is_for_python(path: &Path) -> bool {
    let endings = ["py", "pyw", "pyz", "zip"];
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_run_by_python_or_by_themselves() {
        let folder = env::temp_dir().join(format!("hotspan-program-{}", std::process::id()));
        fs::create_dir_all(folder.join("package")).unwrap();
        for (file, text) in
            [("package/__main__.py", ""), ("archive.pyz", ""), ("plain", "#!/usr/bin/env python3\n")]
        {
            fs::write(folder.join(file), text).unwrap();
        }
        let find = |word: &str| {
            let program = Program { module: None, code: None, words: &[], python: None };
            program.find(folder.join(word).as_os_str())
        };
        for word in ["package", "archive.pyz", "plain"] {
            assert_eq!(find(word).unwrap(), Run::ByPython, "{word}");
        }
        assert!(find("missing.pyz").is_err() && find("").is_err());
        fs::set_permissions(folder.join("plain"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("plain").unwrap(), Run::Itself(folder.join("plain").into_os_string()));
        fs::remove_dir_all(folder).unwrap();
    }
}
