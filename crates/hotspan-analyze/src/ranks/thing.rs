//! A row of the tables of ranks: one rank beside the others, or the collectives of one kind, rank by rank and the longest waits.

use hotspan_store::Duration;

use super::{RankSummary, Ranks, Together, compare, together};
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::{Schema, unless_empty};
use crate::thing::{Thing, only};
use crate::verdict::Bar;

/// The kind of doors to ranks.
pub(crate) const RANK: &str = "rank";
/// The kind of doors to collectives.
pub(crate) const COLLECTIVE: &str = "collective";
/// Single collectives that are listed.
const MOST: usize = 20;

/// The door to a rank.
pub(super) fn rank_door(rank: i64) -> Door {
    Door::new(RANK).with("name", rank.to_string())
}

/// The door to collectives of a kind.
pub(super) fn collective_door(kind: &str, group: &str) -> Door {
    Door::new(COLLECTIVE).with("name", kind).with_any("group", unless_empty(group))
}

/// Whether what is behind a door belongs to several traces: those who have them all describe it.
#[must_use]
pub fn is_of_ranks(door: &Door) -> bool {
    [RANK, COLLECTIVE].contains(&door.kind.as_str())
}

/// Describes a rank or the collectives of a kind; `None` where there is nothing.
#[must_use]
pub fn describe_among(summaries: &[RankSummary], door: &Door) -> Option<Thing> {
    let ranks = compare(summaries);
    let mut tables = ranks.report().into_iter();
    let table = tables.find(|table| table.doors.iter().flatten().any(|known| known == door))?;
    let row = only(table, |known| known == door)?;
    if door.kind == RANK {
        let rank: i64 = door.get("name")?.parse().ok()?;
        let position = ranks.positions.iter().position(|&known| known == rank)?;
        let tables = [waits_of(summaries, &ranks, position), activities(summaries, position)];
        let thing = Thing::new("Rank", &format!("Rank {rank}"), row);
        return Some(Thing { tables: tables.into_iter().flatten().collect(), ..thing });
    }
    let (kind, group) = (door.get("name")?, door.get("group").unwrap_or_default());
    let is_wanted =
        |one: &Together<'_>| one.members.len() > 1 && one.key.kind == kind && one.key.group == group;
    let all: Vec<Together<'_>> = together(summaries).filter(is_wanted).collect();
    let thing = Thing::new("Collective", kind, row);
    Some(Thing {
        tables: [by_rank(&all, &ranks), longest(&all, &ranks)].into_iter().flatten().collect(),
        ..thing
    })
}

/// Sums of a rank or a kind.
#[derive(Clone, Debug, Default)]
struct Sum {
    name: String,
    calls: u64,
    wait: Duration,
    transfer: Duration,
    last: u64,
}

fn sums(
    id: &str,
    title: &str,
    what: &str,
    rows: &[Sum],
    door: impl Fn(&Sum) -> Option<Door> + 'static,
) -> Option<Table> {
    let table = Schema::<Sum>::new(id, title)
        .text("name", what, |row| &row.name)
        .help("What the collectives of the row have in common.")
        .count("calls", "Calls", |row| row.calls)
        .help("How many there are.")
        .duration("wait", "Wait", |row| row.wait)
        .help("Before the last rank arrived.")
        .duration("transfer", "Transfer", |row| row.transfer)
        .help("After the last rank arrived.")
        .count("last", "Came last", |row| row.last)
        .help("How often the others waited for it.")
        .door(door)
        .table(rows);
    table.filled()
}

/// What a rank did in collectives, by kind.
fn waits_of(summaries: &[RankSummary], ranks: &Ranks, position: usize) -> Option<Table> {
    let mut rows: Vec<Sum> = Vec::new();
    for one in together(summaries).filter(|one| one.members.len() > 1) {
        let Some((_, member)) = one.members.iter().find(|(index, _)| *index == position) else { continue };
        let index = rows.iter().position(|row| row.name == one.key.kind).unwrap_or_else(|| {
            rows.push(Sum { name: one.key.kind.clone(), ..Sum::default() });
            rows.len() - 1
        });
        add(&mut rows[index], member.time, one.shortest.time, one.last == position);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.wait));
    let known: Vec<Door> =
        ranks.collectives.iter().map(|row| collective_door(&row.kind, &row.group)).collect();
    let door = move |row: &Sum| {
        let mut same = known.iter().filter(|door| door.get("name") == Some(row.name.as_str()));
        same.next().filter(|_| same.next().is_none()).cloned()
    };
    sums("kinds", "Collectives of this rank", "Collective", &rows, door)
}

fn add(row: &mut Sum, time: Duration, transfer: Duration, is_last: bool) {
    row.calls += 1;
    row.wait += time - transfer;
    row.transfer += transfer;
    row.last += u64::from(is_last);
}

