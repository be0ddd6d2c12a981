//! Which operator a kernel belongs to, in traces of several versions of Kineto.

use hotspan_analyze::{GroupBy, KeyAverages};
use serde_json::{Value, json};

use crate::kineto::{self, span};

/// Names of rows that own device time themselves, with that time.
fn owners(events: &[Value]) -> Vec<(String, i64)> {
    let averages = KeyAverages::compute(&kineto::model(events), &GroupBy::default());
    let host = averages.rows.iter().filter(|row| row.device == hotspan_analyze::DeviceKind::Cpu);
    let owning = host.filter(|row| row.self_device_time_total.0 != 0);
    owning.map(|row| (row.key.clone(), row.self_device_time_total.0)).collect()
}

fn owned(name: &str, time: i64) -> Vec<(String, i64)> {
    vec![(name.to_owned(), time)]
}

#[test]
fn by_external_id() {
    let events = [
        span("cpu_op", "outer", 0, 100, 1, &json!({"External id": 1})),
        span("cpu_op", "inner", 10, 90, 1, &json!({"External id": 2})),
        span("cuda_runtime", "cudaLaunchKernel", 20, 30, 1, &json!({"External id": 2, "correlation": 50})),
        span("kernel", "k", 40, 47, 7, &json!({"External id": 2, "correlation": 50})),
    ];
    assert_eq!(owners(&events), owned("inner", 7));
}

/// Kineto of 2021 wrote `external id` in lower case on device spans.
#[test]
fn by_external_id_of_old_kineto() {
    let events = [
        span("Operator", "op", 0, 100, 1, &json!({"External id": 2})),
        span("Runtime", "cudaLaunchKernel", 20, 30, 9, &json!({"external id": 2, "correlation": 50})),
        span("Kernel", "k", 40, 47, 7, &json!({"external id": 2, "correlation": 50})),
    ];
    assert_eq!(owners(&events), owned("op", 7));
}

/// Kineto of 2023 wrote the correlation as external id, which can be another operator's id by accident.
#[test]
fn an_external_id_that_repeats_the_correlation_proves_nothing() {
    let events = [
        span("cpu_op", "stranger", 0, 10, 1, &json!({"External id": 50})),
        span("cpu_op", "launcher", 20, 90, 1, &json!({"External id": 3})),
        span("cuda_runtime", "cudaLaunchKernel", 30, 40, 1, &json!({"External id": 50, "correlation": 50})),
        span("kernel", "k", 50, 57, 7, &json!({"External id": 50, "correlation": 50})),
    ];
    assert_eq!(owners(&events), owned("launcher", 7));
}

#[test]
fn one_graph_launch_owns_many_kernels_even_under_an_annotation_only() {
    let events = [
        span("user_annotation", "replay", 0, 100, 1, &json!({"External id": 1})),
        span("python_function", "graphs.py(1): replay", 5, 95, 1, &json!({})),
        span("cuda_runtime", "cudaGraphLaunch", 10, 90, 1, &json!({"correlation": 50})),
        span("kernel", "a", 100, 110, 7, &json!({"correlation": 50})),
        span("kernel", "b", 110, 125, 7, &json!({"correlation": 50})),
    ];
    assert_eq!(owners(&events), owned("replay", 25));
}

#[test]
fn zero_is_no_correlation() {
    let events = [
        span("cpu_op", "op", 0, 100, 1, &json!({"External id": 0})),
        span("cuda_runtime", "cudaFree", 10, 20, 1, &json!({"correlation": 0, "External id": 0})),
        span("kernel", "k", 50, 57, 7, &json!({"correlation": 0, "External id": 0})),
    ];
    assert_eq!(owners(&events), []);
    let averages = KeyAverages::compute(&kineto::model(&events), &GroupBy::default());
    assert_eq!(averages.unattributed_device_spans, 1);
}

/// torch replaces the outer call's kernels by the inner one's; here none is lost.
#[test]
fn kernels_of_merged_calls_are_added() {
    let events = [
        span("cpu_op", "aten::sum", 0, 100, 1, &json!({"External id": 1})),
        span("cpu_op", "aten::sum", 10, 50, 1, &json!({"External id": 2})),
        span("kernel", "k", 50, 57, 7, &json!({"External id": 1, "correlation": 8})),
        span("kernel", "k", 60, 65, 7, &json!({"External id": 2, "correlation": 9})),
    ];
    assert_eq!(owners(&events), owned("aten::sum", 12));
}
