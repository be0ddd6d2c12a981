//! Functions as pstats prints them, character by character.

use std::fmt::Write;

use hashbrown::HashMap;
use hotspan_store::Duration;

use super::{Calls, FunctionName, FunctionRow, Functions, Restriction};

/// What stands above a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// The files the functions were read from, one a line.
    pub files: Vec<String>,
}

fn seconds(time: Duration) -> f64 {
    time.0 as f64 / 1e9
}

fn time(seconds: f64) -> String {
    format!("{seconds:8.3}")
}

fn per(time_spent: Duration, count: i64) -> String {
    if count == 0 { " ".repeat(8) } else { time(seconds(time_spent) / count as f64) }
}

/// Letters, as Python counts them.
fn width(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, to: usize) -> String {
    let missing = to.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

impl Functions {
    /// `print_stats`.
    #[must_use]
    pub fn text(&self, heading: &Heading, restrictions: &[Restriction]) -> String {
        let mut out = String::new();
        for file in &heading.files {
            out.push_str(file);
            out.push('\n');
        }
        if !heading.files.is_empty() {
            out.push('\n');
        }
        let mut all = Calls::default();
        self.rows.iter().for_each(|row| all.add(row.sums));
        let _ = write!(out, "         {} function calls ", all.calls);
        if all.calls != all.primitive {
            let _ = write!(out, "({} primitive calls) ", all.primitive);
        }
        let _ = write!(out, "in {:.3} seconds\n\n", seconds(all.own));
        let Some((rows, _)) = self.chosen(restrictions, &mut out) else { return out };
        out.push_str("   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n");
        for row in rows {
            let sums = row.sums;
            let _ = writeln!(
                out,
                "{:>9} {} {} {} {} {}",
                sums.count_text(),
                time(seconds(sums.own)),
                per(sums.own, sums.calls),
                time(seconds(sums.total)),
                per(sums.total, sums.primitive),
                row.function.text()
            );
        }
        out.push_str("\n\n");
        out
    }

    /// `print_callers`.
    #[must_use]
    pub fn callers_text(&self, restrictions: &[Restriction]) -> String {
        let mut out = String::new();
        let Some((rows, width)) = self.chosen(restrictions, &mut out) else { return out };
        self.call_heading(&mut out, width, "was called by...");
        for row in rows {
            let callers = row.callers.iter().map(|(caller, sums)| (caller, *sums)).collect();
            call_lines(&mut out, width, &row.function, "<-", callers);
        }
        out.push_str("\n\n");
        out
    }

    /// `print_callees`.
    #[must_use]
    pub fn callees_text(&self, restrictions: &[Restriction]) -> String {
        let mut out = String::new();
        let Some((rows, width)) = self.chosen(restrictions, &mut out) else { return out };
        self.call_heading(&mut out, width, "called...");
        let mut callees: HashMap<&FunctionName, Vec<(&FunctionName, Calls)>> = HashMap::new();
        for row in &self.rows {
            for (caller, sums) in &row.callers {
                callees.entry(caller).or_default().push((&row.function, *sums));
            }
        }
        for row in rows {
            let found = callees.remove(&row.function).unwrap_or_default();
            call_lines(&mut out, width, &row.function, "->", found);
        }
        out.push_str("\n\n");
        out
    }

    /// Says what is left out, and returns the rest with the width of its names. `None`: nothing is left.
    fn chosen(&self, restrictions: &[Restriction], out: &mut String) -> Option<(Vec<&FunctionRow>, usize)> {
        let (rows, said) = self.restrict(restrictions);
        if rows.is_empty() {
            return None;
        }
        let _ = writeln!(out, "{}{said}", self.order.line());
        let widest = rows.iter().map(|row| width(&row.function.text())).max().unwrap_or(0);
        Some((rows, widest + 2))
    }

    fn call_heading(&self, out: &mut String, width: usize, title: &str) {
        let _ = writeln!(out, "{}{title}", padded("Function ", width));
        if self.rows.iter().any(|row| !row.callers.is_empty()) {
            let _ = writeln!(out, "{}    ncalls  tottime  cumtime", " ".repeat(width));
        }
    }
}

fn call_lines(
    out: &mut String,
    width: usize,
    function: &FunctionName,
    arrow: &str,
    mut calls: Vec<(&FunctionName, Calls)>,
) {
    let _ = write!(out, "{}{arrow} ", padded(&function.text(), width));
    if calls.is_empty() {
        out.push('\n');
    }
    calls.sort_by_key(|&(other, _)| other);
    for (index, (other, sums)) in calls.into_iter().enumerate() {
        // The first stands on the line of the function; pstats puts the others two further to the right.
        let (indent, digits) = if index == 0 { (0, 7) } else { (width + 1, 9) };
        let (own, total) = (time(seconds(sums.own)), time(seconds(sums.total)));
        let _ = writeln!(
            out,
            "{}{:>digits$} {own} {total}  {}",
            " ".repeat(indent),
            sums.count_text(),
            other.text()
        );
    }
}
