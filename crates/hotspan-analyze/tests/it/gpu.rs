//! Utilisation, launches, copies, streams and rooflines of small traces; times in nanoseconds unless said otherwise.

use hotspan_analyze::Model;
use hotspan_analyze::copies::copies;
use hotspan_analyze::gpu::gpu;
use hotspan_analyze::roofline::Bound;
use hotspan_analyze::streams::streams;
use hotspan_analyze::{Cell, kernels};
use hotspan_store::{Bytes, Duration};
use serde_json::{Value, json};

use crate::kineto::{self, operator, span};

fn call(name: &str, number: i64, begin: i64, end: i64) -> Value {
    span("cuda_runtime", name, begin, end, 1, &json!({"correlation": number}))
}

fn kernel(number: i64, begin: i64, end: i64, args: &Value) -> Value {
    let mut event = span("kernel", "k", begin, end, 7, args);
    event["args"]["correlation"] = json!(number);
    event["args"]["device"] = json!(0);
    event
}

#[test]
fn launches_count_per_call_and_a_graph_is_one() {
    let none = json!({});
    let trace = kineto::model(&[
        call("cudaLaunchKernel", 1, 0, 10),
        // Begins 5 after its call, runs 4: shorter than the call by 6.
        kernel(1, 15, 19, &none),
        call("cudaGraphLaunch", 2, 20, 40),
        // Begins before the call returns; three kernels of 30 together are worth 20.
        kernel(2, 35, 45, &none),
        kernel(2, 45, 55, &none),
        kernel(2, 60, 70, &none),
        kernel(77, 80, 90, &none),
    ]);
    let gpu = gpu(&trace).unwrap();
    let launches = &gpu.launches[0];
    assert_eq!((launches.work, launches.launched, launches.calls), (5, 4, 2));
    assert_eq!((launches.graphs, launches.graph_work), (1, 3));
    assert_eq!((launches.delay_total, launches.delay.max), (Duration(5), Duration(5)));
    assert_eq!((launches.short, launches.short_excess), (1, Duration(6)));
    assert_eq!(launches.call_total, Duration(30));
}

