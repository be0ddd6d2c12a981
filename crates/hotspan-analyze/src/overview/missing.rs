//! What is missing from a recording, in words, worst first: losses, processes that were cut off, that are not recorded at all, or
//! whose operators are not.

use hotspan_store::{Duration, Loss, LossCount, Severity, Trace, keys};
use serde_json::Value;

use crate::model::Model;
use crate::wall_time::{PROCESSES_KEY, RUN_KEY};

/// So many of a kind are named.
const MOST_NAMED: usize = 4;
/// Longer commands are cut.
const LONGEST_COMMAND: usize = 60;

/// How a recording was damaged, in words, worst first: it was cut off, events were lost, or something was repaired. Numbers may be
/// too small or off.
#[must_use]
pub fn damage(model: &Model) -> Vec<String> {
    let trace: &Trace = model.trace();
    let run = trace.metadata().value(RUN_KEY).unwrap_or(Value::Null);
    let processes = trace.metadata().value(PROCESSES_KEY);
    let processes = processes.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let cut_off = cut_off(processes, &run);
    // Each is a process, and told as such.
    let is_known = processes.iter().any(|about| about["is_cut_off"] == true);
    let is_told = |loss: &LossCount| loss.loss == Loss::TruncatedFile && is_known;
    let in_words = |loss: &LossCount| format!("{} ({} x {})", loss.loss.help(), loss.count, loss.loss.name());
    let losses = model.losses().counts().iter().filter(|loss| loss.loss.severity() > Severity::Note);
    let losses = losses.filter(|loss| !is_told(loss)).map(in_words);
    kept(&run).into_iter().chain(shown(trace, &run)).chain(losses).chain(cut_off).collect()
}

/// What a recording lacks, in words, worst first: its damage, then what was not recorded in the first place.
#[must_use]
pub fn missing(model: &Model) -> Vec<String> {
    let run = model.metadata().value(RUN_KEY).unwrap_or(Value::Null);
    let processes = model.metadata().value(PROCESSES_KEY);
    let processes = processes.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut missing = damage(model);
    missing.extend(unrecorded(&run["unrecorded"]));
    missing.extend(without_operators(processes));
    let wall_time = model.wall_time().as_ref();
    if wall_time.is_some_and(|wall_time| wall_time.samples == 0 && wall_time.total.0 > 1_000_000_000) {
        missing.push("no samples of the main thread: functions and lines are not known".to_owned());
    }
    missing
}

/// What is left of a recording that got too large or too long.
fn kept(run: &Value) -> Option<String> {
    let time = |key: &str| run[key].as_i64();
    let (since, start) = (time("kept_since_unix_ns")?, time("start_unix_ns")?);
    let end = time("end_unix_ns").unwrap_or(since).max(since);
    let (kept, all) = (Duration(end - since), Duration(end.saturating_sub(start)));
    Some(format!(
        "the last {} of {} are recorded: what was before was dropped, to stay within --max-size or --max-time",
        roughly(kept),
        roughly(all)
    ))
}

/// Which part of a recording that is larger than memory is shown.
fn shown(trace: &Trace, run: &Value) -> Option<String> {
    let since = trace.metadata().value(keys::READ_SINCE)?.as_i64()?;
    let (start, end) = (run["start_unix_ns"].as_i64()?, run["end_unix_ns"].as_i64()?);
    let (last, all) = (end.saturating_sub(since).max(0), end.saturating_sub(start));
    Some(format!("what is shown are the last {} of {}", roughly(Duration(last)), roughly(Duration(all))))
}

