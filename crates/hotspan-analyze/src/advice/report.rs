//! How advice looks as tables.

use hotspan_store::Duration;

use crate::advice::{Advice, Evidence, Finding, Need, Rule};
use crate::report::Table;
use crate::report::schema::Schema;

impl Advice {
    /// One row per finding.
    #[must_use]
    pub fn report(&self) -> Table {
        Schema::<(&Rule, Finding)>::new("advice", "Advice")
            .text("rule", "Rule", |row| row.0.id)
            .help("The rule that found it.")
            .text("message", "Finding", |row| &row.1.message)
            .help("What is wrong, with numbers.")
            .duration("gain", "Gain", |row| Some(row.1.gain.as_ref()?.time))
            .help("What fixing it would gain at best; gains may be about the same time.")
            .percent("gain_percent", "Gain %", |row| Some(row.1.gain.as_ref()?.percent))
            .help("The gain as a share of the time that the advice is about.")
            .text("confidence", "Confidence", |row| row.1.confidence.name())
            .help("How sure the rule is.")
            .text("source", "Source", |row| row.1.source())
            .help("The line of the program.")
            .text("fix", "Fix", |row| &row.1.fix)
            .help("How to fix it.")
            .table(&self.findings)
    }

    /// The rules that could not look, by what they lacked.
    #[must_use]
    pub fn skipped_by_need(&self) -> Vec<(Need, Vec<&'static str>)> {
        let lacking = |need: Need| {
            let rules = self.skipped.iter().filter(move |(_, lacked)| *lacked == need);
            rules.map(|(rule, _)| rule.id).collect::<Vec<_>>()
        };
        Need::ALL
            .into_iter()
            .map(|need| (need, lacking(need)))
            .filter(|(_, rules)| !rules.is_empty())
            .collect()
    }
}

impl Finding {
    /// One row per piece of evidence.
    #[must_use]
    pub fn evidence_report(&self) -> Table {
        Schema::<Evidence>::new("evidence", "Evidence")
            .text("what", "What", |row| &row.what)
            .help("What was seen.")
            .count("count", "Count", |row| row.count)
            .help("How often it was seen.")
            .duration("time", "Time", |row| row.time)
            .help("How long it took in all.")
            .when(self.evidence.iter().any(|row| row.time.0 != 0))
            .bytes("bytes", "Memory", |row| row.bytes)
            .help("How much memory it is about.")
            .if_any()
            .duration("at", "At", |row| row.at.map(|at| Duration(at.0)))
            .help("When it was seen, from the start of the trace.")
            .count("span", "Span", |row| row.span.map(|span| u64::from(span.0)))
            .help("The number of an event that shows it.")
            .text("source", "Source", |row| row.source.as_deref())
            .help("The line of the program.")
            .if_any()
            .table(&self.evidence)
    }
}
