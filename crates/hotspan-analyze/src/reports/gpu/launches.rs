//! What launching costs.

use hotspan_store::Duration;

use crate::launch_statistics::LaunchStatistics;
use crate::report::Table;
use crate::report::schema::Schema;

pub(super) fn launches(statistics: &[LaunchStatistics]) -> Table {
    Schema::<LaunchStatistics>::new("launches", "Launches")
        .text("device", "Device", |row| row.device.to_string())
        .help("The number of the device.")
        .count("work", "Work", |row| row.work)
        .help("Kernels, copies and fills.")
        .count("calls", "Calls", |row| row.calls)
        .help("Calls that gave the device work; a graph is one call.")
        .count("graphs", "Graphs", |row| row.graphs)
        .help("Calls that launched graphs.")
        .count("graph_work", "In graphs", |row| row.graph_work)
        .help("Kernels, copies and fills that graphs launched.")
        .count("unlaunched", "No call known", |row| row.work - row.launched)
        .help("Kernels, copies and fills whose call is not in the trace.")
        .duration("call_mean", "Mean call", |row| mean(row.call_total, row.calls))
        .help("The mean duration of the calls.")
        .duration("call_p99", "p99 call", |row| row.call_time.p99)
        .help("99 of 100 calls took at most as long.")
        .duration("delay_mean", "Mean delay", |row| mean(row.delay_total, row.calls))
        .help("The mean time from the end of a call to the beginning of its first work, not below zero.")
        .duration("delay_p50", "p50 delay", |row| row.delay.p50)
        .help("The median delay.")
        .duration("delay_p99", "p99 delay", |row| row.delay.p99)
        .help("99 of 100 delays were at most as long.")
        .duration("delay_max", "Max delay", |row| row.delay.max)
        .help("The longest delay.")
        .count("short", "Shorter than call", |row| row.short)
        .help("Launches of kernels and graphs that took longer than all they launched.")
        .percent("short_share", "Shorter %", |row| {
            (row.kernel_calls > 0).then(|| row.short as f64 * 100.0 / row.kernel_calls as f64)
        })
        .help("The same as a share of all launches of kernels and graphs.")
        .duration("short_excess", "Excess", |row| row.short_excess)
        .help("How much longer these calls took than their work.")
        .table(statistics)
}

fn mean(total: Duration, count: u64) -> Option<Duration> {
    i64::try_from(count).ok().filter(|&count| count > 0).map(|count| Duration(total.0 / count))
}
