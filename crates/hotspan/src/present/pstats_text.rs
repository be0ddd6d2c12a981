//! Functions as pstats prints them, character by character.

use std::collections::HashMap;
use std::fmt::Write;

use hotspan_analyze::Functions;
use hotspan_analyze::functions::{Calls, FunctionName, FunctionRow, Restriction};
use hotspan_store::{Duration, visible};

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

/// A function as pstats writes it, in one line.
fn name(function: &FunctionName) -> String {
    visible(&function.text()).into_owned()
}

fn padded(text: &str, to: usize) -> String {
    let missing = to.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Calls as pstats writes them: `7/1` when some were made from within.
fn count_text(sums: Calls) -> String {
    if sums.calls == sums.primitive {
        sums.calls.to_string()
    } else {
        format!("{}/{}", sums.calls, sums.primitive)
    }
}

/// `print_stats`; the files the functions were read from stand above, one a line.
#[must_use]
pub fn stats_text(functions: &Functions, files: &[String], restrictions: &[Restriction]) -> String {
    let mut out = String::new();
    for file in files {
        out.push_str(&visible(file));
        out.push('\n');
    }
    if !files.is_empty() {
        out.push('\n');
    }
    let mut all = Calls::default();
    functions.rows().iter().for_each(|row| all.add(row.sums));
    let _ = write!(out, "         {} function calls ", all.calls);
    if all.calls != all.primitive {
        let _ = write!(out, "({} primitive calls) ", all.primitive);
    }
    let _ = write!(out, "in {:.3} seconds\n\n", seconds(all.own));
    let Some((rows, _)) = chosen(functions, restrictions, &mut out) else { return out };
    out.push_str("   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n");
    for row in rows {
        let sums = row.sums;
        let _ = writeln!(
            out,
            "{:>9} {} {} {} {} {}",
            count_text(sums),
            time(seconds(sums.own)),
            per(sums.own, sums.calls),
            time(seconds(sums.total)),
            per(sums.total, sums.primitive),
            name(&row.function)
        );
    }
    out.push_str("\n\n");
    out
}

/// `print_callers`.
pub(crate) fn callers_text(functions: &Functions, restrictions: &[Restriction]) -> String {
    let mut out = String::new();
    let Some((rows, width)) = chosen(functions, restrictions, &mut out) else { return out };
    call_heading(functions, &mut out, width, "was called by...");
    for row in rows {
        let callers = row.callers.iter().map(|(caller, sums)| (caller, *sums)).collect();
        call_lines(&mut out, width, &row.function, "<-", callers);
    }
    out.push_str("\n\n");
    out
}

/// `print_callees`.
pub(crate) fn callees_text(functions: &Functions, restrictions: &[Restriction]) -> String {
    let mut out = String::new();
    let Some((rows, width)) = chosen(functions, restrictions, &mut out) else { return out };
    call_heading(functions, &mut out, width, "called...");
    let mut callees: HashMap<&FunctionName, Vec<(&FunctionName, Calls)>> = HashMap::new();
    for row in functions.rows() {
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
fn chosen<'a>(
    functions: &'a Functions,
    restrictions: &[Restriction],
    out: &mut String,
) -> Option<(Vec<&'a FunctionRow>, usize)> {
    let (rows, said) = functions.restrict(restrictions);
    if rows.is_empty() {
        return None;
    }
    let order = match functions.order() {
        "" => "Random listing order was used".to_owned(),
        order => format!("Ordered by: {order}"),
    };
    let _ = writeln!(out, "   {order}\n{said}");
    let widest = rows.iter().map(|row| width(&name(&row.function))).max().unwrap_or(0);
    Some((rows, widest + 2))
}

fn call_heading(functions: &Functions, out: &mut String, width: usize, title: &str) {
    let _ = writeln!(out, "{}{title}", padded("Function ", width));
    if functions.rows().iter().any(|row| !row.callers.is_empty()) {
        let _ = writeln!(out, "{}    ncalls  tottime  cumtime", " ".repeat(width));
    }
}

fn call_lines(
    out: &mut String,
    width: usize,
    function: &FunctionName,
    arrow: &str,
    mut calls: Vec<(&FunctionName, Calls)>,
) {
    let _ = write!(out, "{}{arrow} ", padded(&name(function), width));
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
            count_text(sums),
            name(other)
        );
    }
}
