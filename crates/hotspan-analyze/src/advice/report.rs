//! How advice looks as tables.

use crate::advice::{Advice, Finding, Need};
use crate::report::{Cell, Column, Table};

impl Advice {
    /// One row per finding.
    #[must_use]
    pub fn report(&self) -> Table {
        let mut table = Table::new("Advice");
        table.columns = vec![
            Column::text("rule", "Rule"),
            Column::text("message", "Finding"),
            Column::duration("gain", "Gain"),
            Column::percent("gain_percent", "Gain %"),
            Column::text("confidence", "Confidence"),
            Column::text("source", "Source"),
            Column::text("fix", "Fix"),
        ];
        for (rule, finding) in &self.findings {
            let gain = finding.gain.as_ref();
            table.add_row(vec![
                Cell::text(rule.id),
                Cell::text(&finding.message),
                gain.map_or(Cell::Missing, |gain| Cell::Duration(gain.time)),
                gain.map_or(Cell::Missing, |gain| Cell::Percent(gain.percent)),
                Cell::text(finding.confidence.name()),
                finding.source().map_or(Cell::Missing, Cell::text),
                Cell::text(&finding.fix),
            ]);
        }
        table
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
        let mut table = Table::new("Evidence");
        let rows = || self.evidence.iter();
        table.add_column(Column::text("what", "What"), rows().map(|row| Cell::text(&row.what)));
        table.add_column(Column::count("count", "Count"), rows().map(|row| Cell::Count(row.count)));
        if rows().any(|row| row.time.0 != 0) {
            table.add_column(Column::duration("time", "Time"), rows().map(|row| Cell::Duration(row.time)));
        }
        if rows().any(|row| row.bytes.is_some()) {
            let bytes = rows().map(|row| row.bytes.map_or(Cell::Missing, Cell::Bytes));
            table.add_column(Column::bytes("bytes", "Memory"), bytes);
        }
        let at =
            rows().map(|row| row.at.map_or(Cell::Missing, |at| Cell::Duration(at.since(Default::default()))));
        table.add_column(Column::duration("at", "At"), at);
        let span = rows().map(|row| row.span.map_or(Cell::Missing, |span| Cell::Count(span.0.into())));
        table.add_column(Column::count("span", "Span"), span);
        if rows().any(|row| row.source.is_some()) {
            let source = rows().map(|row| row.source.as_deref().map_or(Cell::Missing, Cell::text));
            table.add_column(Column::text("source", "Source"), source);
        }
        table
    }
}
