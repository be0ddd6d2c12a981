//! How many bytes an operator has to read and write at least: its inputs once, its outputs once.

use crate::model::inputs::product;

/// The inputs of one operator: shapes and types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tensors<'m> {
    pub(super) shapes: &'m [Vec<i64>],
    pub(super) dtypes: &'m [String],
}

/// Which shape the outputs have.
#[derive(Clone, Copy, Debug)]
enum Outputs {
    /// `[m, k] x [k, n]`, the factors at these positions.
    Matrix(usize, usize),
    /// The same with a batch in front.
    Batched(usize, usize),
    /// As many elements as the largest input.
    Largest,
    /// Like the first input.
    First,
    /// Next to nothing: a sum.
    Small,
    /// Gradients of the second and third input.
    Convolution,
    /// Found from the operations: each element of the output takes twice the elements of one filter.
    Filtered,
}

fn outputs(operator: &str) -> Option<Outputs> {
    let name = operator.strip_prefix("aten::")?;
    let name = name.strip_suffix('_').filter(|name| !name.is_empty()).unwrap_or(name);
    Some(match name {
        "mm" => Outputs::Matrix(0, 1),
        "addmm" => Outputs::Matrix(1, 2),
        "bmm" => Outputs::Batched(0, 1),
        "baddbmm" => Outputs::Batched(1, 2),
        "conv1d" | "conv2d" | "conv3d" | "convolution" | "_convolution" | "cudnn_convolution"
        | "miopen_convolution" => Outputs::Filtered,
        "convolution_backward" => Outputs::Convolution,
        "add"
        | "sub"
        | "mul"
        | "div"
        | "relu"
        | "gelu"
        | "silu"
        | "sigmoid"
        | "tanh"
        | "exp"
        | "log"
        | "sqrt"
        | "rsqrt"
        | "neg"
        | "abs"
        | "pow"
        | "clamp"
        | "clamp_min"
        | "where"
        | "addcmul"
        | "addcdiv"
        | "lerp"
        | "threshold_backward"
        | "gelu_backward"
        | "silu_backward"
        | "sigmoid_backward"
        | "tanh_backward"
        | "native_layer_norm"
        | "native_layer_norm_backward"
        | "native_batch_norm"
        | "cudnn_batch_norm"
        | "native_batch_norm_backward"
        | "cudnn_batch_norm_backward"
        | "_softmax"
        | "_log_softmax"
        | "_softmax_backward_data"
        | "_log_softmax_backward_data"
        | "native_dropout"
        | "native_dropout_backward" => Outputs::Largest,
        "copy" | "clone" => Outputs::First,
        "sum" | "mean" | "norm" => Outputs::Small,
        _ if name.starts_with("_scaled_dot_product_") && !name.contains("backward") => Outputs::First,
        _ => return None,
    })
}

/// Bytes of an element by torch's name of its type; `None` for what is no tensor.
pub(crate) fn element_size(name: &str) -> Option<u64> {
    let name = name.strip_prefix("c10::").unwrap_or(name);
    Some(match name {
        "double" | "long" | "long int" | "int64_t" | "complex<float>" => 8,
        "complex<double>" => 16,
        "float" | "int" | "int32_t" => 4,
        "Half" | "BFloat16" | "short" | "short int" => 2,
        "bool" | "signed char" | "unsigned char" | "char" | "byte" => 1,
        _ if name.starts_with("Float8") => 1,
        _ => return None,
    })
}

impl Tensors<'_> {
    fn elements(&self, input: usize) -> Option<u64> {
        self.shapes.get(input).filter(|shape| !shape.is_empty()).and_then(product)
    }

    fn size(&self, input: usize) -> u64 {
        self.dtypes.get(input).and_then(|dtype| element_size(dtype)).unwrap_or(0)
    }

    fn input(&self, input: usize) -> u64 {
        self.elements(input).unwrap_or(0).saturating_mul(self.size(input))
    }

    /// The bytes an operator moves; `None` for operators without a rule, and without shapes or types.
    pub(super) fn bytes(&self, operator: &str, flops: u64) -> Option<u64> {
        let outputs = outputs(operator)?;
        let read = (0..self.shapes.len()).map(|input| self.input(input)).fold(0, u64::saturating_add);
        if read == 0 {
            return None;
        }
        let shape = |input: usize| self.shapes.get(input).map(Vec::as_slice);
        let largest = (0..self.shapes.len()).map(|input| self.input(input)).max().unwrap_or(0);
        let written = match outputs {
            Outputs::Matrix(left, right) => match (shape(left)?, shape(right)?) {
                (&[m, _], &[_, n]) => product(&[m, n])?.saturating_mul(self.size(left)),
                _ => return None,
            },
            Outputs::Batched(left, right) => match (shape(left)?, shape(right)?) {
                (&[batch, m, _], &[_, _, n]) => product(&[batch, m, n])?.saturating_mul(self.size(left)),
                _ => return None,
            },
            Outputs::Largest => largest,
            Outputs::First => self.input(0),
            Outputs::Small => 0,
            Outputs::Convolution => self.input(1).saturating_add(self.input(2)),
            // Without its operations (strides and paddings were not recorded) the output's size is not known.
            Outputs::Filtered if flops == 0 => return None,
            Outputs::Filtered => {
                let filters = u64::try_from(*shape(1)?.first()?).ok().filter(|&filters| filters > 0)?;
                let filter = (self.elements(1)? / filters).max(1);
                (flops / (2 * filter)).saturating_mul(self.size(0))
            }
        };
        Some(read.saturating_add(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(operator: &str, shapes: &[&[i64]], dtypes: &[&str], flops: u64) -> Option<u64> {
        let shapes: Vec<Vec<i64>> = shapes.iter().map(|shape| shape.to_vec()).collect();
        let dtypes: Vec<String> = dtypes.iter().map(|&dtype| dtype.to_owned()).collect();
        Tensors { shapes: &shapes, dtypes: &dtypes }.bytes(operator, flops)
    }

    #[test]
    fn each_tensor_counts_once() {
        // 2x3 + 3x5 read, 2x5 written, 4 bytes each.
        let float = ["float", "float"];
        assert_eq!(bytes("aten::mm", &[&[2, 3], &[3, 5]], &float, 60), Some((6 + 15 + 10) * 4));
        let half = ["c10::Half", "c10::Half", "Scalar"];
        assert_eq!(bytes("aten::add_", &[&[4, 4], &[4], &[]], &half, 16), Some((16 + 4 + 16) * 2));
        // One image of 1x4x4 and two filters of 3x3: 2x2x2 results of 18 operations.
        let shapes: [&[i64]; 2] = [&[1, 1, 4, 4], &[2, 1, 3, 3]];
        assert_eq!(bytes("aten::conv2d", &shapes, &float, 2 * 4 * 18), Some((16 + 18 + 8) * 4));
        assert_eq!(bytes("aten::mystery", &[&[4]], &float, 0), None);
        assert_eq!(bytes("aten::relu", &[], &[], 0), None);
    }
}