#[test]
fn utilisation_is_of_the_recording() {
    let args = |blocks: f64, occupancy: f64| json!({"blocks per SM": blocks, "est. achieved occupancy %": occupancy});
    let mut tensor = kernel(2, 50, 100, &args(2.0, 20.0));
    tensor["name"] = json!("sm80_xmma_gemm_bf16");
    let trace = kineto::model(&[
        operator("aten::mm", 0, 200, 1),
        // Half of the multiprocessors for 50, all of them for 50, of 200.
        kernel(1, 0, 50, &args(0.5, 40.0)),
        tensor,
        span("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 100, 140, 7, &json!({"bytes": 80})),
    ]);
    let gpu = gpu(&trace).unwrap();
    let used = &gpu.devices[0];
    assert_eq!((used.busy(), used.kernels), (Duration(140), Duration(100)));
    assert_eq!((used.sm_efficiency, used.occupancy), (Some(37.5), Some(30.0)));
    assert_eq!((used.kernel_total, used.tensor_total), (Duration(100), Duration(50)));
    let names: Vec<String> = gpu.report(&trace, 0).into_iter().map(|table| table.id).collect();
    assert_eq!(names, ["devices", "time", "idle", "culprits", "gaps", "launches", "streams"]);
}

#[test]
fn copies_by_kind_and_memory() {
    let copy = |name: &str, begin: i64, end: i64, bytes: i64| {
        span("gpu_memcpy", name, begin, end, 7, &json!({"bytes": bytes}))
    };
    let trace = kineto::model(&[
        copy("Memcpy HtoD (Pageable -> Device)", 0, 100, 200),
        copy("Memcpy HtoD (Pageable -> Device)", 100, 300, 1_600),
        copy("Memcpy DtoH (Device -> Pinned)", 300, 310, 50),
    ]);
    let rows = copies(&trace);
    assert_eq!(
        (rows[0].kind.as_str(), rows[0].from.as_str(), rows[0].to.as_str()),
        ("HtoD", "Pageable", "Device")
    );
    assert_eq!((rows[0].count, rows[0].total, rows[0].bytes), (2, Duration(300), Some(Bytes(1_800))));
    // 200 bytes in 100 ns are 2 GB/s, 1600 in 200 are 8, all together 1800 in 300.
    assert_eq!((rows[0].rate(), rows[0].rates), (Some(6.0), Some((2.0, 8.0))));
    assert_eq!((rows[1].kind.as_str(), rows[1].rate()), ("DtoH", Some(5.0)));
}

#[test]
fn streams_and_their_queues() {
    let none = json!({});
    let mut side = kernel(3, 30, 60, &none);
    side["tid"] = json!(8);
    side["name"] = json!("ncclDevKernel_AllGather");
    let trace = kineto::model(&[
        call("cudaLaunchKernel", 1, 0, 2),
        call("cudaLaunchKernel", 2, 2, 4),
        call("cudaLaunchKernel", 3, 4, 6),
        kernel(1, 10, 50, &none),
        kernel(2, 50, 100, &none),
        side,
    ]);
    let rows = streams(&trace);
    let row = |place: usize| {
        (rows[place].stream.as_str(), rows[place].kernels, rows[place].busy.0, rows[place].max_queue)
    };
    assert_eq!((row(0), row(1)), (("7", 2, 90, 2), ("8", 1, 30, 1)));
    // One waits 0..2, two 2..10, one 10..50: 2 + 16 + 40 over 100.
    assert_eq!(rows[0].mean_queue, Some(0.58));
    assert_eq!(rows[1].by_kind, [Duration(0), Duration(30), Duration(0)]);
    let gpu = gpu(&trace).unwrap();
    assert_eq!((gpu.devices[0].communication, gpu.devices[0].overlapped), (Duration(30), Duration(30)));
}

/// A product of 1000x1000x1000 in half precision on an A100: 2 GFLOP at 312 TFLOP/s are 6.41 us, 6 MB at 1555 GB/s 3.86 us.
fn product() -> Model {
    let shapes = json!({"External id": 1, "Input Dims": [[1000, 1000], [1000, 1000]], "Input type": ["c10::Half", "c10::Half"]});
    let mut builder = vec![span("cpu_op", "aten::mm", 0, 50_000, 1, &shapes)];
    builder.push(call("cudaLaunchKernel", 5, 10_000, 20_000));
    let mut gemm = kernel(5, 30_000, 50_000, &json!({}));
    gemm["name"] = json!("ampere_fp16_s16816gemm_fp16_128x128");
    builder.push(gemm);
    let mut trace = kineto::trace(&builder);
    trace.set_metadata("deviceProperties", r#"[{"id": 0, "name": "NVIDIA A100-SXM4-40GB"}]"#);
    trace.into()
}

#[test]
fn the_roofline_of_a_product() {
    let trace = product();
    let gpu = gpu(&trace).unwrap();
    let row = &gpu.roofline.rows[0];
    assert_eq!((row.operator.as_str(), row.calls, row.time), ("aten::mm", 1, Duration(20_000)));
    assert_eq!((row.flops, row.bytes), (2_000_000_000, 6_000_000));
    assert!((row.best.unwrap() - 6_410.256).abs() < 0.01);
    assert!((row.bytes_time.unwrap() - 3_858.521).abs() < 0.01);
    assert_eq!((row.bound(), row.wasted()), (Some(Bound::Compute), Some(Duration(13_589))));
    // All computing time has a formula; 6.41 of 50 us.
    let device = &gpu.roofline.devices[0];
    assert_eq!((device.peaks, device.coverage()), (Some("A100 40GB"), Some(100.0)));
    assert!((device.percent.unwrap() - 12.8205).abs() < 0.001);
}

#[test]
fn kernels_say_whether_they_use_tensor_cores() {
    let report = kernels(&product()).report();
    let place = report.columns.iter().position(|column| column.key == "tensor_cores").unwrap();
    assert_eq!(report.rows[0][place], Cell::text("yes"));
}

#[test]
fn a_trace_without_devices_has_no_gpu() {
    assert!(gpu(&kineto::model(&[operator("aten::mm", 0, 10, 1)])).is_none());
}
