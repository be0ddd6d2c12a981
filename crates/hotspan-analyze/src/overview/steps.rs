//! Steps: how long they take, the first told apart, since it warms caches up and compiles.

use hotspan_store::Duration;

use crate::model::Model;
use crate::model::steps::{ProgramSteps, StepSource};
use crate::report::Table;
use crate::report::schema::Schema;

pub(super) fn steps(model: &Model) -> Option<Table> {
    let ProgramSteps { all, source, .. } = model.steps();
    let (first, rest) = all.split_first()?;
    let title = match source {
        StepSource::Optimizer => "Steps (of the optimizer)",
        StepSource::Marks | StepSource::Nothing => "Steps",
    };
    let sorted = |durations: &[Duration]| {
        let mut durations = durations.to_vec();
        durations.sort_unstable();
        durations
    };
    let rest: Vec<Duration> = rest.iter().map(|step| step.duration).collect();
    let mut rows = vec![("first (warm-up)", vec![first.duration]), ("the others", sorted(&rest))];
    rows.retain(|(_, durations)| !durations.is_empty());
    let table = Schema::<(&str, Vec<Duration>)>::new("steps", title)
        .text("steps", "Steps", |row| row.0)
        .help("The first step, which warms caches up and compiles, or all others.")
        .count("count", "Count", |row| row.1.len() as u64)
        .help("How many steps there are.")
        .duration("median", "Median", |row| row.1[row.1.len() / 2])
        .help("The middle one of their durations.")
        .duration("shortest", "Shortest", |row| row.1.first().copied())
        .help("The shortest step.")
        .duration("longest", "Longest", |row| row.1.last().copied())
        .help("The longest step.")
        .duration("total", "Total", |row| row.1.iter().copied().sum::<Duration>())
        .help("All of them added up.")
        .table(&rows);
    Some(table)
}
