//! Ranks together, in traces small enough to add up in one's head; times in nanoseconds.

use hotspan_analyze::Model;
use hotspan_analyze::ranks::{RankSummary, compare};
use hotspan_store::Duration;
use serde_json::{Value, json};

use crate::kineto::{self, span};

fn rank(number: i64, events: &[Value]) -> Model {
    let mut trace = kineto::trace(events);
    trace.set_metadata("distributedInfo", &json!({"rank": number, "world_size": 2}).to_string());
    trace.into()
}

/// A kernel of a collective, as newer traces describe it.
fn collective(name: &str, number: i64, begin: i64, end: i64) -> Value {
    let args = json!({"Collective name": name, "Process Group Name": "0", "Seq": number, "Group size": 2,
        "In msg nelems": 100, "dtype": "Float", "device": 0});
    span("kernel", "ncclDevKernel_Something", begin, end, 9, &args)
}

#[test]
fn the_shortest_run_is_the_transfer_and_the_rest_is_waiting() {
    let first = rank(0, &[collective("allreduce", 5, 0, 100), collective("allreduce", 6, 200, 220)]);
    let second = rank(1, &[collective("allreduce", 5, 60, 100), collective("allreduce", 6, 200, 230)]);
    let together = compare(&[RankSummary::of(&second), RankSummary::of(&first)]);
    let rows: Vec<_> = together
        .ranks
        .iter()
        .map(|row| (row.rank, row.matched, row.wait.0, row.transfer.0, row.last))
        .collect();
    // 100 against 40, and 20 against 30.
    assert_eq!(rows, [(0, 2, 60, 60, 1), (1, 2, 10, 60, 1)]);
    let row = &together.collectives[0];
    assert_eq!((row.kind.as_str(), row.group.as_str(), row.calls, row.ranks), ("allreduce", "0", 2, 2));
    assert_eq!((row.wait, row.longest_wait, row.transfer), (Duration(70), Duration(70), Duration(60)));
}

#[test]
fn rates_are_those_of_nccl_tests() {
    let mut narrow = [collective("_allgather_base", 1, 0, 100)];
    narrow[0]["args"]["dtype"] = json!("BFloat16");
    let ranks = [rank(0, &narrow), rank(1, &narrow)];
    let together = compare(&ranks.each_ref().map(RankSummary::of));
    // Each of two ranks gives 200 bytes, 400 come out, in 100 ns; half of them over a wire.
    let row = &together.collectives[0];
    assert_eq!((row.kind.as_str(), row.bytes), ("allgatherbase", Some(200)));
    assert_eq!((row.algorithm_rate, row.bus_rate), (Some(4.0), Some(2.0)));
}

#[test]
fn what_other_ranks_lack_is_not_compared() {
    let first = rank(0, &[collective("allreduce", 5, 0, 100), collective("broadcast", 6, 200, 220)]);
    let second = rank(1, &[collective("allreduce", 5, 60, 100)]);
    let together = compare(&[RankSummary::of(&first), RankSummary::of(&second)]);
    assert_eq!(
        together.ranks.iter().map(|row| (row.matched, row.alone)).collect::<Vec<_>>(),
        [(1, 1), (1, 0)]
    );
    assert_eq!(together.collectives.len(), 1);
    assert_eq!(compare(&[]).report(), []);
}

/// Old traces say nothing on the kernel: the operator's name and shapes, and the order, must do.
#[test]
fn old_traces_are_matched_by_order() {
    let events = |begin: i64| {
        let shapes = json!({"External id": 3, "Input Dims": [[50]], "Input type": ["float"]});
        [
            span("user_annotation", "nccl:all_reduce", 0, 20, 1, &shapes),
            span("cuda_runtime", "cudaLaunchKernel", 5, 10, 1, &json!({"correlation": 8})),
            span(
                "kernel",
                "ncclKernel_AllReduce_RING_LL_Sum_float(x)",
                begin,
                100,
                9,
                &json!({"correlation": 8}),
            ),
        ]
    };
    let together = compare(&[RankSummary::of(&rank(0, &events(20))), RankSummary::of(&rank(1, &events(50)))]);
    let row = &together.collectives[0];
    assert_eq!((row.kind.as_str(), row.bytes, row.transfer), ("allreduce", Some(200), Duration(50)));
    assert_eq!(row.last, Some((1, 1)));
}
