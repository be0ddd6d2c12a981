//! Steps: how long they take, the first told apart, since it warms caches up and compiles.

use hotspan_store::Duration;

use crate::model::Model;
use crate::model::steps::{ProgramSteps, StepSource};
use crate::report::{Cell, Column, Table};

pub(super) fn steps(model: &Model) -> Option<Table> {
    let ProgramSteps { all, source, .. } = model.steps();
    let (first, rest) = all.split_first()?;
    let mut table = Table::new(match source {
        StepSource::Optimizer => "Steps (of the optimizer)",
        StepSource::Marks | StepSource::Nothing => "Steps",
    });
    table.columns = vec![
        Column::text("steps", "Steps"),
        Column::count("count", "Count"),
        Column::duration("median", "Median"),
        Column::duration("shortest", "Shortest"),
        Column::duration("longest", "Longest"),
        Column::duration("total", "Total"),
    ];
    let mut add = |name: &str, mut durations: Vec<Duration>| {
        durations.sort_unstable();
        if let (Some(&shortest), Some(&longest)) = (durations.first(), durations.last()) {
            let median = durations[durations.len() / 2];
            let total = durations.iter().copied().sum();
            let mut cells = vec![Cell::text(name), Cell::Count(durations.len() as u64)];
            cells.extend([median, shortest, longest, total].map(Cell::Duration));
            table.add_row(cells);
        }
    };
    add("first (warm-up)", vec![first.duration]);
    add("the others", rest.iter().map(|step| step.duration).collect());
    Some(table)
}
