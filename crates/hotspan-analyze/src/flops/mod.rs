//! Floating point operations from formulas: what an operator's shapes and settings say it has to compute.
//!
//! torch knows seven operators: `conv2d`, `mm`, `addmm`, `bmm`, `baddbmm`, `mul` and `add`. Their numbers here are
//! torch's. Convolutions of other ranks, transposed ones, the backward of both and attention are counted too.
//!
//! Work is counted once. Operators nest (`conv2d` calls `convolution`, which calls `mkldnn_convolution`), so an
//! operator counts only when none around it counted, and one that torch does not know stands back when operators
//! inside it that torch does know have counted the same work (a convolution done as `mm`).

mod attention;
mod convolution;
mod matmul;

use hashbrown::HashMap;
use hotspan_store::{SpanId, StringId};

use crate::model::Model;
use crate::model::events::Role;
use crate::model::inputs::Inputs;
use crate::model::nesting::Nesting;

/// How an operator is counted.
#[derive(Clone, Copy, Debug)]
struct Rule {
    formula: fn(&Inputs<'_>) -> Option<u64>,
    /// Whether torch counts it as well.
    known_to_torch: bool,
    /// Whether what it calls is the same work.
    covers_calls: bool,
}

/// The rule of an operator.
fn rule(operator: &str) -> Option<Rule> {
    let torch = |formula| Some(Rule { formula, known_to_torch: true, covers_calls: false });
    let more = |formula| Some(Rule { formula, known_to_torch: false, covers_calls: true });
    match operator {
        "aten::mm" => torch(matmul::mm),
        "aten::addmm" => torch(matmul::addmm),
        "aten::bmm" => torch(matmul::bmm),
        "aten::baddbmm" => torch(matmul::baddbmm),
        "aten::mul" | "aten::add" => torch(matmul::elementwise),
        "aten::conv2d" => {
            Some(Rule { formula: convolution::conv2d, known_to_torch: true, covers_calls: true })
        }
        "aten::conv1d" | "aten::conv3d" => more(convolution::forward),
        "aten::conv_transpose1d" | "aten::conv_transpose2d" | "aten::conv_transpose3d" => {
            more(convolution::transposed)
        }
        "aten::convolution" | "aten::_convolution" | "aten::convolution_overrideable" => {
            more(convolution::general)
        }
        "aten::convolution_backward" | "aten::convolution_backward_overrideable" => {
            more(convolution::backward)
        }
        _ => attention::formula(operator).and_then(more),
    }
}

/// What decides whether a span's operations are counted elsewhere.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    known_to_torch: bool,
    covers_calls: bool,
    /// Something inside is known to torch and has operations.
    torch_inside: bool,
    /// Something around has counted this.
    covered: bool,
}

/// The floating point operations of every span.
#[derive(Clone, Debug, Default)]
pub struct Flops {
    /// For each span, an index into `amounts`; empty when the trace has no shapes.
    amount_of: Vec<u32>,
    /// Amounts that occur; the first is none.
    amounts: Vec<u64>,
}

impl Flops {
    /// Counts what can be counted; nothing when shapes were not recorded.
    pub(crate) fn of(model: &Model, nesting: &Nesting) -> Self {
        let (events, shapes, concrete) = (model.events(), model.shapes(), model.concrete_inputs());
        if !shapes.is_recorded() {
            return Self::default();
        }
        let mut rules: HashMap<StringId, Option<Rule>> = HashMap::new();
        let mut by_inputs: HashMap<(StringId, u32, u32), u32> = HashMap::new();
        let mut flops = Self { amount_of: vec![0; model.spans().len()], amounts: vec![0] };
        let mut marks = vec![Mark::default(); model.spans().len()];
        for &span in nesting.order() {
            if events.role(span) != Role::Operator || nesting.is_merged(span) {
                continue;
            }
            let name = events.name(model, span).key;
            let Some(rule) = *rules.entry(name).or_insert_with(|| rule(events.names.get(name))) else {
                continue;
            };
            let key = (name, shapes.id(span), concrete.id(span));
            let amount = *by_inputs.entry(key).or_insert_with(|| {
                let inputs = Inputs::of(model, span);
                match (rule.formula)(&inputs) {
                    Some(amount) if amount > 0 => {
                        flops.amounts.push(amount);
                        (flops.amounts.len() - 1) as u32
                    }
                    _ => 0,
                }
            });
            if amount > 0 {
                flops.amount_of[span.index()] = amount;
                marks[span.index()] = Mark {
                    known_to_torch: rule.known_to_torch,
                    covers_calls: rule.covers_calls,
                    ..Mark::default()
                };
            }
        }
        flops.count_once(nesting, &mut marks);
        flops
    }

    /// The operations of a span.
    #[must_use]
    pub fn of_span(&self, span: SpanId) -> u64 {
        let index = self.amount_of.get(span.index()).copied().unwrap_or(0);
        self.amounts.get(index as usize).copied().unwrap_or(0)
    }

    /// Drops what is counted by another operator: once from the inside out, once from the outside in.
    fn count_once(&mut self, nesting: &Nesting, marks: &mut [Mark]) {
        for &span in nesting.order().iter().rev() {
            let mark = marks[span.index()];
            if mark.torch_inside && !mark.known_to_torch {
                self.amount_of[span.index()] = 0;
            }
            if (mark.torch_inside || mark.known_to_torch)
                && let Some(parent) = nesting.parent(span)
            {
                marks[parent.index()].torch_inside = true;
            }
        }
        for &span in nesting.order() {
            let Some(parent) = nesting.parent(span) else { continue };
            let outer = marks[parent.index()];
            if outer.covered || (outer.covers_calls && self.amount_of[parent.index()] != 0) {
                marks[span.index()].covered = true;
                self.amount_of[span.index()] = 0;
            }
        }
    }
}
