//! Where in the program memory was allocated: the operators, functions and steps that were running.

use hashbrown::HashMap;
use hotspan_store::{SpanId, StringId, Timestamp, TrackId};

use crate::model::Model;
use crate::model::columns::Numbers;
use crate::model::events::Role;

/// Where in the program an allocation was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Site {
    /// The innermost operator with a telling name.
    pub(super) operator: Option<SpanId>,
    pub(super) function: Option<SpanId>,
    pub(super) outermost: Option<SpanId>,
    pub(super) optimizer_step: Option<SpanId>,
    pub(super) in_forward: bool,
    pub(super) in_backward: bool,
    pub(super) accumulates_gradient: bool,
    pub(super) in_loader: bool,
}

/// What a span's name says about what is allocated inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `aten::empty` and its like say nothing: who called it wanted the memory.
    Empty,
    /// An operator that a program calls.
    Operator,
    Backward,
    AccumulateGradient,
    OptimizerStep,
    Loader,
    Module,
    Python,
    Other,
}

impl Kind {
    fn of(name: &str, role: Role) -> Self {
        match role {
            Role::Operator if name.starts_with("autograd::engine::evaluate_function") => Self::Backward,
            Role::Operator if name == "torch::autograd::AccumulateGrad" => Self::AccumulateGradient,
            Role::Operator if name.starts_with("aten::empty") => Self::Empty,
            // Nodes of the backward pass are called `AddmmBackward0`.
            Role::Operator if name.contains("::") && !name.starts_with("torch::autograd::") => Self::Operator,
            Role::Annotation if name.starts_with("Optimizer.step#") => Self::OptimizerStep,
            Role::Annotation if name.starts_with("enumerate(DataLoader)#") => Self::Loader,
            Role::Python if name.starts_with("nn.Module: ") => Self::Module,
            Role::Python => Self::Python,
            _ => Self::Other,
        }
    }
}

/// The spans around each moment, for moments that only go forward.
pub(super) struct Around<'a> {
    model: &'a Model,
    order: Vec<SpanId>,
    next: usize,
    kinds: Vec<Kind>,
    sequence: Numbers<'a>,
    /// For each thread, outermost first.
    open: Vec<Vec<SpanId>>,
    /// How many calls of models each thread is in.
    pub(super) forward: Vec<u32>,
}

impl<'a> Around<'a> {
    pub(super) fn new(model: &'a Model) -> Self {
        let events = model.events();
        let is_around = |&span: &SpanId| events.role(span).is_host() && !events.is_async(span);
        let order: Vec<SpanId> = model.nesting().order().iter().copied().filter(is_around).collect();
        // One name can stand for several kinds of span, so that both are looked at; there are few distinct ones.
        let mut by_name: HashMap<(StringId, u8), Kind> = HashMap::new();
        let kinds = model.spans().ids().map(|span| {
            let (name, role) = (model.spans().name(span), events.role(span));
            *by_name.entry((name, role as u8)).or_insert_with(|| Kind::of(model.str(name), role))
        });
        let kinds = kinds.collect();
        let tracks = model.tracks().len();
        Self {
            model,
            order,
            next: 0,
            kinds,
            sequence: model.sequence(),
            open: vec![Vec::new(); tracks],
            forward: vec![0; tracks],
        }
    }

    pub(super) fn at(&mut self, time: Timestamp, track: TrackId) -> Site {
        let spans = self.model.spans();
        while let Some(&span) = self.order.get(self.next).filter(|&&span| spans.time(span) <= time) {
            self.next += 1;
            let open = &mut self.open[spans.track(span).index()];
            while open.last().is_some_and(|&last| spans.end(last) < spans.time(span)) {
                open.pop();
            }
            open.push(span);
        }
        let open = &mut self.open[track.index()];
        while open.last().is_some_and(|&last| spans.end(last) < time) {
            open.pop();
        }
        let mut site = Site { in_forward: self.forward[track.index()] > 0, ..Site::default() };
        for &span in open.iter() {
            match self.kinds[span.index()] {
                Kind::Empty => site.outermost = site.outermost.or(Some(span)),
                Kind::Operator => {
                    site.outermost = site.outermost.or(Some(span));
                    // Autograd numbers the operators of a forward pass.
                    site.in_forward |= self.sequence.of(span).is_some();
                }
                Kind::Backward => site.in_backward = true,
                Kind::AccumulateGradient => site.accumulates_gradient = true,
                Kind::OptimizerStep => site.optimizer_step = Some(span),
                Kind::Loader => site.in_loader = true,
                Kind::Module => site.in_forward = true,
                Kind::Python | Kind::Other => {}
            }
        }
        let kind = |span: &SpanId| self.kinds[span.index()];
        let is_python = |span: &SpanId| matches!(kind(span), Kind::Module | Kind::Python);
        site.function = open.last().copied().filter(|span| is_python(span));
        let mut operators = open.iter().rev().copied().filter(|span| !is_python(span)).peekable();
        let innermost = operators.peek().copied();
        site.operator = operators.find(|span| kind(span) != Kind::Empty).or(innermost);
        site
    }
}
