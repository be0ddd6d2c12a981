//! What is in a trace, what is missing, and what recording cost.

use super::overview::by_title;
use super::{Report, TORCH};
use crate::overview::cost;
use crate::report::schema::Schema;
use crate::report::{Cell, Table};
use crate::model::steps::Step;
use crate::summary::{CategoryRow, Summary};
use hotspan_store::Loss;

pub(super) const REPORTS: &[Report] = &[Report {
    id: "quality",
    by: None,
    record: TORCH,
    tables: |model, _| {
        let cost = cost(model).map(|cost| cost.report(model.wall()));
        Ok(model.summary().report().into_iter().chain(cost).map(by_title).collect())
    },
}];

impl Summary {
    /// How it looks: facts, spans by category, steps, and losses if any.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        let rows = self.facts();
        let facts = Schema::<(&str, Cell)>::new("trace", "Trace")
            .text("fact", "Fact", |row| row.0)
            .help("What is counted.")
            .mixed("value", "Value", |row| row.1.clone())
            .help("How many there are, or how long it takes.");
        let categories = Schema::<CategoryRow>::new("categories", "Spans by category")
            .text("category", "Category", |row| &row.name)
            .help("The kind of span, as the file spells it.")
            .count("spans", "Spans", |row| row.spans)
            .help("How many spans are of that kind.")
            .duration("total", "Total", |row| row.total)
            .help("Their durations added up; spans inside others count again.");
        let steps = Schema::<Step>::new("steps", "Steps")
            .ordinal("step", "Step", |step| u64::try_from(step.number).ok())
            .help("The number in the mark of the step.")
            .duration("duration", "Duration", |step| step.duration)
            .help("How long the step took on the host.");
        let losses = Schema::<(Loss, u64)>::new("losses", "Losses")
            .text("loss", "Loss", |row| row.0.name())
            .help("The name that it is counted under.")
            .count("count", "Count", |row| row.1)
            .help("How often it happened.")
            .text("meaning", "Meaning", |row| row.0.help())
            .help("What was dropped, repaired or guessed.");
        let counted = [facts.table(&rows), categories.table(&self.categories)];
        let found = [steps.table(&self.steps), losses.table(&self.losses)];
        counted.into_iter().chain(found.into_iter().filter_map(Table::filled)).collect()
    }

    fn facts(&self) -> Vec<(&'static str, Cell)> {
        let mut facts = vec![
            ("Wall time", Cell::Duration(self.wall_time)),
            ("Spans", Cell::Count(self.spans)),
            ("Instants", Cell::Count(self.instants)),
            ("Counter samples", Cell::Count(self.counters)),
            ("Flow ends", Cell::Count(self.flows)),
            ("Processes", Cell::Count(self.processes)),
            ("Threads", Cell::Count(self.threads)),
            ("Devices", Cell::Count(self.devices)),
            ("Streams", Cell::Count(self.streams)),
            ("Steps", Cell::Count(self.steps.len() as u64)),
        ];
        for (name, number) in [("Rank", self.rank), ("World size", self.world_size)] {
            facts.extend(number.map(|number| (name, Cell::Text(number.to_string()))));
        }
        facts
    }
}