fn roughly(time: Duration) -> String {
    let seconds = time.0 / 1_000_000_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

/// Processes whose recordings have no end. How the program itself ended is known, and when; of others only that nothing was
/// written any more. Those that wrote all they had before a signal ended them lack nothing: pools end their workers so.
fn cut_off(processes: &[Value], run: &Value) -> Vec<String> {
    let is_cut_off = |about: &&Value| about["is_cut_off"] == true;
    let is_program = |about: &&Value| about["process"] == run["pid"];
    let (program, others): (Vec<&Value>, Vec<&Value>) =
        processes.iter().filter(is_cut_off).partition(is_program);
    let mut told = Vec::new();
    // A process that became another program, from C, has left a recording for each but the last.
    for about in program {
        let last = processes.iter().rfind(|other| other["process"] == about["process"]);
        told.push(if last == Some(about) { end_of_program(about, run) } else { end_by_exec(about) });
    }
    let (running, ended): (Vec<&Value>, Vec<&Value>) = others
        .into_iter()
        .filter(|about| about["signal"].is_null())
        .partition(|about| about["is_running"] == true);
    told.extend(group(&running).map(|names| {
        let verb = if running.len() == 1 { "was" } else { "were" };
        format!("{names} {verb} still running: the recording was cut off there")
    }));
    told.extend(group(&ended).map(|names| {
        format!(
            "{names} ended without a last word: the recording was cut off, at most its last second is missing"
        )
    }));
    told
}

fn end_by_exec(about: &Value) -> String {
    format!(
        "{} became another program: the recording was cut off, at most its last second is missing",
        name(about)
    )
}

fn end_of_program(about: &Value, run: &Value) -> String {
    let ended = run["ended"].as_str().unwrap_or_default();
    let how = match ended.strip_prefix("by signal ").and_then(|number| number.parse().ok()) {
        Some(number) => format!("was killed by {}", signal_name(number)),
        None if ended.is_empty() => "did not come to its end".to_owned(),
        None => format!("ended {ended}"),
    };
    let moments = run["end_unix_ns"].as_i64().zip(about["written_unix_ns"].as_i64());
    let missing = match moments {
        Some((end, written)) => {
            // Rounded up: it says at most.
            let tenths = end.saturating_sub(written).max(0) / 100_000_000 + 1;
            format!("at most the last {}.{} s are missing", tenths / 10, tenths % 10)
        }
        None => "at most its last second is missing".to_owned(),
    };
    format!("{} {how}: the recording was cut off, {missing}", name(about))
}

/// Python processes that nobody recorded.
fn unrecorded(unrecorded: &Value) -> Option<String> {
    let count = unrecorded["count"].as_u64().filter(|&count| count > 0)?;
    let named = unrecorded["named"].as_array().map_or(&[][..], Vec::as_slice);
    let describe = |about: &Value| {
        let alive = Duration(about["alive_ns"].as_i64().unwrap_or(0));
        let reason = about["reason"].as_str().unwrap_or_default();
        format!("{} (about {alive}; {reason})", command(about))
    };
    let mut names: Vec<String> = named.iter().take(MOST_NAMED).map(describe).collect();
    let more = count.saturating_sub(names.len() as u64);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let what = if count == 1 { "Python process was" } else { "Python processes were" };
    Some(format!("{count} {what} not recorded: {}", names.join(", ")))
}

/// Processes with a torch whose operators are not recorded, by the reason.
fn without_operators(processes: &[Value]) -> Vec<String> {
    let reason = |about: &Value| {
        let operators = &about["operators"];
        (operators["recorded"] == false).then(|| operators["reason"].as_str().unwrap_or("unknown").to_owned())
    };
    let mut reasons: Vec<String> = processes.iter().filter_map(reason).collect();
    reasons.sort();
    reasons.dedup();
    let late: Vec<&Value> = processes.iter().filter(|about| about["operators"]["is_late"] == true).collect();
    let mut told: Vec<String> = reasons
        .iter()
        .filter_map(|wanted| {
            let alike: Vec<&Value> =
                processes.iter().filter(|about| reason(about).as_ref() == Some(wanted)).collect();
            Some(format!("torch operators of {} are not recorded: {wanted}", group(&alike)?))
        })
        .collect();
    told.extend(group(&late).map(|names| {
        format!(
            "torch came into {names} by an unusual way: the operators of its first moments are not recorded"
        )
    }));
    told
}

/// One process by its name, several by the first of them.
fn group(processes: &[&Value]) -> Option<String> {
    let first = name(processes.first()?);
    Some(match processes.len() {
        1 => first,
        count => format!("{count} processes (such as {first})"),
    })
}

fn name(about: &Value) -> String {
    let command = command(about);
    let number = about["process"].as_i64().unwrap_or(0);
    if command.is_empty() { format!("process {number}") } else { format!("process {number} ({command})") }
}

fn command(about: &Value) -> String {
    let text = about["command"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= LONGEST_COMMAND {
        return text;
    }
    text.chars().take(LONGEST_COMMAND).chain(['…']).collect()
}

fn signal_name(number: u32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        number => return format!("signal {number}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn about(process: u32, command: &str, is_running: bool) -> Value {
        json!({
            "process": process, "command": command, "is_cut_off": true, "is_running": is_running,
            "written_unix_ns": 5_000_000_000_i64,
        })
    }

    #[test]
    fn an_end_is_told_with_what_is_missing() {
        let run = json!({"pid": 1, "ended": "by signal 9", "end_unix_ns": 5_150_000_000_i64});
        let told = cut_off(&[about(1, "python train.py", false), about(2, "python", true)], &run);
        assert_eq!(
            told,
            [
                "process 1 (python train.py) was killed by SIGKILL: the recording was cut off, at most the last 0.2 s are missing",
                "process 2 (python) was still running: the recording was cut off there",
            ]
        );
        let workers = [about(3, "worker", false), about(4, "worker", false)];
        assert_eq!(
            cut_off(&workers, &run),
            [
                "2 processes (such as process 3 (worker)) ended without a last word: the recording was cut off, at most its last second is missing"
            ]
        );
        let mut worker = about(5, "worker", false);
        worker["signal"] = 15.into();
        assert!(cut_off(&[worker], &run).is_empty(), "it lacks nothing");
        let replaced = [about(1, "first", false), json!({"process": 1, "is_cut_off": false})];
        assert_eq!(
            cut_off(&replaced, &run),
            [
                "process 1 (first) became another program: the recording was cut off, at most its last second is missing"
            ]
        );
    }

    #[test]
    fn processes_that_nobody_recorded_are_named() {
        let one =
            json!({"command": "python -I -c pass", "alive_ns": 1_000_000_000, "reason": "because of -I"});
        let told = unrecorded(&json!({"count": 6, "named": vec![one; 6]})).unwrap();
        assert!(
            told.starts_with(
                "6 Python processes were not recorded: python -I -c pass (about 1.00 s; because of -I), "
            ),
            "{told}"
        );
        assert!(told.ends_with(", 2 more"), "{told}");
        assert_eq!(unrecorded(&json!({"count": 0})), None);
        assert_eq!(unrecorded(&Value::Null), None);
    }

    #[test]
    fn missing_operators_are_told_by_reason() {
        let process = |number: u32, reason: &str| json!({"process": number, "command": "rank", "operators": {"recorded": false, "reason": reason}});
        let fine = json!({"process": 9, "operators": {"recorded": true}});
        let told = without_operators(&[process(1, "no compiler"), process(2, "no compiler"), fine]);
        assert_eq!(
            told,
            ["torch operators of 2 processes (such as process 1 (rank)) are not recorded: no compiler"]
        );
    }
}
