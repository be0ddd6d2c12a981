//! What a recording is called: as the program, not as what starts it. `torchrun train.py` gives `train`.

use std::path::Path;

use super::interpreter::is_python;
use super::program::Program;

/// Commands that start another one, which has the name.
const LAUNCHERS: [&str; 32] = [
    "accelerate",
    "composer",
    "conda",
    "coverage",
    "deepspeed",
    "env",
    "hatch",
    "horovodrun",
    "ionice",
    "kernprof",
    "mamba",
    "micromamba",
    "mpiexec",
    "mpirun",
    "nice",
    "nohup",
    "numactl",
    "pdm",
    "pipenv",
    "pixi",
    "poetry",
    "ray",
    "rye",
    "setsid",
    "srun",
    "stdbuf",
    "sudo",
    "taskset",
    "time",
    "timeout",
    "torchrun",
    "uv",
];
/// The same as modules of Python.
const LAUNCHING_MODULES: [&str; 5] = [
    "accelerate.commands.launch",
    "coverage",
    "kernprof",
    "torch.distributed.launch",
    "torch.distributed.run",
];
/// Launchers that take a module of Python in place of a script.
const TAKING_MODULES: [&str; 5] = ["accelerate", "composer", "coverage", "deepspeed", "torchrun"];

/// The name of a program.
pub(super) fn of(program: &Program<'_>) -> String {
    let words: Vec<String> = program.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = match (program.module, program.code) {
        (Some(module), _) => of_module(&module.to_string_lossy(), &words),
        (None, Some(_)) => "command".to_owned(),
        (None, None) => of_command(&words),
    };
    let name = name.trim_start_matches('.');
    if name.is_empty() { "program".to_owned() } else { name.to_owned() }
}

fn of_command(words: &[&str]) -> String {
    let Some((&first, rest)) = words.split_first() else { return String::new() };
    let own = file_name(first);
    if is_python(Path::new(own)) {
        return of_python(rest);
    }
    if ["sh", "bash", "dash", "zsh"].contains(&own) {
        let script = rest.iter().find(|word| !word.starts_with('-'));
        let is_code = rest.first().is_some_and(|word| word.starts_with('-') && word.ends_with('c'));
        return script.filter(|_| !is_code).map_or_else(|| own.to_owned(), |script| stem(script));
    }
    if LAUNCHERS.contains(&own) {
        return launched(rest, TAKING_MODULES.contains(&own)).unwrap_or_else(|| own.to_owned());
    }
    if first == "-" { "stdin".to_owned() } else { stem(first) }
}

/// What Python runs, by its arguments.
fn of_python(words: &[&str]) -> String {
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "-m" => {
                let Some((&module, rest)) = words.as_slice().split_first() else { break };
                return of_module(module, rest);
            }
            "-c" => return "command".to_owned(),
            "-" => return "stdin".to_owned(),
            "-X" | "-W" | "--check-hash-based-pycs" => {
                words.next();
            }
            _ if word.starts_with('-') => {}
            _ => return stem(word),
        }
    }
    "python".to_owned()
}

fn of_module(module: &str, arguments: &[&str]) -> String {
    let launched = || launched(arguments, true);
    let found = LAUNCHING_MODULES.contains(&module).then(launched).flatten();
    found.unwrap_or_else(|| module.to_owned())
}

/// What a launcher starts. Its own options may take values, so Python and scripts are looked for before any other word.
fn launched(words: &[&str], takes_modules: bool) -> Option<String> {
    for (index, &word) in words.iter().enumerate() {
        let after = &words[index + 1..];
        if is_python(Path::new(word)) {
            return Some(of_python(after));
        }
        if [".py", ".pyz", ".sh"].iter().any(|ending| word.ends_with(ending)) && !word.starts_with('-') {
            return Some(stem(word));
        }
        if takes_modules && (word == "-m" || word == "--module") {
            return after.first().map(|module| (*module).to_owned());
        }
        if LAUNCHERS.contains(&file_name(word)) {
            return Some(of_command(&words[index..]));
        }
    }
    let first = words.iter().position(|&word| word == "run" || word == "--").map_or(0, |index| index + 1);
    let is_command =
        |word: &&&str| !word.starts_with('-') && !word.contains('=') && !word.starts_with(char::is_numeric);
    words[first..].iter().find(is_command).filter(|_| !takes_modules).map(|word| stem(word))
}

fn file_name(word: &str) -> &str {
    word.trim_end_matches('/').rsplit('/').next().unwrap_or(word)
}

/// The name of a script without its ending; of a folder its own, and of its main file too.
fn stem(word: &str) -> String {
    let path = Path::new(word);
    let is_main = path.file_name().is_some_and(|name| name == "__main__.py");
    let path = if is_main { path.parent().unwrap_or(path) } else { path };
    let whole = if path.is_dir() || is_main { path.canonicalize().ok() } else { None };
    let path = whole.as_deref().unwrap_or(path);
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn a_recording_is_called_as_the_program() {
        let cases = [
            ("train.py --lr 1", "train"),
            ("/a/b/train.py", "train"),
            ("python -X dev -u train.py", "train"),
            ("python3.14t -m pkg.train 3", "pkg.train"),
            ("python -", "stdin"),
            ("- x", "stdin"),
            ("torchrun --nproc-per-node 2 train.py", "train"),
            ("/venv/bin/torchrun -m pkg.train", "pkg.train"),
            ("torchrun --no-python ./solver", "torchrun"),
            ("python -m torch.distributed.run --nproc-per-node 2 train.py x.py", "train"),
            ("accelerate launch --config_file c.yaml train.py", "train"),
            ("accelerate launch -m pkg.train", "pkg.train"),
            ("mpirun -n 2 python train.py", "train"),
            ("srun -m block torchrun train.py", "train"),
            ("uv run train.py", "train"),
            ("uv run pytest tests", "pytest"),
            ("poetry run python x.py", "x"),
            ("env A=1 python x.py", "x"),
            ("nice -n 10 pytest tests/test_x.py", "test_x"),
            ("ray job submit --working-dir . -- python x.py", "x"),
            ("pytest tests/test_x.py", "pytest"),
            ("bash run.sh train.py", "run"),
            ("sh -c true", "sh"),
            ("./.hidden", "hidden"),
        ];
        for (line, expected) in cases {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let program = Program { module: None, code: None, words: &words, python: None };
            assert_eq!(of(&program), expected, "{line}");
        }
    }
}
