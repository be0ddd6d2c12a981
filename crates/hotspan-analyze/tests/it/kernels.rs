//! Device time by kernel, and what is in a trace.

use hotspan_analyze::{Cell, kernels};
use hotspan_store::Duration;

use crate::kineto::golden_step;

#[test]
fn kernels_by_time() {
    let kernels = kernels(&golden_step());
    let rows: Vec<_> = kernels
        .rows
        .iter()
        .map(|row| (&row.name[..5], row.calls, row.total.0, row.mean().0, row.min.0, row.max.0))
        .collect();
    assert_eq!(
        rows,
        [
            ("sgemm", 3, 470_000, 156_666, 100_000, 250_000),
            ("void ", 2, 60_000, 30_000, 20_000, 40_000),
            ("Memcp", 1, 50_000, 50_000, 50_000, 50_000),
            ("split", 1, 10_000, 10_000, 10_000, 10_000),
        ]
    );
    assert_eq!(kernels.total, Duration(590_000));
    assert_eq!((kernels.rows[0].blocks_per_sm, kernels.rows[0].occupancy), (Some(2.0), Some(50.0)));
    assert_eq!((kernels.rows[2].blocks_per_sm, kernels.rows[2].occupancy), (None, None));
    let report = kernels.report();
    assert_eq!(report.columns[3].title, "Device %");
    assert_eq!(report.rows[2][3], Cell::Percent(50.0 * 100.0 / 590.0));
    assert_eq!(report.rows[2][7], Cell::Missing);
}

#[test]
fn a_summary_counts_everything() {
    let model = golden_step();
    let summary = model.summary();
    let categories: Vec<_> = summary.categories.iter().map(|row| (row.name.as_str(), row.spans)).collect();
    assert_eq!(
        categories,
        [
            ("cpu_op", 12),
            ("cuda_runtime", 8),
            ("kernel", 6),
            ("user_annotation", 3),
            ("gpu_memcpy", 1),
            ("gpu_user_annotation", 1),
        ]
    );
    assert_eq!((summary.spans, summary.instants), (31, 6));
    assert_eq!((summary.processes, summary.threads, summary.devices, summary.streams), (1, 2, 1, 1));
    assert_eq!(
        summary.steps.iter().map(|step| (step.number, step.duration.0)).collect::<Vec<_>>(),
        [(7, 1_500_000)]
    );
    assert_eq!(summary.wall_time, Duration(1_500_000));
    let titles: Vec<String> = summary.report().into_iter().map(|table| table.title).collect();
    assert_eq!(titles, ["Trace", "Spans by category", "Steps"]);
}
