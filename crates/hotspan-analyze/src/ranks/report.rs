//! How ranks look.

use hotspan_store::{Bytes, Duration};

use crate::ranks::{CollectiveRow, RankRow, Ranks};
use crate::report::Table;
use crate::report::schema::{Schema, unless_empty};
use crate::steps::DeviceStep;

impl Ranks {
    /// The tables that have rows.
    #[must_use]
    pub fn report(&self) -> Vec<Table> {
        [self.rank_table(), self.collective_table()].into_iter().filter_map(Table::filled).collect()
    }

    fn rank_table(&self) -> Table {
        let time = |part: fn(&DeviceStep) -> Duration| move |row: &RankRow| row.time.as_ref().map(part);
        Schema::<RankRow>::new("ranks", "Ranks")
            .text("rank", "Rank", |row| row.rank.to_string())
            .help("The number of the rank.")
            .duration("time", "Recording", time(|time| time.time))
            .help("How long its device was recorded; the four parts that follow add up to it.")
            .duration("compute", "Compute", time(|time| time.compute))
            .help("A kernel computed.")
            .duration("communication", "Exposed communication", time(|time| time.communication))
            .help("Communication while nothing computed: what overlapping would hide.")
            .duration("copy", "Exposed copy", time(|time| time.copy))
            .help("Copies while nothing computed or communicated.")
            .duration("idle", "Idle", time(|time| time.idle))
            .help("The device did nothing on any stream.")
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
            .table(&self.collectives)
    }
}
