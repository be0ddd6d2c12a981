//! Reads what an event recorded of its inputs: `Input Dims` and `Concrete Inputs`.

use serde_json::Value;

/// The dimensions of each input; empty for what is no tensor, for a list of tensors, and for a tensor of rank 0.
pub type InputShapes = Vec<Vec<i64>>;

/// The shapes in the JSON of an `Input Dims`. Lists of tensors have shapes of their own there; torch's tables show
/// them as empty.
#[must_use]
pub fn shapes_of_json(json: &Value) -> InputShapes {
    let Value::Array(inputs) = json else { return Vec::new() };
    let shape = |input: &Value| match input {
        Value::Array(dims) => {
            dims.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>().unwrap_or_default()
        }
        _ => Vec::new(),
    };
    inputs.iter().map(shape).collect()
}

/// The inputs of one operator.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    shapes: InputShapes,
    /// Scalars and lists of scalars as text; empty for tensors.
    concrete: Vec<String>,
}

impl Inputs {
    /// Reads both args; missing ones give no inputs.
    #[must_use]
    pub fn read(dims: Option<&Value>, concrete: Option<&Value>) -> Self {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let concrete = match concrete {
            Some(Value::Array(values)) => values.iter().map(text).collect(),
            _ => Vec::new(),
        };
        Self { shapes: dims.map(shapes_of_json).unwrap_or_default(), concrete }
    }

    /// The shape of a tensor that must have dimensions.
    #[must_use]
    pub fn shape(&self, input: usize) -> Option<&[i64]> {
        self.shapes.get(input).map(Vec::as_slice)
    }

    /// A list of whole numbers, such as a stride.
    #[must_use]
    pub fn list(&self, input: usize) -> Option<Vec<i64>> {
        let text = self.concrete.get(input)?.trim();
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        inner.split(',').map(|item| item.trim().parse().ok()).collect()
    }

    /// A list of truth values, such as an output mask.
    #[must_use]
    pub fn truths(&self, input: usize) -> Option<Vec<bool>> {
        let text = self.concrete.get(input)?.trim();
        let inner = text.strip_prefix('[')?.strip_suffix(']')?;
        inner.split(',').map(|item| truth(item.trim())).collect()
    }

    /// A whole number, such as a count of groups.
    #[must_use]
    pub fn int(&self, input: usize) -> Option<i64> {
        self.concrete.get(input)?.trim().parse().ok()
    }

    /// A truth value.
    #[must_use]
    pub fn truth(&self, input: usize) -> Option<bool> {
        truth(self.concrete.get(input)?.trim())
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "True" | "true" | "1" => Some(true),
        "False" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// The product of dimensions; `None` when one is negative or the product is absurd.
#[must_use]
pub fn product<'a>(dims: impl IntoIterator<Item = &'a i64>) -> Option<u64> {
    dims.into_iter().try_fold(1_u64, |product, &dim| product.checked_mul(u64::try_from(dim).ok()?))
}
