//! Ranks that the others wait for in one step after the other.
//!
//! A rank is late in a step when it hardly waits while another one does. Only who is late in nearly all steps counts: ranks that take
//! turns in being late have a noisy machine, not too much work. Only time in which a waiting rank did nothing else counts, and
//! none after the last rank arrived, which is communication.

use hotspan_store::Duration;

use super::{RankSummary, Together, together};
use crate::intervals::{Interval, Intervals};

/// How likely it may be that ranks which are late by turns look like this.
const BY_LUCK: f64 = 0.001;
/// In how many of the steps the same ranks must be late.
const MOST_STEPS: f64 = 0.8;
/// A step counts when all others wait for this part of it.
const CONSIDERABLE: f64 = 0.1;
/// Who waits for less than this part of the longest wait is late.
const HARDLY: f64 = 0.25;

/// Ranks that the others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uneven {
    /// Positions of those that are late.
    pub late: Vec<usize>,
    /// In how many steps they are.
    pub late_steps: u64,
    /// How many steps there are.
    pub steps: u64,
    /// How long the rank waits that waits least of the others, added up over the steps.
    pub wait: Duration,
}

/// Whether the same ranks are late in nearly all steps. With a common clock, when a rank joined tells how late the last one was; without,
/// only how much longer it stayed.
#[must_use]
pub fn uneven(summaries: &[RankSummary], common_clock: bool) -> Option<Uneven> {
    let count = summaries.iter().map(|summary| summary.steps.len()).min()?;
    if summaries.len() < 2 {
        return None;
    }
    let waits = waits(summaries, common_clock);
    // Jobs end together, so the last steps of all ranks are the same.
    let step = |rank: usize, number: usize| {
        let steps = &summaries[rank].steps;
        steps[steps.len() - count + number]
    };
    let ranks = 0..summaries.len();
    let wait = |rank: usize, number: usize| waits[rank].length_within(step(rank, number));
    let table: Vec<Vec<Duration>> =
        (0..count).map(|number| ranks.clone().map(|rank| wait(rank, number)).collect()).collect();
    let is_late = |row: &[Duration], rank: usize| {
        let longest = row.iter().copied().max().unwrap_or(Duration::ZERO);
        longest.0 > 0 && row[rank].0 as f64 <= longest.0 as f64 * HARDLY
    };
    let often = |steps: usize| steps as f64 >= count as f64 * MOST_STEPS;
    let late: Vec<usize> =
        ranks.clone().filter(|&rank| often(table.iter().filter(|row| is_late(row, rank)).count())).collect();
    if late.is_empty() || late.len() == summaries.len() {
        return None;
    }
    let mut found = Uneven { late, late_steps: 0, steps: count as u64, wait: Duration::ZERO };
    for (number, row) in table.iter().enumerate() {
        let others = ranks.clone().filter(|rank| !found.late.contains(rank));
        let (least, rank) = others.map(|rank| (row[rank], rank)).min()?;
        let is_considerable = least.0 as f64 >= step(rank, number).length().0 as f64 * CONSIDERABLE;
        if is_considerable && found.late.iter().all(|&rank| is_late(row, rank)) {
            found.late_steps += 1;
            found.wait += least;
        }
    }
    let luck = by_luck(count, found.late_steps as usize) * summaries.len() as f64;
    (often(found.late_steps as usize) && luck < BY_LUCK).then_some(found)
}

/// How likely at least so many of some tosses of a coin show its head.
fn by_luck(tosses: usize, heads: usize) -> f64 {
    // Of more tosses, four in five are no luck at all.
    const FEW: usize = 64;
    if tosses > FEW {
        return 0.0;
    }
    let mut ways = 1.0;
    let mut sum = 0.0;
    for number in 0..=tosses {
        if number >= heads {
            sum += ways;
        }
        ways *= (tosses - number) as f64 / (number + 1) as f64;
    }
    sum / 2.0_f64.powi(i32::try_from(tosses).unwrap_or(i32::MAX))
}

