//! FLOPs of nested operators, counted once; the numbers are worked out in the comments.

use hotspan_analyze::{GroupBy, KeyAverages};
use serde_json::{Value, json};

use crate::kineto::{self, span};

fn flops(events: &[Value]) -> Vec<(String, u64)> {
    let averages = KeyAverages::compute(&kineto::model(events), &GroupBy::default());
    averages.rows.into_iter().map(|row| (row.key, row.flops)).collect()
}

fn call(name: &str, begin: i64, end: i64, dims: &Value, concrete: &Value) -> Value {
    span("cpu_op", name, begin, end, 1, &json!({"Input Dims": dims, "Concrete Inputs": concrete}))
}

fn expected(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|&(name, flops)| (name.to_owned(), flops)).collect()
}

#[test]
fn a_convolution_counts_once_and_outermost() {
    let dims = json!([[2, 4, 9, 9], [8, 2, 3, 3], [], [], [], [], [], [], []]);
    let general = json!(["", "", "", "[2, 2]", "[1, 2]", "[1, 1]", "False", "[0, 0]", "2"]);
    let events = [
        call("aten::conv2d", 0, 100, &dims, &json!(["", "", "", "[2, 2]", "[1, 2]", "[1, 1]", "2"])),
        call("aten::convolution", 10, 90, &dims, &general),
        call("aten::_convolution", 20, 80, &dims, &general),
        call(
            "aten::mkldnn_convolution",
            30,
            70,
            &dims,
            &json!(["", "", "", "[1, 2]", "[2, 2]", "[1, 1]", "2"]),
        ),
    ];
    // Output 5 x 6 positions, kernel 9, 4 channels in, 8 out, 2 groups, batch 2.
    let conv2d = 2 * 2 * 5 * 6 * 9 * 4 * 8 / 2;
    let inner = [("aten::convolution", 0), ("aten::_convolution", 0), ("aten::mkldnn_convolution", 0)];
    assert_eq!(flops(&events), expected(&[&[("aten::conv2d", conv2d)], &inner[..]].concat()));
    // Padding in words leaves conv2d without a number, as in torch; what it calls knows.
    let mut events = events;
    events[0] = call("aten::conv2d", 0, 100, &dims, &json!(["", "", "", "[2, 2]", "", "[1, 1]", "2"]));
    assert_eq!(flops(&events)[..2], expected(&[("aten::conv2d", 0), ("aten::convolution", conv2d)]));
}

#[test]
fn a_convolution_done_as_matrix_product_is_counted_by_the_product() {
    let concrete = json!(["", "", "", "[1]", "[0]", "[1]", "1"]);
    let events = [
        call("aten::conv1d", 0, 100, &json!([[1, 4, 9], [8, 4, 3], []]), &concrete),
        call("aten::mm", 10, 20, &json!([[8, 12], [12, 7]]), &json!(["", ""])),
    ];
    assert_eq!(flops(&events), expected(&[("aten::conv1d", 0), ("aten::mm", 2 * 8 * 12 * 7)]));
    assert_eq!(flops(&events[..1]), expected(&[("aten::conv1d", 2 * 7 * 3 * 4 * 8)]));
}

#[test]
fn transposed_and_backward_convolutions() {
    let transposed = call(
        "aten::conv_transpose2d",
        0,
        10,
        &json!([[2, 4, 9, 9], [4, 6, 3, 3], []]),
        &json!(["", "", "", "[2, 2]", "[0, 0]", "[0, 0]", "2", "[1, 1]"]),
    );
    // Each of 2 x 81 input positions meets 4 x 6 x 9 weights.
    assert_eq!(flops(&[transposed]), expected(&[("aten::conv_transpose2d", 2 * 2 * 81 * 4 * 6 * 9)]));
    let backward = |mask: &str| {
        call(
            "aten::convolution_backward",
            0,
            10,
            &json!([[2, 8, 7, 7], [2, 4, 9, 9], [8, 4, 3, 3], [], [], [], [], [], [], [], []]),
            &json!(["", "", "", "[0]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", mask]),
        )
    };
    let forward = 2 * 2 * 49 * 8 * 4 * 9;
    assert_eq!(
        flops(&[backward("[True, True, False]")]),
        expected(&[("aten::convolution_backward", 2 * forward)])
    );
    assert_eq!(
        flops(&[backward("[False, True, True]")]),
        expected(&[("aten::convolution_backward", forward)])
    );
}

#[test]
fn attention_counts_two_products_forward_and_five_backward() {
    let tensor = json!([2, 4, 16, 8]);
    let product = 2 * 2 * 4 * 16 * 16 * 8;
    let forward = "aten::_scaled_dot_product_flash_attention_for_cpu";
    let backward = "aten::_scaled_dot_product_flash_attention_for_cpu_backward";
    let events = [
        call("aten::scaled_dot_product_attention", 0, 100, &json!([tensor, tensor, tensor]), &json!([])),
        call(forward, 10, 90, &json!([tensor, tensor, tensor, [], []]), &json!([])),
        call(backward, 200, 300, &json!([tensor, tensor, tensor, tensor]), &json!([])),
    ];
    let rows = [("aten::scaled_dot_product_attention", 0), (forward, 2 * product), (backward, 5 * product)];
    assert_eq!(flops(&events), expected(&rows));
}

#[test]
fn torch_counts_the_first_operand_of_elementwise_operators() {
    let events = [
        call("aten::add", 0, 1, &json!([[3, 4, 5], [5], []]), &json!(["", "", "1"])),
        call("aten::mul", 2, 3, &json!([[], [3, 4, 5]]), &json!(["", ""])),
        call("aten::baddbmm", 4, 5, &json!([[3, 4, 6], [3, 4, 5], [3, 5, 6], [], []]), &json!([])),
        call("aten::sub", 6, 7, &json!([[3, 4, 5], [5], []]), &json!([])),
    ];
    let rows = [("aten::add", 60), ("aten::mul", 1), ("aten::baddbmm", 2 * 3 * 4 * 5 * 6), ("aten::sub", 0)];
    assert_eq!(flops(&events), expected(&rows));
}
