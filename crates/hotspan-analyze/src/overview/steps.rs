//! Steps: how long they take, the first told apart where it is slow in a way the others are not: it warms caches up and compiles.

use hotspan_store::Duration;

use crate::model::Model;
use crate::model::steps::{ProgramSteps, Step, StepSource, median};
use crate::report::Table;
use crate::report::schema::Schema;

pub(super) fn steps(model: &Model) -> Option<Table> {
    let ProgramSteps { all, source, warm_up } = model.steps();
    let title = match source {
        StepSource::Optimizer => "Steps (of the optimizer)",
        StepSource::Marks | StepSource::Nothing => "Steps",
    };
    let sorted = |steps: &[Step]| {
        let mut durations: Vec<Duration> = steps.iter().map(|step| step.duration).collect();
        durations.sort_unstable();
        durations
    };
    let (first, rest) = all.split_at(*warm_up);
    let others = if first.is_empty() { "all" } else { "the others" };
    let mut rows = vec![("first (warm-up)", sorted(first)), (others, sorted(rest))];
    rows.retain(|(_, durations)| !durations.is_empty());
    if rows.is_empty() {
        return None;
    }
    let table = Schema::<(&str, Vec<Duration>)>::new("steps", title)
        .text("steps", "Steps", |row| row.0)
        .help("The first step, where it warms caches up and compiles, or all others.")
        .count("count", "Count", |row| row.1.len() as u64)
        .help("How many steps there are.")
        .duration("median", "Median", |row| median(row.1.iter().copied()))
        .help("The median of their durations.")
        .duration("shortest", "Shortest", |row| row.1.first().copied())
        .help("The shortest step.")
        .duration("longest", "Longest", |row| row.1.last().copied())
        .help("The longest step.")
        .duration("total", "Total", |row| row.1.iter().copied().sum::<Duration>())
        .help("All of them added up.")
        .table(&rows);
    Some(table)
}
