//! The report of a whole program for a terminal: at most 100 columns, bars for shares, the advice in words.

use hotspan_analyze::advice::Advice;
use hotspan_analyze::overview::compare::Comparison;
use hotspan_analyze::{Overview, Table, WallTime};

use hotspan_store::visible;

use super::text::render_within;

/// Lines are not longer than this.
pub(super) const WIDTH: usize = 100;
const BAR: usize = 40;
/// Findings that are told in full; the others are named.
const FINDINGS: usize = 4;

/// Whether a terminal gets colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) color: bool,
}

impl Style {
    /// Colours where somebody can see them and has not asked for none (<https://no-color.org>).
    pub(crate) fn of(is_terminal: bool) -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { color: is_terminal && !is_set("NO_COLOR") && !is_dumb }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn title(self, text: &str) -> String {
        self.paint("1", text)
    }
}

/// The whole report.
pub(crate) fn report_text(overview: &Overview, style: Style) -> String {
    let mut out = head(overview, style);
    if let Some(verdict) = &overview.verdict {
        out.push_str(&format!("\n{}", style.title(&wrapped(&visible(&verdict.sentence), "", ""))));
    }
    for table in &overview.ranks {
        out.push('\n');
        out.push_str(&table_text(table, style));
    }
    if let Some(about) = &overview.about {
        out.push_str(&format!("\n{}", wrapped(&visible(about), "", "")));
    }
    if let Some(wall_time) = &overview.wall_time {
        out.push_str(&bars(wall_time, style));
    }
    if let Some(queued) = &overview.queued {
        out.push_str(&wrapped(queued, "  ", "  "));
    }
    out.push_str(&advice(&overview.advice, style));
    for table in &overview.sections {
        out.push('\n');
        out.push_str(&table_text(table, style));
    }
    if !overview.missing.is_empty() {
        out.push_str(&format!("\n{}\n", style.title("What is missing")));
        for text in &overview.missing {
            out.push_str(&style.paint("33", &wrapped(&visible(text), "  - ", "    ")));
        }
    }
    if let Some(cost) = overview.cost_in_words() {
        out.push_str(&format!("\n{}\n{}", style.title("Cost of recording"), wrapped(&cost, "  ", "  ")));
    }
    out
}

/// Two runs side by side.
pub(crate) fn comparison_text(comparison: &Comparison, style: Style) -> String {
    let mut out = String::new();
    for text in comparison.in_words() {
        out.push_str(&wrapped(&visible(&text), "", "  "));
    }
    for table in &comparison.report() {
        out.push('\n');
        out.push_str(&table_text(table, style));
    }
    out
}

fn table_text(table: &Table, style: Style) -> String {
    let text = render_within(table, WIDTH);
    match text.split_once('\n') {
        Some((title, rest)) if !table.title.is_empty() => format!("{}\n{rest}", style.title(title)),
        _ => text,
    }
}

/// What ran and where, in a few lines.
fn head(overview: &Overview, style: Style) -> String {
    let fact = |wanted: &str| {
        let found = overview.facts.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| visible(value).into_owned())
    };
    let mut out = String::new();
    let total = overview.whole;
    if let Some(command) = fact("Command") {
        let mut line = style.title(&command);
        if let Some(ended) = fact("Ended") {
            line.push_str(&format!(": ended {ended}"));
        }
        if let Some(total) = total {
            line.push_str(&format!(" after {total}"));
        }
        out.push_str(&format!("{line}\n"));
    } else if let Some(total) = total {
        out.push_str(&format!("Recorded {total}\n"));
    }
    let threads = |text: String| match fact("torch threads") {
        Some(threads) => format!("{text} on {threads} {}", if threads == "1" { "thread" } else { "threads" }),
        None => text,
    };
    let environment: Vec<String> = [
        fact("Python").map(|version| format!("Python {version}")),
        fact("torch").map(|version| threads(format!("torch {version}"))),
        fact("CUDA").map(|version| format!("CUDA {version}")),
        fact("CPUs").map(|count| format!("{count} CPUs")),
        fact("System"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !environment.is_empty() {
        out.push_str(&wrapped(&environment.join(", "), "", "  "));
    }
    for (name, value) in &overview.facts {
        if name == "Variables" {
            out.push_str(&wrapped(&visible(value), "", "  "));
        } else if name.starts_with("Device ") {
            out.push_str(&wrapped(&visible(&format!("{name}: {value}")), "", "  "));
        }
    }
    out
}

/// Shares as bars, which add up.
fn bars(wall_time: &WallTime, style: Style) -> String {
    let table = wall_time.report();
    let title = format!("{} ({} in all)", table.title, wall_time.total);
    let mut out = format!("\n{}\n", style.title(&title));
    let names: Vec<String> =
        wall_time.parts.iter().map(|part| super::text::cut(&visible(&part.activity.title()), 34)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (part, name) in wall_time.parts.iter().zip(&names) {
        let share = part.time.0 as f64 / wall_time.total.0.max(1) as f64;
        let filled = ((share * BAR as f64).round() as usize).min(BAR);
        let bar = format!("{}{}", style.paint("36", &"#".repeat(filled)), " ".repeat(BAR - filled));
        let percent = share * 100.0;
        out.push_str(&format!("  {name:<widest$}  {percent:>5.1} %  {:>10}  {bar}", part.time.to_string()));
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// The findings that gain most.
fn advice(advice: &Advice, style: Style) -> String {
    if advice.findings.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.title("What to change"));
    for (number, (rule, finding)) in advice.findings.iter().take(FINDINGS).enumerate() {
        let first = format!("{}. {}: {}", number + 1, rule.id, finding.message);
        let painted = wrapped(&visible(&first), "  ", "     ");
        let id = format!("{}. {}", number + 1, rule.id);
        out.push_str(&painted.replacen(&id, &style.paint("1;33", &id), 1));
        out.push_str(&wrapped(&visible(&format!("fix: {}", finding.fix)), "     ", "       "));
        let mut details = Vec::new();
        if let Some(gain) = &finding.gain {
            details.push(format!("gain: up to {} ({:.1} % of {})", gain.time, gain.percent, gain.of));
        }
        details.extend(finding.source().map(|source| format!("at {source}")));
        details.push(format!("confidence: {}", finding.confidence.name()));
        out.push_str(&wrapped(&visible(&details.join("; ")), "     ", "       "));
    }
    let others: Vec<&str> = advice.findings.iter().skip(FINDINGS).map(|(rule, _)| rule.id).collect();
    if !others.is_empty() {
        out.push_str(&wrapped(&format!("also: {}", others.join(", ")), "  ", "    "));
    }
    out.push_str("  (`hotspan advise FILE` has the evidence of each)\n");
    out
}

/// Text in lines that fit, the first with one indent, the others with another. A word that is too long has a line of its own.
fn wrapped(text: &str, first: &str, other: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let needed = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        if needed > WIDTH && !is_empty {
            out.push_str(&format!("{line}\n"));
            other.clone_into(&mut line);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&format!("{line}\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_wrapped() {
        let text = wrapped(&"word ".repeat(50), "- ", "  ");
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("  word")));
    }

    #[test]
    fn colours_are_for_those_who_want_them() {
        assert!(!Style::of(false).color);
        assert_eq!(Style { color: true }.title("a"), "\x1b[1ma\x1b[0m");
        assert_eq!(Style { color: false }.title("a"), "a");
    }
}
