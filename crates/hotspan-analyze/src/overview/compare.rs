//! Two runs of a program side by side: wall time and its parts, steps, operators, functions, lines and findings.
//!
//! Where both runs have steps, their spread tells change from noise for steps and operators ([`crate::diff`]). The parts of the
//! wall time, functions and lines come from one run each: one has changed when the difference exceeds what sampling can miss by, a
//! hundredth of the wall time, and the third by which the same work may differ on a busy machine, or the part of its time for which
//! a run queued for a processor if that is more. Where it exceeds all but the last, one run of each does not tell.

use hashbrown::HashMap;
use hotspan_store::Duration;

use crate::diff::{By, Diff, DiffRow, Verdict, diff};
use crate::model::Model;
use crate::overview::hot::{self, HotRow};
use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::wall_time::{Activity, Queued, WallTime};

/// A difference below this part of the wall time is noise.
const LEAST_OF_WHOLE: i64 = 100;
/// A difference below this part of the larger time may be the machine's.
const LEAST_OF_PART: f64 = 1.0 / 3.0;
/// Rows of each table.
const TOP: usize = 10;

/// One part of the wall time in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartChange {
    /// What the program was doing.
    pub activity: Activity,
    /// For how long in the first run.
    pub before: Duration,
    /// For how long in the second.
    pub after: Duration,
    /// Whether the difference is more than noise.
    pub verdict: Verdict,
}

/// A function or a line in both runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotChange {
    /// The function.
    pub name: String,
    /// Where it is.
    pub location: String,
    /// Its own time in the first run; of a line, with all it called.
    pub before: Duration,
    /// In the second.
    pub after: Duration,
    /// Whether the difference is more than noise.
    pub verdict: Verdict,
}

/// Two runs.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The wall time of both.
    pub wall_time: Option<(Duration, Duration)>,
    /// Its parts, largest difference first.
    pub parts: Vec<PartChange>,
    /// A step, where both have steps, and how many of them.
    pub step: Option<(DiffRow, (u64, u64))>,
    /// Operators.
    pub operators: Diff,
    /// Functions, largest difference first.
    pub functions: Vec<HotChange>,
    /// Lines of the program, largest difference first.
    pub lines: Vec<HotChange>,
    /// Rules that found something in the first run only.
    pub findings_gone: Vec<&'static str>,
    /// Rules that found something in the second run only.
    pub findings_new: Vec<&'static str>,
    /// Rules that found something in both.
    pub findings_kept: Vec<&'static str>,
}

/// Compares two runs.
#[must_use]
pub fn compare(before: &Model, after: &Model) -> Comparison {
    // Of launchers, those that they started are compared.
    let described = |model| Model::job(model).as_ref().map_or(model, |job| &job.model);
    let rules = |model: &Model| -> Vec<&'static str> {
        model.advice().findings.iter().map(|(rule, _)| rule.id).collect()
    };
    let (found_before, found_after) = (rules(before), rules(after));
    let (before, after) = (described(before), described(after));
    let walls = before.wall_time().as_ref().zip(after.wall_time().as_ref());
    let operators = diff(before, after, By::Operator);
    let step = operators.steps.map(|steps| (operators.total.clone(), steps));
    let only = |left: &[&'static str], right: &[&'static str]| -> Vec<&'static str> {
        left.iter().copied().filter(|rule| !right.contains(rule)).collect()
    };
    let scale = |model: &Model, wall| Scale::of(wall, Queued::of(model).map_or(0.0, Queued::share));
    let scales = walls.map(|walls| (scale(before, walls.0), scale(after, walls.1)));
    let hot = |rows: HotRows| {
        scales.map(|scales| hot_changes(rows(before), rows(after), scales)).unwrap_or_default()
    };
    Comparison {
        wall_time: walls.map(|(before, after)| (before.total, after.total)),
        parts: walls.zip(scales).map(|(walls, scales)| parts(walls, scales)).unwrap_or_default(),
        step,
        functions: hot(hot::functions),
        lines: hot(hot::lines),
        operators,
        findings_gone: only(&found_before, &found_after),
        findings_new: only(&found_after, &found_before),
        findings_kept: found_before.iter().copied().filter(|rule| found_after.contains(rule)).collect(),
    }
}

fn parts((before, after): (&WallTime, &WallTime), scales: (Scale, Scale)) -> Vec<PartChange> {
    let time = |wall: &WallTime, activity: &Activity| {
        let part = wall.parts.iter().find(|part| part.activity == *activity);
        part.map_or(Duration::ZERO, |part| part.time)
    };
    let only_after = after.parts.iter().filter(|part| time(before, &part.activity) == Duration::ZERO);
    let activities = before.parts.iter().chain(only_after).map(|part| part.activity.clone());
    let mut rows: Vec<PartChange> = activities
        .map(|activity| {
            let (left, right) = (time(before, &activity), time(after, &activity));
            let verdict = verdict((scales.0, left), (scales.1, right));
            PartChange { activity, before: left, after: right, verdict }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.after - row.before).0.saturating_abs()));
    rows
}

