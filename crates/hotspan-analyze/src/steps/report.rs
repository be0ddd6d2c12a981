//! How steps look: one table for devices, one for the host.

use hotspan_store::Duration;

use crate::report::{Cell, Column, Table};
use crate::steps::Steps;

impl Steps {
    /// The tables, with the name that programs call each by.
    #[must_use]
    pub fn report(&self) -> Vec<(&'static str, Table)> {
        let mut tables = Vec::new();
        if !self.devices.is_empty() {
            tables.push(("devices", self.device_table()));
        }
        if !self.host.is_empty() {
            tables.push(("host", self.host_table()));
        }
        tables
    }

    fn device_table(&self) -> Table {
        let mut table = Table::new("Steps on the device");
        table.columns = vec![
            Column::text("step", "Step"),
            Column::text("device", "Device"),
            Column::duration("begin", "Begin"),
            Column::duration("time", "Time"),
            Column::duration("compute", "Compute"),
            Column::duration("communication", "Exposed communication"),
            Column::duration("copy", "Exposed copy"),
            Column::duration("idle", "Idle"),
            Column::percent("compute_share", "Compute %"),
            Column::percent("idle_share", "Idle %"),
        ];
        for row in &self.devices {
            let mut cells = vec![step(row.step), Cell::Text(row.device.to_string())];
            let begin = Duration(row.begin.0);
            let times = [begin, row.time, row.compute, row.communication, row.copy, row.idle];
            cells.extend(times.map(Cell::Duration));
            cells.extend([Cell::share(row.compute, row.time), Cell::share(row.idle, row.time)]);
            table.add_row(cells);
        }
        table
    }

    fn host_table(&self) -> Table {
        let mut table = Table::new("Steps on the host");
        let titles = [
            ("begin", "Begin"),
            ("time", "Time"),
            ("data_loader", "DataLoader"),
            ("waiting", "Waiting for device"),
            ("runtime", "Runtime"),
            ("operators", "Operators"),
            ("python", "Python"),
            ("other", "Other"),
        ];
        table.columns.push(Column::text("step", "Step"));
        table.columns.extend(titles.map(|(key, title)| Column::duration(key, title)));
        for row in &self.host {
            let times = [
                Duration(row.begin.0),
                row.time,
                row.data_loader,
                row.waiting,
                row.runtime,
                row.operators,
                row.python,
                row.other,
            ];
            let mut cells = vec![step(row.step)];
            cells.extend(times.map(Cell::Duration));
            table.add_row(cells);
        }
        table
    }
}

fn step(number: Option<i64>) -> Cell {
    Cell::Text(number.map_or_else(|| "all".to_owned(), |number| number.to_string()))
}
