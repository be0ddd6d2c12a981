//! Idle time and its causes, in traces small enough to add up in one's head; times in nanoseconds.

use hotspan_analyze::Model;
use hotspan_analyze::idle::{Cause, DeviceIdle, gaps};
use hotspan_analyze::report::Cell;
use hotspan_store::Duration;
use serde_json::{Value, json};

use crate::kineto::{self, operator, span};

fn call(name: &str, number: i64, begin: i64, end: i64) -> Value {
    span("cuda_runtime", name, begin, end, 1, &json!({"correlation": number}))
}

fn kernel(number: i64, begin: i64, end: i64) -> Value {
    span("kernel", "k", begin, end, 7, &json!({"correlation": number, "device": 0}))
}

/// The one device's idle time; its pieces must add up.
fn device(trace: &Model) -> DeviceIdle {
    let device = trace.idle().first().unwrap().clone();
    let pieces: Duration = device.pieces.iter().map(|piece| piece.interval.length()).sum();
    let gaps: Duration = device.gaps.iter().map(|gap| gap.interval.length()).sum();
    assert_eq!((pieces, gaps), (device.idle, device.idle));
    device
}

/// Pieces: cause, length, and the name of the culprit.
fn pieces(events: &[Value]) -> Vec<(Cause, i64, String)> {
    let trace = kineto::model(events);
    let device = device(&trace);
    let name = |span| trace.span_name(span).to_owned();
    let piece = |piece: &hotspan_analyze::idle::Piece| {
        (piece.cause, piece.interval.length().0, piece.culprit.map(name).unwrap_or_default())
    };
    device.pieces.iter().map(piece).collect()
}

fn piece(cause: Cause, length: i64, culprit: &str) -> (Cause, i64, String) {
    (cause, length, culprit.to_owned())
}

#[test]
fn the_host_is_late_until_it_has_launched_and_the_device_takes_the_rest() {
    let events = [
        call("cudaLaunchKernel", 1, 0, 10),
        kernel(1, 10, 50),
        operator("aten::mm", 60, 90, 1),
        call("cudaLaunchKernel", 2, 70, 80),
        kernel(2, 85, 100),
    ];
    assert_eq!(
        pieces(&events),
        [
            // 0..10: the first launch, of no operator.
            piece(Cause::HostLate, 10, "cudaLaunchKernel"),
            // 50..70 before the call, 70..80 in it.
            piece(Cause::HostLate, 20, "aten::mm"),
            piece(Cause::HostLate, 10, "aten::mm"),
            piece(Cause::Dispatch, 5, "k"),
        ]
    );
}

#[test]
fn work_that_was_launched_in_time_is_the_devices_affair() {
    let events = [
        call("cudaLaunchKernel", 1, 0, 10),
        call("cudaLaunchKernel", 2, 10, 20),
        kernel(1, 10, 50),
        kernel(2, 54, 100),
    ];
    assert_eq!(pieces(&events)[1..], [piece(Cause::Dispatch, 4, "k")]);
}

/// A wait of 40 has cost at most 40 of launching ahead; the host's further 30 would have been late anyway.
#[test]
fn a_wait_pays_for_what_the_host_could_have_done_meanwhile() {
    let events = [
        call("cudaLaunchKernel", 1, 0, 10),
        kernel(1, 10, 60),
        call("cudaStreamSynchronize", 90, 20, 65),
        operator("aten::mm", 65, 200, 1),
        call("cudaLaunchKernel", 2, 135, 140),
        kernel(2, 140, 200),
    ];
    assert_eq!(
        pieces(&events)[1..],
        [
            piece(Cause::Synchronise, 5, "cudaStreamSynchronize"),
            piece(Cause::Synchronise, 40, "cudaStreamSynchronize"),
            piece(Cause::HostLate, 30, "aten::mm"),
            piece(Cause::HostLate, 5, "aten::mm"),
        ]
    );
}

