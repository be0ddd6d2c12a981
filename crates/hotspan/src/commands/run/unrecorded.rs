//! Python processes of the program that record nothing: they ignore PYTHONPATH, or got an environment without ours. They are
//! found while they run, in the list of the program's descendants, and told of by name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hotspan_collect::process_tree::{BirthWatch, ProcessNumber};
use serde_json::{Value, json};

use crate::commands::run::interpreter::is_python;
use crate::run_folder::{process_of, recordings};

/// How often to look.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);
/// A look at all processes of a large job takes long; the next one waits so many times as long.
const REST: u32 = 100;
/// What lives shorter than this may be a process on its way to another program.
const SHORTEST: Duration = Duration::from_millis(100);
/// So many are named.
const MOST_NAMED: usize = 20;
/// Longer commands are cut.
const LONGEST_COMMAND: usize = 120;

/// The descendants of the program that are Python.
#[derive(Default)]
pub(super) struct Descendants {
    births: BirthWatch,
    pythons: BTreeMap<ProcessNumber, Seen>,
    /// Not before this moment again.
    rests_until: Option<Instant>,
}

struct Seen {
    words: Vec<String>,
    has_our_environment: bool,
    /// When last seen.
    age: Age,
}

/// How long a process has been there, and the processor time that it had.
#[derive(Clone, Copy, Default)]
struct Age {
    alive: Duration,
    ran: Duration,
}

impl Descendants {
    /// Looks at the processes that there are now.
    pub(super) fn look(&mut self, program: u32) {
        let program = ProcessNumber(program);
        let begun = Instant::now();
        // Most record themselves, and tell more than can be seen from here.
        for (&process, seen) in self.pythons.iter_mut().filter(|(_, seen)| seen.is_kept_out()) {
            seen.age = Age::of(process).unwrap_or(seen.age);
        }
        if self.rests_until.is_some_and(|until| begun < until) || !self.births.is_changed() {
            return;
        }
        for process in std::iter::once(program).chain(program.descendants()) {
            // A process keeps its number when it becomes another program.
            let Some(words) = words(process).filter(|words| runs_python(process, words)) else { continue };
            let seen = self.pythons.entry(process).or_insert_with(|| Seen {
                words: Vec::new(),
                has_our_environment: false,
                age: Age::default(),
            });
            if seen.words != words {
                seen.has_our_environment = has_our_environment(process);
                seen.words = words;
            }
            seen.age = Age::of(process).unwrap_or(seen.age);
        }
        self.rests_until = Some(Instant::now() + begun.elapsed() * REST);
    }

    /// Those without a recording, for the report.
    pub(super) fn unrecorded(&self, spool: &Path) -> Value {
        let recorded: Vec<u32> = recordings(spool).filter_map(|path| process_of(&path)).collect();
        let mut found: Vec<(&ProcessNumber, &Seen)> = self
            .pythons
            .iter()
            .filter(|(process, seen)| !recorded.contains(&process.0) && seen.age.alive >= SHORTEST)
            .collect();
        found.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.age.ran));
        let describe = |(process, seen): &(&ProcessNumber, &Seen)| {
            json!({
                "process": process.0,
                "command": in_words(&seen.words),
                "alive_ns": seen.age.alive.as_nanos() as u64,
                "ran_ns": seen.age.ran.as_nanos() as u64,
                "reason": reason(seen),
            })
        };
        let named: Vec<Value> = found.iter().take(MOST_NAMED).map(describe).collect();
        json!({"count": found.len(), "named": named})
    }
}

impl Seen {
    fn is_kept_out(&self) -> bool {
        !self.has_our_environment || ignoring_option(&self.words).is_some()
    }
}

fn reason(seen: &Seen) -> String {
    match ignoring_option(&seen.words) {
        Some(option) => format!("-{option} makes it ignore PYTHONPATH or sitecustomize"),
        None if !seen.has_our_environment => "it was started with another environment".to_owned(),
        None => "it could not be recorded".to_owned(),
    }
}

/// The option of Python that keeps hotspan out.
fn ignoring_option(words: &[String]) -> Option<char> {
    let mut words = words.iter().skip(1);
    while let Some(options) = words.next().and_then(|word| word.strip_prefix('-')) {
        if options.is_empty() || options.starts_with('-') {
            continue;
        }
        for (index, option) in options.char_indices() {
            match option {
                'I' | 'E' | 'S' => return Some(option),
                'c' | 'm' => return None,
                'X' | 'W' => {
                    // Its value follows at once, or is the next word.
                    if index + 1 == options.len() {
                        words.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

fn words(process: ProcessNumber) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words = bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    words.pop();
    (!words.is_empty()).then_some(words)
}

fn runs_python(process: ProcessNumber, words: &[String]) -> bool {
    match fs::read_link(format!("/proc/{process}/exe")) {
        Ok(program) => is_python(&program),
        Err(_) => words.first().is_some_and(|word| is_python(Path::new(word))),
    }
}

fn has_our_environment(process: ProcessNumber) -> bool {
    let bytes = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).any(|variable| variable.starts_with(b"HOTSPAN_RUN="))
        && bytes.windows(b"hotspan/_inject".len()).any(|window| window == b"hotspan/_inject")
}

impl Age {
    /// Of a process that lives.
    fn of(process: ProcessNumber) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after_name.split(' ').collect();
        if fields.first().is_some_and(|state| matches!(*state, "Z" | "X")) {
            return None;
        }
        // Fields 14, 15 and 22 of the file, whose third is the state: hundredths of a second.
        let time = |index: usize| {
            fields.get(index)?.parse().ok().map(|ticks: u64| Duration::from_millis(ticks * 10))
        };
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let uptime = Duration::try_from_secs_f64(uptime.split(' ').next()?.parse().ok()?).ok()?;
        Some(Self { alive: uptime.saturating_sub(time(19)?), ran: time(11)? + time(12)? })
    }
}

fn in_words(words: &[String]) -> String {
    let mut text: String = words.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > LONGEST_COMMAND {
        text = text.chars().take(LONGEST_COMMAND).chain(['…']).collect();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_keep_us_out_are_found() {
        let option =
            |command: &str| ignoring_option(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(option("python -I -c pass"), Some('I'));
        assert_eq!(option("python -uE script.py"), Some('E'));
        assert_eq!(option("python -X dev -S script.py"), Some('S'));
        assert_eq!(option("python -Xdev -B script.py -I"), None);
        assert_eq!(option("python -m module -E"), None);
        assert_eq!(option("python -W ignore script.py -S"), None);
        assert_eq!(option("python"), None);
    }

    #[test]
    fn a_python_without_a_recording_is_named() {
        let script = "import time; time.sleep(60)";
        let Ok(mut child) = std::process::Command::new("python3").args(["-I", "-c", script]).spawn() else {
            return;
        };
        let mut seen = Descendants::default();
        let number = ProcessNumber(child.id());
        let is_old =
            |seen: &Descendants| seen.pythons.get(&number).is_some_and(|seen| seen.age.alive >= SHORTEST);
        while !is_old(&seen) {
            seen.look(std::process::id());
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let told = seen.unrecorded(Path::new("/does/not/exist"));
        let named = told["named"].as_array().unwrap();
        let own = named.iter().find(|one| one["process"] == number.0).unwrap();
        // A launcher of versions may have put another path in place of the name.
        let command = own["command"].as_str().unwrap();
        assert!(command.ends_with(&format!("python3 -I -c {script}")), "{command}");
        assert_eq!(own["reason"], "-I makes it ignore PYTHONPATH or sitecustomize");
    }
}
