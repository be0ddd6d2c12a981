//! What recording costs, and what to do when it costs too much.

use std::time::{Duration, Instant};

use hotspan_store::TraceBuilder;
use serde_json::json;

use super::Told;
use crate::clock;

/// How long a program runs before its cost says anything.
const PATIENCE: Duration = Duration::from_secs(2);

/// With less than this part of the limit, twice as much can be recorded and stay below it.
const LITTLE: f64 = 0.4;
/// A step up that had to be taken back is not tried again for twice as long, up to this.
const LONGEST_PATIENCE: Duration = Duration::from_secs(64);

/// The cost so far.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    wall: Duration,
    /// Of the agent and of threads that sources have.
    own: Duration,
    in_program: Duration,
}

impl Cost {
    /// What a program with a processor to itself is slower by, at most.
    fn share_since(&self, before: &Self) -> f64 {
        let wall = self.wall.saturating_sub(before.wall).as_secs_f64();
        let own = self.own.saturating_sub(before.own) + self.in_program.saturating_sub(before.in_program);
        if wall > 0.0 { own.as_secs_f64() / wall } else { 0.0 }
    }
}

/// Watches the cost.
#[derive(Debug)]
pub(super) struct Budget {
    limit: Option<f64>,
    began: Instant,
    now: Cost,
    /// When something was last done about it.
    acted: Cost,
    /// How long little must have been spent before more is recorded.
    patience: Duration,
    /// Whether the last measure was to record more.
    went_up: bool,
    measures: Vec<String>,
}

impl Budget {
    pub(super) fn new(limit: Option<f64>) -> Self {
        let (now, acted) = (Cost::default(), Cost::default());
        let (patience, went_up) = (PATIENCE * 2, false);
        Self { limit, began: Instant::now(), now, acted, patience, went_up, measures: Vec::new() }
    }

    pub(super) fn look(&mut self, sources: &[Told]) {
        self.now = Cost {
            wall: self.began.elapsed(),
            own: clock::thread_cpu_time()
                + sources.iter().map(|(source, _)| source.own_time()).sum::<Duration>(),
            in_program: sources.iter().map(|(source, _)| source.cost()).sum(),
        };
    }

    /// Makes the dearest source that can record less do so when the limit is passed, and the cheapest that recorded less
    /// record more again when there is room.
    pub(super) fn keep(&mut self, sources: &mut [Told], builder: &mut TraceBuilder) {
        let Some(limit) = self.limit else { return };
        if self.now.wall.saturating_sub(self.acted.wall) < PATIENCE {
            return;
        }
        let share = self.now.share_since(&self.acted);
        let mut by_cost: Vec<&mut Told> = sources.iter_mut().collect();
        by_cost.sort_by_key(|(source, _)| source.cost() + source.own_time());
        if share > limit {
            if std::mem::take(&mut self.went_up) {
                self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
            }
            self.note(by_cost.into_iter().rev().find_map(|(source, _)| source.back_off(builder)));
        } else if share < limit * LITTLE {
            if self.now.wall.saturating_sub(self.acted.wall) < self.patience {
                return;
            }
            let measure = by_cost.into_iter().find_map(|(source, _)| source.step_up(builder));
            self.went_up |= measure.is_some();
            self.note(measure);
        }
        self.acted = self.now;
    }

    fn note(&mut self, measure: Option<String>) {
        let second = self.now.wall.as_secs();
        self.measures.extend(measure.map(|measure| format!("after {second} s: {measure}")));
    }

    /// As metadata of the recording.
    pub(super) fn describe(&self, builder: &mut TraceBuilder) {
        let nanos = |time: Duration| time.as_nanos() as u64;
        let mut json = json!({
            "agent_ns": nanos(self.now.own),
            "in_program_ns": nanos(self.now.in_program),
        });
        if let (Some(limit), Some(fields)) = (self.limit, json.as_object_mut()) {
            fields.insert("budget".to_owned(), limit.into());
            fields.insert("measures".to_owned(), self.measures.as_slice().into());
        }
        builder.metadata.set("hotspan.cost", &json.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Source, Turn};

    struct Dear {
        cost: Duration,
        steps: u32,
        most: u32,
    }

    impl Source for Dear {
        fn drain(&mut self, _: &mut TraceBuilder) {}
        fn finish(self: Box<Self>, _: &mut TraceBuilder) {}
        fn cost(&self) -> Duration {
            self.cost
        }
        fn back_off(&mut self, _: &mut TraceBuilder) -> Option<String> {
            self.steps = self.steps.checked_sub(1)?;
            Some(format!("{} steps left", self.steps))
        }
        fn step_up(&mut self, _: &mut TraceBuilder) -> Option<String> {
            (self.steps < self.most).then(|| {
                self.steps += 1;
                format!("{} steps up", self.steps)
            })
        }
    }

    #[test]
    fn the_dearest_source_that_can_backs_off() {
        let source = |seconds, steps| -> Told {
            (Box::new(Dear { cost: Duration::from_secs(seconds), steps, most: steps }), Turn::ON)
        };
        let mut sources = vec![source(1, 5), source(3, 1), source(9, 0)];
        let mut builder = TraceBuilder::new();
        let mut budget = Budget::new(Some(0.03));
        let mut at = |second, cost| {
            budget.now = Cost {
                wall: Duration::from_secs(second),
                own: Duration::ZERO,
                in_program: Duration::from_millis(cost),
            };
            budget.keep(&mut sources, &mut builder);
            budget.measures.len()
        };
        assert_eq!(at(1, 900), 0, "too early to tell");
        assert_eq!(at(10, 200), 0, "two percent");
        assert_eq!(at(20, 700), 1);
        assert_eq!(at(21, 900), 1, "what was done needs time to show");
        assert_eq!(at(30, 1_100), 2, "the next one, for the dearest can do no more");
        assert_eq!(at(40, 1_350), 2, "that was enough");
        assert_eq!(at(42, 1_355), 2, "little for two seconds says nothing yet");
        assert_eq!(at(45, 1_360), 3, "the cheapest goes up again");
        assert_eq!(at(50, 2_000), 4, "which was too much");
        assert_eq!(at(55, 2_001), 4, "so the next attempt waits longer");
        assert_eq!(at(59, 2_002), 5);
        assert_eq!(
            budget.measures[..3],
            ["after 20 s: 0 steps left", "after 30 s: 4 steps left", "after 45 s: 5 steps up"]
        );
    }
}
