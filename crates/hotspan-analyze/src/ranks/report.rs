//! How ranks look.

use hotspan_store::{Bytes, Duration};

use crate::ranks::{RankRow, Ranks};
use crate::report::{Cell, Column, Table};
use crate::steps::DeviceStep;

impl Ranks {
    /// The tables, with the name that programs call each by.
    #[must_use]
    pub fn report(&self) -> Vec<(&'static str, Table)> {
        let mut tables = vec![("ranks", self.rank_table()), ("collectives", self.collective_table())];
        tables.retain(|(_, table)| !table.rows.is_empty());
        tables
    }

    fn rank_table(&self) -> Table {
        let mut table = Table::new("Ranks");
        let rows = || self.ranks.iter();
        let time = |part: fn(&DeviceStep) -> Duration| {
            rows().map(move |row| row.time.as_ref().map_or(Cell::Missing, |time| Cell::Duration(part(time))))
        };
        table.add_column(Column::text("rank", "Rank"), rows().map(|row| Cell::Text(row.rank.to_string())));
        table.add_column(Column::duration("time", "Recording"), time(|time| time.time));
        table.add_column(Column::duration("compute", "Compute"), time(|time| time.compute));
        table.add_column(
            Column::duration("communication", "Exposed communication"),
            time(|time| time.communication),
        );
        table.add_column(Column::duration("copy", "Exposed copy"), time(|time| time.copy));
        table.add_column(Column::duration("idle", "Idle"), time(|time| time.idle));
        let of = |value: fn(&RankRow) -> Cell| rows().map(value);
        table.add_column(Column::count("collectives", "Collectives"), of(|row| Cell::Count(row.matched)));
        table.add_column(Column::count("alone", "No partner"), of(|row| Cell::Count(row.alone)));
        table.add_column(Column::duration("wait", "Wait"), of(|row| Cell::Duration(row.wait)));
        table.add_column(Column::duration("transfer", "Transfer"), of(|row| Cell::Duration(row.transfer)));
        table.add_column(Column::count("last", "Came last"), of(|row| Cell::Count(row.last)));
        table
    }

    fn collective_table(&self) -> Table {
        let mut table = Table::new("Collectives");
        table.columns = vec![
            Column::text("kind", "Collective"),
            Column::text("group", "Group"),
            Column::count("calls", "Calls"),
            Column::count("ranks", "Ranks"),
            Column::bytes("bytes", "Bytes"),
            Column::duration("transfer", "Transfer"),
            Column::duration("wait", "Wait, all ranks"),
            Column::duration("longest_wait", "Longest waits"),
            Column::number("algorithm_rate", "Algorithm GB/s"),
            Column::number("bus_rate", "Bus GB/s"),
            Column::text("last", "Last rank"),
            Column::count("times_last", "Times last"),
        ];
        let number = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Number);
        for row in &self.collectives {
            let bytes = row.bytes.and_then(|bytes| i64::try_from(bytes).ok());
            table.add_row(vec![
                Cell::text(&row.kind),
                if row.group.is_empty() { Cell::Missing } else { Cell::text(&row.group) },
                Cell::Count(row.calls),
                Cell::Count(row.ranks),
                bytes.map_or(Cell::Missing, |bytes| Cell::Bytes(Bytes(bytes))),
                Cell::Duration(row.transfer),
                Cell::Duration(row.wait),
                Cell::Duration(row.longest_wait),
                number(row.algorithm_rate),
                number(row.bus_rate),
                row.last.map_or(Cell::Missing, |(rank, _)| Cell::Text(rank.to_string())),
                row.last.map_or(Cell::Missing, |(_, count)| Cell::Count(count)),
            ]);
        }
        table
    }
}