#[test]
fn loading_allocating_copying_and_communicating_are_named() {
    let data_loader = "enumerate(DataLoader)#_Iter.__next__";
    let events = [
        call("cudaLaunchKernel", 1, 0, 10),
        kernel(1, 10, 20),
        span("user_annotation", data_loader, 20, 50, 1, &json!({})),
        // Inside the DataLoader, so the DataLoader's.
        call("cudaHostAlloc", 8, 30, 40),
        call("cudaMalloc", 9, 55, 60),
        operator("c10d::allreduce_", 60, 70, 1),
        call("cudaStreamSynchronize", 10, 62, 68),
        call("cudaMemcpyAsync", 2, 80, 90),
        span("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 95, 100, 7, &json!({"correlation": 2})),
    ];
    assert_eq!(
        pieces(&events)[1..],
        [
            piece(Cause::DataLoader, 30, data_loader),
            piece(Cause::HostLate, 5, "cudaMemcpyAsync"),
            piece(Cause::Allocator, 5, "cudaMalloc"),
            piece(Cause::Communication, 10, "c10d::allreduce_"),
            piece(Cause::HostLate, 10, "cudaMemcpyAsync"),
            piece(Cause::Copy, 10, "cudaMemcpyAsync"),
            piece(Cause::Dispatch, 5, "Memcpy HtoD (Pageable -> Device)"),
        ]
    );
}

#[test]
fn what_nobody_launched_is_unknown() {
    let events = [kernel(1, 0, 10), kernel(2, 30, 40)];
    assert_eq!(pieces(&events), [piece(Cause::Unknown, 20, "")]);
}

#[test]
fn the_end_of_the_recording_is_a_gap_too() {
    let events = [call("cudaLaunchKernel", 1, 0, 10), kernel(1, 10, 20), operator("aten::cpu", 15, 50, 1)];
    assert_eq!(pieces(&events)[1..], [piece(Cause::HostLate, 30, "")]);
}

#[test]
fn a_gap_knows_the_line_that_launched_late() {
    let trace = kineto::model(&[
        span("python_function", "train.py(12): step", 0, 90, 1, &json!({})),
        span("python_function", "torch/nn/functional.py(9): relu", 10, 80, 1, &json!({})),
        call("cudaLaunchKernel", 1, 20, 30),
        kernel(1, 30, 90),
    ]);
    let device = device(&trace);
    let python = device.gaps[0].python.map(|span| trace.span_name(span));
    assert_eq!(python, Some("train.py(12): step"));
}

#[test]
fn a_gap_knows_the_call_that_launched_late() {
    let called = |from: &str| json!({"CallFrom": from});
    let trace = kineto::model(&[
        span("python_function", "train.py(12): step", 0, 200, 1, &json!({})),
        span("python_function", "<built-in method cuda>", 10, 40, 1, &called("train.py:14")),
        call("cudaLaunchKernel", 1, 20, 30),
        span(
            "python_function",
            "torch/nn/modules/module.py(1): _call_impl",
            50,
            190,
            1,
            &called("train.py:15"),
        ),
        span("python_function", "model.py(3): forward", 60, 180, 1, &called("torch/nn/modules/module.py:7")),
        call("cudaLaunchKernel", 2, 70, 80), // an operator of the language, whose line nobody noted
        span("python_function", "torch/nn/functional.py(9): relu", 100, 130, 1, &called("model.py:5")),
        call("cudaLaunchKernel", 3, 110, 120),
        kernel(1, 30, 35),
        kernel(2, 80, 85),
        kernel(3, 120, 125),
    ]);
    let table = gaps(&trace, 0);
    let column = table.columns.iter().position(|column| column.key == "python").unwrap();
    let mut found: Vec<_> = table.rows.iter().map(|row| row[column].clone()).collect();
    found.retain(|cell| *cell != Cell::Missing);
    found.sort_by_key(|cell| format!("{cell:?}"));
    let expected = ["model.py(3): forward", "model.py(5): forward", "train.py(14): step"];
    assert_eq!(found, expected.map(Cell::text));
}

/// The clocks of host and device may differ: a launch after its own kernel is no reason to lose a gap.
#[test]
fn a_launch_after_its_kernel_still_adds_up() {
    let events = [call("cudaLaunchKernel", 1, 0, 10), kernel(1, 10, 20), kernel(2, 40, 50)];
    let late = [&events[..], &[call("cudaLaunchKernel", 2, 60, 70)]].concat();
    device(&kineto::model(&late));
}