/// How functions or lines are found in a trace.
type HotRows = fn(&Model) -> Vec<HotRow>;

/// What a time of a run is judged by.
#[derive(Clone, Copy, Debug)]
struct Scale {
    total: Duration,
    /// How much time a sample stands for; 0 where all was recorded.
    period: f64,
    /// For how much of its time it queued for a processor, as far as that is known.
    queued: f64,
}

impl Scale {
    fn of(wall: &WallTime, queued: f64) -> Self {
        let period = if wall.samples == 0 { 0.0 } else { wall.total.0 as f64 / wall.samples as f64 };
        Self { total: wall.total, period, queued }
    }
}

fn verdict(before: (Scale, Duration), after: (Scale, Duration)) -> Verdict {
    let difference = (after.1 - before.1).0.saturating_abs();
    let of_whole = before.0.total.min(after.0.total).0 / LEAST_OF_WHOLE;
    let of_part = before.1.max(after.1).0 as f64 * LEAST_OF_PART.max(before.0.queued).max(after.0.queued);
    // A count of n samples is off by the square root of n; twice that in 1 of 20 cases.
    let variance = before.0.period * before.1.0 as f64 + after.0.period * after.1.0 as f64;
    if difference <= of_whole || difference as f64 <= 2.0 * variance.sqrt() {
        Verdict::Noise
    } else if difference as f64 > of_part {
        Verdict::Change
    } else {
        Verdict::Unknown
    }
}

fn hot_changes(before: Vec<HotRow>, after: Vec<HotRow>, scales: (Scale, Scale)) -> Vec<HotChange> {
    let mut rows: HashMap<(String, String), (Duration, Duration)> = HashMap::new();
    for row in before {
        rows.entry((row.name, row.location)).or_default().0 += row.own;
    }
    for row in after {
        rows.entry((row.name, row.location)).or_default().1 += row.own;
    }
    let change = |((name, location), (before, after))| {
        let verdict = verdict((scales.0, before), (scales.1, after));
        HotChange { name, location, before, after, verdict }
    };
    let mut changes: Vec<HotChange> = rows.into_iter().map(change).collect();
    changes.sort_by(|left, right| {
        let size = |row: &HotChange| (row.after - row.before).0.saturating_abs();
        (size(right), &left.name, &left.location).cmp(&(size(left), &right.name, &right.location))
    });
    changes
}

impl Comparison {
    /// What changed, in sentences.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some((before, after)) = self.wall_time {
            words.push(format!("Wall time: {}.", change_in_words(before, after)));
        }
        if let Some((row, (steps_before, steps_after))) = &self.step
            && let (Some(before), Some(after)) = (row.before, row.after)
        {
            let judged = match row.verdict {
                Verdict::Change => "more than runs of one program differ",
                Verdict::Noise => "no more than runs of one program differ",
                Verdict::Unknown | Verdict::New | Verdict::Gone => "too few steps to tell from noise",
            };
            let change = change_in_words(before.time, after.time);
            words.push(format!(
                "A step (the median of {steps_before} and of {steps_after}): {change}; {judged}."
            ));
        }
        let changed = |faster: bool| {
            let rows = self
                .parts
                .iter()
                .filter(move |row| row.verdict == Verdict::Change && (row.after < row.before) == faster);
            rows.take(3)
                .map(|row| {
                    let sign = if faster { "-" } else { "+" };
                    let change = Duration((row.after - row.before).0.saturating_abs());
                    format!("{} ({sign}{change})", row.activity.title())
                })
                .collect::<Vec<_>>()
        };
        for (title, faster) in [("Less time in", true), ("More time in", false)] {
            let rows = changed(faster);
            if !rows.is_empty() {
                words.push(format!("{title}: {}.", rows.join(", ")));
            }
        }
        let findings = [
            ("Findings that are gone", &self.findings_gone),
            ("New findings", &self.findings_new),
            ("Findings that remain", &self.findings_kept),
        ];
        for (title, rules) in findings {
            if !rules.is_empty() {
                words.push(format!("{title}: {}.", rules.join(", ")));
            }
        }
        words
    }

    /// The tables: parts of the wall time, then what changed by more than noise.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        let total = self.wall_time.map(|(before, after)| ("wall time".to_owned(), before, after, None));
        let of_part = |row: &PartChange| (row.activity.title(), row.before, row.after, Some(row.verdict));
        let rows: Vec<_> = total.into_iter().chain(self.parts.iter().map(of_part)).collect();
        let parts =
            Schema::<(String, Duration, Duration, Option<Verdict>)>::new("parts", "Where the time went")
                .text("activity", "Activity", |row| &row.0)
                .help("What the main thread did.");
        let parts = with_change(parts, |row| (row.1, row.2))
            .text("verdict", "Verdict", |row| row.3.map(Verdict::name))
            .help("Whether the difference is more than noise.")
            .table(&rows);
        // `hotspan diff` has the calls too; here names are worth more.
        let operators = self.operators.report(TOP, false).with_columns(&[
            "name",
            "before",
            "after",
            "change",
            "change_percent",
            "verdict",
        ]);
        let title = format!("Operators: {}", operators.title.to_lowercase());
        let mut tables = vec![parts, operators.titled(&title)];
        // The first row of a comparison is its total.
        tables.retain(|table| table.rows.len() > 1);
        tables.extend(hot_table(("functions", "Functions that changed"), "Function", &self.functions));
        tables.extend(hot_table(("lines", "Lines that changed"), "In", &self.lines));
        tables
    }
}