/// When each rank waited for the last one and did nothing else.
fn waits(summaries: &[RankSummary], common_clock: bool) -> Vec<Intervals> {
    let mut waits: Vec<Vec<Interval>> = vec![Vec::new(); summaries.len()];
    for Together { members, shortest, .. } in together(summaries).filter(|one| one.members.len() > 1) {
        let Some(joined) = members.iter().map(|(_, member)| member.begin).max() else { continue };
        for (rank, member) in members {
            let longer = member.time - shortest.time;
            let wait = if common_clock { longer.min(joined.since(member.begin)) } else { longer };
            if wait.0 > 0 {
                waits[rank].push(Interval::new(member.begin, member.begin.plus(wait)));
            }
        }
    }
    let exposed = summaries.iter().map(|summary| &summary.exposed);
    waits
        .into_iter()
        .zip(exposed)
        .map(|(waits, exposed)| waits.into_iter().collect::<Intervals>().intersect(exposed))
        .collect()
}

#[cfg(test)]
mod tests {
    use hotspan_store::Timestamp;

    use super::*;
    use crate::ranks::{Collective, CollectiveKey};

    /// Ranks whose steps take 100 and end with a collective that takes 5 from when the last one has joined.
    fn ranks(joined: &[fn(i64) -> i64], computes: bool) -> Vec<RankSummary> {
        let last = |number| joined.iter().map(|joined| joined(number)).max().unwrap();
        let of_rank = |joined: &fn(i64) -> i64| {
            let collective = |number: i64| {
                let begin = Timestamp(number * 100 + joined(number));
                let key = CollectiveKey { group: String::new(), kind: "allreduce".into(), number, repeat: 0 };
                let time = Duration(last(number) - joined(number) + 5);
                Collective { key, begin, time, bytes: None, group_size: None }
            };
            let collectives: Vec<Collective> = (0..20).map(collective).collect();
            let inside = |one: &Collective| Interval::new(one.begin, one.begin.plus(one.time));
            let exposed = collectives.iter().filter(|_| !computes).map(inside).collect();
            let steps =
                (0..20).map(|number| Interval::new(Timestamp(number * 100), Timestamp(number * 100 + 100)));
            RankSummary {
                rank: None,
                process: None,
                devices: Vec::new(),
                collectives,
                steps: steps.collect(),
                exposed,
                step: None,
            }
        };
        joined.iter().map(of_rank).collect()
    }

    #[test]
    fn the_same_rank_is_late_in_nearly_all_steps() {
        let found = uneven(&ranks(&[|_| 20, |_| 60, |_| 30], false), true).unwrap();
        assert_eq!(found, Uneven { late: vec![1], late_steps: 20, steps: 20, wait: Duration(600) });
        let found = uneven(&ranks(&[|_| 20, |_| 60, |_| 58], false), false).unwrap();
        assert_eq!((found.late, found.wait), (vec![1, 2], Duration(800)), "two are late");
        let once_quick = |number| if number == 4 { 20 } else { 60 };
        let found = uneven(&ranks(&[|_| 20, once_quick], false), true).unwrap();
        assert_eq!((found.late_steps, found.wait), (19, Duration(760)));
    }

    #[test]
    fn ranks_that_take_turns_are_even() {
        let (even, odd) = (|number| 20 + number % 2 * 40, |number| 60 - number % 2 * 40);
        assert_eq!(uneven(&ranks(&[even, odd], false), true), None);
    }

    #[test]
    fn little_waiting_and_waiting_that_is_used_are_no_fault() {
        assert_eq!(uneven(&ranks(&[|_| 20, |_| 29], false), true), None, "9 % of the step");
        assert_eq!(uneven(&ranks(&[|_| 20, |_| 20], false), true), None);
        assert_eq!(uneven(&ranks(&[|_| 20, |_| 60], true), true), None, "it computes meanwhile");
    }

    #[test]
    fn a_few_steps_prove_nothing() {
        assert_eq!(by_luck(2, 1), 0.75);
        assert_eq!(by_luck(10, 10), 1.0 / 1024.0);
        let mut ranks = ranks(&[|_| 20, |_| 60], false);
        ranks.iter_mut().for_each(|rank| rank.steps.truncate(9));
        assert_eq!(uneven(&ranks, true), None);
    }

    #[test]
    fn communication_is_no_wait() {
        let mut ranks = ranks(&[|_| 20, |_| 20], false);
        ranks[0].collectives.iter_mut().for_each(|one| one.time = Duration(60));
        ranks[0].exposed = ranks[0]
            .collectives
            .iter()
            .map(|one| Interval::new(one.begin, one.begin.plus(one.time)))
            .collect();
        assert_eq!(uneven(&ranks, true), None, "both joined at once");
        ranks.truncate(1);
        assert_eq!(uneven(&ranks, true), None);
    }
}