/// Collectives of a kind, by rank.
fn by_rank(all: &[Together<'_>], ranks: &Ranks) -> Option<Table> {
    let mut rows: Vec<Sum> =
        ranks.positions.iter().map(|rank| Sum { name: rank.to_string(), ..Sum::default() }).collect();
    for one in all {
        for &(index, member) in &one.members {
            add(&mut rows[index], member.time, one.shortest.time, one.last == index);
        }
    }
    rows.retain(|row| row.calls > 0);
    rows.sort_by_key(|row| std::cmp::Reverse((row.last, row.transfer)));
    sums("by_rank", "By rank", "Rank", &rows, |row| Some(rank_door(row.name.parse().ok()?)))
}

/// Single collectives in which a rank waited longest.
fn longest(all: &[Together<'_>], ranks: &Ranks) -> Option<Table> {
    struct Row {
        number: i64,
        wait: Duration,
        transfer: Duration,
        last: i64,
    }
    let row = |one: &Together<'_>| Row {
        number: one.key.number,
        wait: one.members.iter().map(|(_, member)| member.time).max().unwrap_or_default() - one.shortest.time,
        transfer: one.shortest.time,
        last: ranks.positions[one.last],
    };
    let mut rows: Vec<Row> = all.iter().map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.wait), row.number));
    rows.truncate(MOST);
    let table = Schema::<Row>::new("longest", "Longest waits")
        .text("number", "Number", |row| row.number.to_string())
        .help("Which collective of the group it is.")
        .duration("wait", "Longest wait", |row| row.wait)
        .help("How long the rank waited that waited longest.")
        .duration("transfer", "Transfer", |row| row.transfer)
        .help("After the last rank arrived.")
        .text("last", "Last rank", |row| row.last.to_string())
        .help("The rank that the others waited for.")
        .door(|row| Some(rank_door(row.last)))
        .table(&rows);
    table.filled()
}

/// One activity of a rank beside that of the others.
struct Beside {
    title: String,
    own: Duration,
    others: Duration,
    is_communication: bool,
}

/// What a rank does in a mean step, and the mean of what the others do.
fn beside(summaries: &[RankSummary], position: usize) -> Vec<Beside> {
    let Some(own) = summaries[position].step.as_ref() else { return Vec::new() };
    let others: Vec<&Bar> = (0..summaries.len())
        .filter(|&index| index != position)
        .filter_map(|index| summaries[index].step.as_ref())
        .collect();
    let mut keys: Vec<(&str, bool, &str)> = Vec::new();
    for part in std::iter::once(own).chain(others.iter().copied()).flat_map(|bar| &bar.parts) {
        if !keys.iter().any(|(key, is_idle, _)| *key == part.key && *is_idle == part.is_idle) {
            keys.push((&part.key, part.is_idle, &part.title));
        }
    }
    let time = |bar: &Bar, key: &str, is_idle: bool| {
        let part = bar.parts.iter().find(|part| part.key == key && part.is_idle == is_idle);
        part.map_or(Duration::ZERO, |part| part.time)
    };
    let row = |&(key, is_idle, title): &(&str, bool, &str)| Beside {
        title: if is_idle { format!("Idle: {title}") } else { title.to_owned() },
        own: time(own, key, is_idle),
        others: Duration(
            others.iter().map(|bar| time(bar, key, is_idle)).sum::<Duration>().0 / others.len().max(1) as i64,
        ),
        is_communication: key == "communication",
    };
    let mut rows: Vec<Beside> = if others.is_empty() { Vec::new() } else { keys.iter().map(row).collect() };
    rows.sort_by_key(|row| std::cmp::Reverse((row.own - row.others).0));
    rows
}

fn activities(summaries: &[RankSummary], position: usize) -> Option<Table> {
    let rows = beside(summaries, position);
    let table = Schema::<Beside>::new("activities", "A mean step beside that of the others")
        .text("name", "Activity", |row| &row.title)
        .help("What the rank did.")
        .duration("own", "This rank", |row| row.own)
        .help("How long in a step, the mean without warm-up.")
        .duration("others", "The others", |row| row.others)
        .help("The same of the other ranks, their mean.")
        .duration("more", "More", |row| row.own - row.others)
        .help("How much longer it takes on this rank.")
        .table(&rows);
    table.filled()
}

/// What a rank does for longer than the others, where that explains half of what they wait for it in a step, or more.
pub(super) fn reason(summaries: &[RankSummary], position: usize, wait_of_step: Duration) -> Option<String> {
    let rows = beside(summaries, position);
    let first = rows.iter().find(|row| !row.is_communication)?;
    let more = first.own - first.others;
    let explains = more.0 > 0 && more.0.saturating_mul(2) >= wait_of_step.0;
    let doing = first.title.strip_prefix("Idle: ").map_or_else(
        || format!("in {}", first.title),
        |cause| format!("with an idle device (cause: {cause})"),
    );
    explains.then(|| format!("It spends {more} a step more than the others {doing}."))
}
