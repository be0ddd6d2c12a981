//! Traces that no profiler should write: nothing panics, and what can be counted is.

use hotspan_analyze::gpu::gpu;
use hotspan_analyze::steps::steps;
use hotspan_analyze::{GroupBy, KeyAverages, kernels};

use crate::kineto::{self, operator};

fn everything() -> GroupBy {
    GroupBy {
        input_shapes: true,
        stack_depth: 3,
        overload_name: true,
        module: true,
        thread: true,
        device: true,
        event: false,
        python_functions: true,
    }
}

#[test]
fn absurd_times_and_args_do_not_panic() {
    let trace = kineto::absurd();
    for group_by in [GroupBy::default(), everything()] {
        let averages = KeyAverages::compute(&trace, &group_by);
        assert_eq!(averages.rows.iter().map(|row| row.count).sum::<u64>(), 9);
        assert_eq!(averages.report().rows.len(), averages.rows.len());
    }
    assert_eq!(kernels(&trace).rows.len(), 1);
    assert_eq!(trace.summary().spans, 9);
    assert_eq!(steps(&trace).devices.len(), 1);
    assert!(gpu(&trace).is_some_and(|gpu| gpu.report(&trace, 0).len() > 3));
}

#[test]
fn ten_thousand_levels_are_as_good_as_one() {
    let deep: Vec<_> =
        (0..10_000).map(|level| operator(&format!("op{}", level % 7), level, 40_000 - level, 1)).collect();
    let averages = KeyAverages::compute(&kineto::model(&deep), &everything());
    assert_eq!(averages.self_cpu_time_total().0, 40_000);
}
