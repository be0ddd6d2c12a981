//! How ranks look.

use hotspan_store::{Bytes, Duration};

use crate::ranks::thing::{collective_door, rank_door};
use crate::ranks::{CollectiveRow, RankProcess, RankRow, Ranks};
use crate::report::Table;
use crate::report::schema::{Schema, unless_empty};
use crate::steps::DeviceStep;

impl Ranks {
    /// The tables that have rows.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        [self.rank_table(), self.collective_table()].into_iter().filter_map(Table::filled).collect()
    }

    /// The rank that the others wait for: the one that comes last most often, since a single long wait is that of the start. Without
    /// collectives, the one that takes longest.
    #[must_use]
    pub fn slowest(&self) -> Option<i64> {
        let wall = |row: &RankRow| row.process.map_or(Duration::ZERO, |process| process.wall);
        let slowness = |row: &&RankRow| (row.last, row.waited_for, wall(row), std::cmp::Reverse(row.rank));
        self.ranks.iter().max_by_key(slowness).map(|row| row.rank)
    }

    /// Who waited for whom, in a sentence; nothing where nobody did.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let slowest = self.slowest()?;
        let row = self.ranks.iter().find(|row| row.rank == slowest)?;
        (row.last > 0 && row.waited_for.0 > 0).then(|| {
            let late = format!(
                "The others waited for rank {slowest} most: it came last in {} of {} collectives, and they waited {} for it.",
                row.last, row.matched, row.waited_for
            );
            self.reason.iter().fold(late, |late, reason| format!("{late} {reason}"))
        })
    }

    fn rank_table(&self) -> Table {
        let time = |part: fn(&DeviceStep) -> Duration| move |row: &RankRow| row.time.as_ref().map(part);
        let of_process =
            |part: fn(&RankProcess) -> Duration| move |row: &RankRow| row.process.as_ref().map(part);
        Schema::<RankRow>::new("ranks", "Ranks")
            .text("rank", "Rank", |row| row.rank.to_string())
            .help("The number of the rank.")
            .text("process", "Process", |row| row.process.map(|process| process.pid.to_string()))
            .help("The number of its process.")
            .if_any()
            .duration("wall", "Wall time", of_process(|process| process.wall))
            .help("From its first moment to its last.")
            .if_any()
            .duration("running", "Running", of_process(|process| process.running))
            .help("The time that its threads and those of its children ran.")
            .if_any()
            .duration("operators", "Operators", of_process(|process| process.operators))
            .help("Self CPU time of torch operators, on all threads.")
            .if_any()
            .count("steps", "Steps", |row| row.process.and_then(|process| Some(process.steps?.0)))
            .help("How many steps it made.")
            .if_any()
            .duration("step", "Median step", |row| row.process.and_then(|process| Some(process.steps?.1)))
            .help("The middle one of their durations, without warm-up.")
            .if_any()
            .duration("time", "Recording", time(|time| time.time))
            .help("How long its device was recorded; the four parts that follow add up to it.")
            .if_any()
            .duration("compute", "Compute", time(|time| time.compute))
            .help("A kernel computed.")
            .if_any()
            .duration("communication", "Exposed communication", time(|time| time.communication))
            .help("Communication while nothing computed: what overlapping would hide.")
            .if_any()
            .duration("copy", "Exposed copy", time(|time| time.copy))
            .help("Copies while nothing computed or communicated.")
            .if_any()
            .duration("idle", "Idle", time(|time| time.idle))
            .help("The device did nothing on any stream.")
            .if_any()
            .count("collectives", "Collectives", |row| row.matched)
            .help("Collectives that other ranks have too.")
            .count("alone", "No partner", |row| row.alone)
            .help("Collectives that no other rank has.")
            .duration("wait", "Wait", |row| row.wait)
            .help("In a collective, before the last rank arrived.")
            .duration("transfer", "Transfer", |row| row.transfer)
            .help("In a collective, after the last rank arrived.")
            .count("last", "Came last", |row| row.last)
            .help("How often the others waited for it.")
            .duration("waited_for", "Others waited", |row| row.waited_for)
            .help("How long the others waited for it, added up.")
            .door(|row| Some(rank_door(row.rank)))
            .table(&self.ranks)
    }

    fn collective_table(&self) -> Table {
        Schema::<CollectiveRow>::new("collectives", "Collectives")
            .text("kind", "Collective", |row| &row.kind)
            .help("The kind of collective.")
            .text("group", "Group", |row| unless_empty(&row.group))
            .help("The process group.")
            .count("calls", "Calls", |row| row.calls)
            .help("How many there were.")
            .count("ranks", "Ranks", |row| row.ranks)
            .help("How many ranks took part.")
            .bytes("bytes", "Bytes", |row| i64::try_from(row.bytes?).ok().map(Bytes))
            .help("How many bytes a rank contributed in all.")
            .duration("transfer", "Transfer", |row| row.transfer)
            .help("After the last rank arrived: the shortest kernel among the ranks.")
            .duration("wait", "Wait, all ranks", |row| row.wait)
            .help("Before the last rank arrived, added up over the ranks.")
            .duration("longest_wait", "Longest waits", |row| row.longest_wait)
            .help("The longest wait of any rank, added up over the calls.")
            .number("algorithm_rate", "Algorithm GB/s", |row| row.algorithm_rate)
            .help("Bytes over transfer time, as nccl-tests has it.")
            .number("bus_rate", "Bus GB/s", |row| row.bus_rate)
            .help("The rate on the links between ranks, as nccl-tests has it.")
            .text("last", "Last rank", |row| row.last.map(|(rank, _)| rank.to_string()))
            .help("The rank that came last most often.")
            .count("times_last", "Times last", |row| row.last.map(|(_, count)| count))
            .help("How often that rank came last.")
            .door(|row| Some(collective_door(&row.kind, &row.group)))
            .table(&self.collectives)
    }
}
