//! Steps of traces small enough to add up in one's head; times in nanoseconds.

use hotspan_analyze::steps::{DeviceStep, HostStep, steps};
use hotspan_store::{Duration, Timestamp};
use serde_json::{Value, json};

use crate::kineto::{self, operator, span};

fn mark(number: i64, begin: i64, end: i64) -> Value {
    span("user_annotation", &format!("ProfilerStep#{number}"), begin, end, 1, &json!({}))
}

fn launch(number: i64, begin: i64, end: i64) -> Value {
    span("cuda_runtime", "cudaLaunchKernel", begin, end, 1, &json!({"correlation": number}))
}

fn kernel(name: &str, number: i64, begin: i64, end: i64, stream: i64) -> Value {
    span("kernel", name, begin, end, stream, &json!({"correlation": number, "device": 0}))
}

fn device_parts(row: &DeviceStep) -> [i64; 5] {
    assert_eq!(row.compute + row.communication + row.copy + row.idle, row.time);
    [row.time, row.compute, row.communication, row.copy, row.idle].map(|part| part.0)
}

fn host_parts(row: &HostStep) -> [i64; 7] {
    let parts = [row.data_loader, row.waiting, row.runtime, row.operators, row.python, row.other];
    assert_eq!(parts.into_iter().sum::<Duration>(), row.time);
    [row.time.0, parts[0].0, parts[1].0, parts[2].0, parts[3].0, parts[4].0, parts[5].0]
}

#[test]
fn only_what_nothing_better_covers_is_exposed() {
    let copy = span("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 90, 9, &json!({"device": 0}));
    let events = [
        mark(1, 0, 100),
        // Compute 10..30 and 20..40 on two streams: 30.
        kernel("gemm", 1, 10, 30, 7),
        kernel("relu", 2, 20, 40, 8),
        // Communication 30..60: 10 of it beside compute, 20 exposed.
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3, 30, 60, 9),
        // A copy 50..90: 10 beside communication, 30 exposed.
        copy,
    ];
    let steps = steps(&kineto::model(&events));
    assert_eq!(steps.devices.iter().map(device_parts).collect::<Vec<_>>(), [[100, 30, 20, 30, 20]]);
    assert_eq!((steps.devices[0].step, steps.devices[0].device.index), (Some(1), 0));
}

/// The device runs behind the host: a step lasts until its last kernel ends, and the next begins there.
#[test]
fn a_step_owns_what_it_launched() {
    let events = [
        mark(1, 0, 100),
        mark(2, 100, 200),
        launch(1, 10, 20),
        launch(2, 90, 95),
        launch(3, 110, 120),
        kernel("a", 1, 30, 60, 7),
        kernel("b", 2, 100, 130, 7),
        kernel("c", 3, 140, 260, 7),
        // Of another thread's making, with no launch: it lengthens nothing.
        kernel("d", 99, 300, 310, 7),
    ];
    let steps = steps(&kineto::model(&events));
    let windows: Vec<_> = steps.devices.iter().map(|row| (row.step, row.begin, row.time.0)).collect();
    assert_eq!(windows, [(Some(1), Timestamp(0), 130), (Some(2), Timestamp(130), 130)]);
    assert_eq!(
        steps.devices.iter().map(device_parts).collect::<Vec<_>>(),
        [[130, 60, 0, 0, 70], [130, 120, 0, 0, 10]]
    );
}

#[test]
fn a_graph_is_one_launch_of_many_kernels() {
    let graph = span("cuda_runtime", "cudaGraphLaunch", 10, 20, 1, &json!({"correlation": 5}));
    let events = [
        mark(1, 0, 50),
        graph,
        kernel("a", 5, 30, 40, 7),
        kernel("b", 5, 45, 80, 7),
        kernel("c", 5, 60, 90, 8),
    ];
    let steps = steps(&kineto::model(&events));
    assert_eq!(steps.devices.iter().map(device_parts).collect::<Vec<_>>(), [[90, 55, 0, 0, 35]]);
}

#[test]
fn each_device_has_its_own_row() {
    let mut other = kernel("a", 2, 20, 30, 7);
    other["pid"] = json!(3);
    other["args"]["device"] = json!(3);
    let events = [mark(4, 0, 100), kernel("a", 1, 0, 100, 7), other];
    let steps = steps(&kineto::model(&events));
    assert_eq!(steps.devices.iter().map(|row| row.device.index).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(steps.devices.iter().map(device_parts).collect::<Vec<_>>()[1], [100, 10, 0, 0, 90]);
}

#[test]
fn the_host_does_one_thing_at_a_time() {
    let events = [
        mark(1, 0, 100),
        span("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 0, 20, 1, &json!({})),
        // Inside the DataLoader: does not count again.
        operator("aten::stack", 5, 15, 1),
        span("python_function", "train.py(3): step", 20, 90, 1, &json!({})),
        operator("aten::mm", 30, 50, 1),
        launch(1, 35, 40),
        // Another thread's operator overlaps by 5.
        operator("aten::add", 45, 60, 2),
        span("cuda_runtime", "cudaStreamSynchronize", 70, 85, 1, &json!({"correlation": 9})),
        kernel("gemm", 1, 60, 80, 7),
    ];
    let steps = steps(&kineto::model(&events));
    // Operators 30..60 less the launch; Python 20..90 less that, the launch and the wait; 90..100 is left.
    assert_eq!(steps.host.iter().map(host_parts).collect::<Vec<_>>(), [[100, 20, 15, 5, 25, 25, 10]]);
}

#[test]
fn a_trace_without_steps_is_one() {
    let events = [operator("aten::mm", 10, 30, 1), launch(1, 15, 20), kernel("gemm", 1, 40, 60, 7)];
    let steps = steps(&kineto::model(&events));
    assert_eq!(steps.devices.iter().map(device_parts).collect::<Vec<_>>(), [[50, 20, 0, 0, 30]]);
    assert_eq!(steps.devices[0].step, None);
    assert_eq!(steps.host.iter().map(host_parts).collect::<Vec<_>>(), [[50, 0, 0, 5, 15, 0, 30]]);
    let nothing = kineto::model(&[]);
    assert_eq!(hotspan_analyze::steps::steps(&nothing).host, []);
}

#[test]
fn overlapping_marks_share_no_moment() {
    let events = [mark(1, 0, 60), mark(2, 50, 100), kernel("a", 1, 0, 100, 7)];
    let steps = steps(&kineto::model(&events));
    assert_eq!(steps.devices.iter().map(|row| row.time.0).collect::<Vec<_>>(), [60, 40]);
}
