//! What operators would take at best, and how much of its peak a device reached.

use crate::report::Table;
use crate::report::schema::Schema;
use crate::roofline::{Bound, FlopsUtilisation, Precision, Roofline, RooflineRow};


/// Below this share of computing time with a formula, a utilisation of the peak says too little to be shown.
const ENOUGH: f64 = 80.0;

/// Operators against their best.
pub(super) fn roofline(roofline: &Roofline) -> Table {
    let with_best = roofline.rows.iter().any(|row| row.best.is_some());
    Schema::<RooflineRow>::new("roofline", "Roofline by operator")
        .text("device", "Device", |row| row.device.to_string())
        .help("The number of the device.")
        .text("operator", "Operator", |row| &row.operator)
        .help("The operator that launched the work.")
        .text("precision", "Precision", |row| row.precision.map(Precision::title))
        .help("The precision that it computes in; FP32 with tensor cores is TF32.")
        .count("calls", "Calls", |row| row.calls)
        .help("How many times it was called.")
        .duration("time", "Device time", |row| row.time)
        .help("Time of the kernels it launched.")
        .number("gflops", "GFLOPs", |row| positive(row.flops, 1e9))
        .help("Floating point operations in 10^9, from formulas.")
        .number("megabytes", "MB", |row| positive(row.bytes, 1e6))
        .help("Each input and output once, in 10^6 bytes.")
        .number("intensity", "FLOP/byte", |row| {
            (row.bytes > 0).then(|| positive(row.flops, row.bytes as f64)).flatten()
        })
        .help("Operations for each byte.")
        .number("tflops", "TFLOP/s", |row| per_time(row.flops, row, 1e3))
        .help("Operations over device time, in 10^12 a second.")
        .number("gb_per_second", "GB/s", |row| per_time(row.bytes, row, 1.0))
        .help("Bytes over device time, in 10^9 a second.")
        .percent("roofline", "Roofline %", |row| {
            row.best.filter(|_| row.time.0 > 0).map(|best| best * 100.0 / row.time.0 as f64)
        })
        .help("The best time that the device's peaks allow, as a share of the device time.")
        .when(with_best)
        .duration("wasted", "Wasted", RooflineRow::wasted)
        .help("Device time above what the roofline would need.")
        .when(with_best)
        .text("bound", "Bound", |row| {
            row.bound().map(|bound| match bound {
                Bound::Compute => "compute",
                Bound::Memory => "memory",
                Bound::Latency => "latency",
            })
        })
        .help("What limits it: operations, bytes, or kernels of less than 5 µs.")
        .when(with_best)
        .table(&roofline.rows)
}

fn positive(amount: u64, unit: f64) -> Option<f64> {
    (amount > 0).then(|| amount as f64 / unit)
}

fn per_time(amount: u64, row: &RooflineRow, unit: f64) -> Option<f64> {
    (row.time.0 > 0 && amount > 0).then(|| amount as f64 / row.time.0 as f64 / unit)
}

/// Model FLOPs utilisation, shown only where most of the time has a formula.
pub(super) fn utilisation(roofline: &Roofline) -> Table {
    let enough = |device: &FlopsUtilisation| device.coverage().is_some_and(|coverage| coverage >= ENOUGH);
    Schema::<FlopsUtilisation>::new("flops_utilisation", "FLOPs utilisation")
        .text("device", "Device", |device| device.device.to_string())
        .help("The number of the device.")
        .text("peaks", "Peaks of", |device| device.peaks)
        .help("The device whose datasheet the peaks come from.")
        .number("gflops", "GFLOPs", |device| device.flops as f64 / 1e9)
        .help("Floating point operations in 10^9, from formulas.")
        .number("tflops", "TFLOP/s", |device| device.flops as f64 / (device.window.0.max(1) as f64 * 1e3))
        .help("Operations over the recording, in 10^12 a second.")
        .percent("coverage", "Coverage", FlopsUtilisation::coverage)
        .help("The share of computing time in operators with a formula.")
        .percent("mfu", "MFU", move |device| device.percent.filter(|_| enough(device)))
        .help("What all operations would take at the peak of their precision, as a share of the recording; not shown below 80 % coverage.")
        .table(&roofline.devices)
}
