//! How rooflines look.

use crate::report::{Cell, Column, Table};
use crate::roofline::{Bound, Roofline, RooflineRow};

/// Below this share of computing time with a formula, a utilisation of the peak says too little to be shown.
const ENOUGH: f64 = 80.0;

impl Roofline {
    /// Operators against their best.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new("Roofline by operator");
        let rows = || self.rows.iter();
        let number = |number: Option<f64>| {
            number.filter(|number| number.is_finite()).map_or(Cell::Missing, Cell::Number)
        };
        let per_time = |amount: u64, row: &RooflineRow, unit: f64| {
            (row.time.0 > 0 && amount > 0).then(|| amount as f64 / row.time.0 as f64 / unit)
        };
        table.add_column(
            Column::text("device", "Device"),
            rows().map(|row| Cell::Text(row.device.to_string())),
        );
        table.add_column(Column::text("operator", "Operator"), rows().map(|row| Cell::text(&row.operator)));
        let precision =
            |row: &RooflineRow| row.precision.map_or(Cell::Missing, |kind| Cell::text(kind.title()));
        table.add_column(Column::text("precision", "Precision"), rows().map(precision));
        table.add_column(Column::count("calls", "Calls"), rows().map(|row| Cell::Count(row.calls)));
        table.add_column(Column::duration("time", "Device time"), rows().map(|row| Cell::Duration(row.time)));
        let giga = |row: &RooflineRow| number((row.flops > 0).then(|| row.flops as f64 / 1e9));
        table.add_column(Column::number("gflops", "GFLOPs"), rows().map(giga));
        let megabytes = |row: &RooflineRow| number((row.bytes > 0).then(|| row.bytes as f64 / 1e6));
        table.add_column(Column::number("megabytes", "MB"), rows().map(megabytes));
        let intensity = |row: &RooflineRow| {
            number((row.bytes > 0 && row.flops > 0).then(|| row.flops as f64 / row.bytes as f64))
        };
        table.add_column(Column::number("intensity", "FLOP/byte"), rows().map(intensity));
        let tera = |row: &RooflineRow| number(per_time(row.flops, row, 1e3));
        table.add_column(Column::number("tflops", "TFLOP/s"), rows().map(tera));
        let rate = |row: &RooflineRow| number(per_time(row.bytes, row, 1.0));
        table.add_column(Column::number("gb_per_second", "GB/s"), rows().map(rate));
        if self.rows.iter().any(|row| row.best.is_some()) {
            let reached = |row: &RooflineRow| match row.best {
                Some(best) if row.time.0 > 0 => Cell::Percent(best * 100.0 / row.time.0 as f64),
                _ => Cell::Missing,
            };
            table.add_column(Column::percent("roofline", "Roofline %"), rows().map(reached));
            let wasted = |row: &RooflineRow| row.wasted().map_or(Cell::Missing, Cell::Duration);
            table.add_column(Column::duration("wasted", "Wasted"), rows().map(wasted));
            let bound = |row: &RooflineRow| match row.bound() {
                Some(Bound::Compute) => Cell::text("compute"),
                Some(Bound::Memory) => Cell::text("memory"),
                Some(Bound::Latency) => Cell::text("latency"),
                None => Cell::Missing,
            };
            table.add_column(Column::text("bound", "Bound"), rows().map(bound));
        }
        table
    }

    /// Model FLOPs utilisation, shown only where most of the time has a formula.
    #[must_use]
    pub fn utilisation_table(&self) -> Table {
        let mut table = Table::new("FLOPs utilisation");
        table.columns = vec![
            Column::text("device", "Device"),
            Column::text("peaks", "Peaks of"),
            Column::number("gflops", "GFLOPs"),
            Column::number("tflops", "TFLOP/s"),
            Column::percent("coverage", "Coverage"),
            Column::percent("mfu", "MFU"),
        ];
        for device in &self.devices {
            let coverage = device.coverage();
            let enough = coverage.is_some_and(|coverage| coverage >= ENOUGH);
            table.add_row(vec![
                Cell::Text(device.device.to_string()),
                device.peaks.map_or(Cell::Missing, Cell::text),
                Cell::Number(device.flops as f64 / 1e9),
                Cell::Number(device.flops as f64 / (device.window.0.max(1) as f64 * 1e3)),
                coverage.map_or(Cell::Missing, Cell::Percent),
                device.percent.filter(|_| enough).map_or(Cell::Missing, Cell::Percent),
            ]);
        }
        table
    }
}
