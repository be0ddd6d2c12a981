//! The inputs of operators: their shapes, their types, and the values of those that are no tensors.
//!
//! Lists of inputs repeat, so each distinct one is read once. Spans refer to it by number.

use std::hash::Hash;

use hashbrown::HashMap;
use hotspan_store::{SpanId, StringId};
use serde_json::Value;

use super::Model;
use super::columns::Texts;

/// The dimensions of each input; empty for what is no tensor, for a list of tensors, and for a tensor of rank 0.
pub type InputShapes = Vec<Vec<i64>>;

/// A value for each span, each distinct one stored once. Number 0 is the empty value, which spans without one have.
#[derive(Clone, Debug)]
pub struct Interned<T> {
    /// For each span, an index into `distinct`; empty where no span has a value.
    ids: Vec<u32>,
    distinct: Vec<T>,
}

impl<T: Clone + Default + Eq + Hash> Interned<T> {
    fn of(model: &Model, column: &Texts<'_>, read: impl Fn(&Value) -> T) -> Self {
        let mut interned = Self { ids: Vec::new(), distinct: vec![T::default()] };
        if !column.occurs() {
            return interned;
        }
        let mut by_value: HashMap<T, u32> = [(T::default(), 0)].into_iter().collect();
        let mut by_text: HashMap<StringId, u32> = HashMap::new();
        let mut intern = |value: Option<Value>| {
            let (value, next) = (value.as_ref().map(&read).unwrap_or_default(), by_value.len() as u32);
            *by_value.entry(value).or_insert_with_key(|value| {
                interned.distinct.push(value.clone());
                next
            })
        };
        let id = |span: SpanId| match column.id(model.spans().args(span)) {
            Some(text) => {
                *by_text.entry(text).or_insert_with(|| intern(serde_json::from_str(model.str(text)).ok()))
            }
            // Most spans have none; packed args have no text of their own, and are rare.
            None => column.json(span).map_or(0, |json| intern(Some(json))),
        };
        interned.ids = model.spans().ids().map(id).collect();
        interned
    }
}

impl<T> Interned<T> {
    /// The number of a span's value: equal numbers are equal values.
    #[must_use]
    pub fn id(&self, span: SpanId) -> u32 {
        self.ids.get(span.index()).copied().unwrap_or(0)
    }

    /// The value of a number.
    #[must_use]
    pub fn get(&self, id: u32) -> &T {
        &self.distinct[id as usize]
    }

    /// The value of a span.
    #[must_use]
    pub fn of_span(&self, span: SpanId) -> &T {
        self.get(self.id(span))
    }

    /// Whether any span has a value.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        !self.ids.is_empty()
    }
}

pub(super) fn shapes(model: &Model) -> Interned<InputShapes> {
    Interned::of(model, &model.input_dims(), shapes_of_json)
}

pub(super) fn dtypes(model: &Model) -> Interned<Vec<String>> {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Interned::of(model, &model.input_types(), |json| list(json, name))
}

pub(super) fn concrete_inputs(model: &Model) -> Interned<Vec<String>> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Interned::of(model, &model.input_values(), |json| list(json, text))
}

fn list(json: &Value, item: impl Fn(&Value) -> String) -> Vec<String> {
    json.as_array().map(|items| items.iter().map(item).collect()).unwrap_or_default()
}

/// The shapes in the JSON of an `Input Dims`. Lists of tensors have shapes of their own there; torch's tables show
/// them as empty.
fn shapes_of_json(json: &Value) -> InputShapes {
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'m> {
    shapes: &'m [Vec<i64>],
    /// Scalars and lists of scalars as text; empty for tensors.
    concrete: &'m [String],
}

impl<'m> Inputs<'m> {
    /// The inputs of a span; none where they were not recorded.
    #[must_use]
    pub fn of(model: &'m Model, span: SpanId) -> Self {
        Self { shapes: model.shapes().of_span(span), concrete: model.concrete_inputs().of_span(span) }
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