fn hot_table((id, title): (&str, &str), name: &str, rows: &[HotChange]) -> Option<Table> {
    with_change(Schema::<HotChange>::new(id, title), |row| (row.before, row.after))
        .text("function", name, |row| &row.name)
        .help("The function, of Python or native.")
        .text("place", "Where", |row| &row.location)
        .help("The file and line, or the package of native code.")
        .table(rows.iter().filter(|row| row.verdict == Verdict::Change).take(TOP))
        .filled()
}

/// Adds the columns of a change.
fn with_change<'a, R>(schema: Schema<'a, R>, times: fn(&R) -> (Duration, Duration)) -> Schema<'a, R> {
    schema
        .duration("before", "Before", move |row| times(row).0)
        .help("The time in the first recording.")
        .duration("after", "After", move |row| times(row).1)
        .help("The time in the second recording.")
        .duration("change", "Change", move |row| times(row).1 - times(row).0)
        .help("How much longer the second took.")
        .percent("change_percent", "Change %", move |row| {
            let (before, after) = times(row);
            share(after - before, before).filter(|_| before.0 > 0)
        })
        .help("The change as a share of the time before.")
}

/// `5.10 s, then 3.20 s: 37 % less (1.6 times as fast)`.
fn change_in_words(before: Duration, after: Duration) -> String {
    let change = if before.0 <= 0 || after.0 <= 0 {
        String::new()
    } else {
        let ratio = after.0 as f64 / before.0 as f64;
        let percent = (ratio - 1.0) * 100.0;
        match percent {
            percent if percent <= -0.5 => {
                format!(": {:.0} % less ({:.2} times as fast)", -percent, 1.0 / ratio)
            }
            percent if percent >= 0.5 => format!(": {percent:.0} % more ({ratio:.2} times as long)"),
            _ => ": the same".to_owned(),
        }
    };
    format!("{before}, then {after}{change}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(parts: &[(Activity, i64)], samples: u64) -> WallTime {
        let parts = parts.iter().map(|(activity, time)| (activity.clone(), Duration(*time)));
        WallTime::of_parts(parts, samples)
    }

    fn compared(before: &WallTime, after: &WallTime, queued: f64) -> Vec<PartChange> {
        parts((before, after), (Scale::of(before, 0.0), Scale::of(after, queued)))
    }

    #[test]
    fn small_differences_of_parts_are_noise() {
        let before = wall(&[(Activity::Python, 800), (Activity::Io, 200)], 100);
        let after = wall(&[(Activity::Python, 300), (Activity::Io, 210), (Activity::Sleeping, 30)], 54);
        let rows = compared(&before, &after, 0.0);
        let verdicts: Vec<_> = rows.iter().map(|row| (row.activity.clone(), row.verdict)).collect();
        assert_eq!(
            verdicts,
            [
                (Activity::Python, Verdict::Change),
                (Activity::Sleeping, Verdict::Noise),
                (Activity::Io, Verdict::Noise)
            ]
        );
    }

    #[test]
    fn one_run_of_each_does_not_tell_a_slower_machine_from_a_slower_program() {
        let before = wall(&[(Activity::Operators, 838_100), (Activity::Python, 8_900)], 0);
        let after = wall(&[(Activity::Operators, 1_049_000), (Activity::Python, 17_000)], 0);
        let verdicts = |before, after, queued| -> Vec<_> {
            compared(before, after, queued).into_iter().map(|row| row.verdict).collect()
        };
        assert_eq!(verdicts(&before, &after, 0.0), [Verdict::Unknown, Verdict::Noise]);
        let after = wall(&[(Activity::Operators, 1_900_000), (Activity::Python, 17_000)], 0);
        assert_eq!(verdicts(&before, &after, 0.0), [Verdict::Change, Verdict::Noise]);
        assert_eq!(verdicts(&before, &after, 0.6), [Verdict::Unknown, Verdict::Noise], "it queued for that");
    }

    #[test]
    fn changes_read_well() {
        let words = |before, after| change_in_words(Duration(before), Duration(after));
        assert_eq!(words(2_000, 1_000), "2.00 µs, then 1.00 µs: 50 % less (2.00 times as fast)");
        assert_eq!(words(1_000, 1_500), "1.00 µs, then 1.50 µs: 50 % more (1.50 times as long)");
        assert_eq!(words(1_000, 1_001), "1.00 µs, then 1.00 µs: the same");
        assert_eq!(words(0, 5), "0 ns, then 5 ns");
    }
}
