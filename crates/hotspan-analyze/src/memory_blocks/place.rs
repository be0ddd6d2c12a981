//! Where in the program memory was allocated: the operators, functions and steps that were running.

use hashbrown::HashMap;
use hotspan_store::{ArgReader, SpanId, StringId, Timestamp, Trace, TrackId};

use crate::events::{Events, Role};
use crate::nesting::Nesting;

/// Where in the program an allocation was made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
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
    trace: &'a Trace,
    order: Vec<SpanId>,
    next: usize,
    kinds: Vec<Kind>,
    sequence: ArgReader<'a>,
    /// For each thread, outermost first.
    open: Vec<Vec<SpanId>>,
    /// How many calls of models each thread is in.
    pub(super) forward: Vec<u32>,
}

impl<'a> Around<'a> {
    pub(super) fn new(trace: &'a Trace) -> Self {
        let events = Events::of(trace);
        let nesting = Nesting::of(trace, &events);
        let order: Vec<SpanId> =
            nesting.order().iter().copied().filter(|&span| events.role(span).is_host()).collect();
        // One name can stand for several kinds of span, so that both are looked at; there are few distinct ones.
        let mut known: HashMap<(StringId, u8), Kind> = HashMap::new();
        let kinds = trace.spans().ids().map(|span| {
            let (name, role) = (trace.spans().name(span), events.role(span));
            *known.entry((name, role as u8)).or_insert_with(|| Kind::of(trace.str(name), role))
        });
        let kinds = kinds.collect();
        let tracks = trace.tracks().len();
        let sequence = trace.arg("Sequence number");
        Self {
            trace,
            order,
            next: 0,
            kinds,
            sequence,
            open: vec![Vec::new(); tracks],
            forward: vec![0; tracks],
        }
    }

    pub(super) fn at(&mut self, time: Timestamp, track: TrackId) -> Place {
        let spans = self.trace.spans();
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
        let mut place = Place { in_forward: self.forward[track.index()] > 0, ..Place::default() };
        for &span in open.iter() {
            match self.kinds[span.index()] {
                Kind::Empty => place.outermost = place.outermost.or(Some(span)),
                Kind::Operator => {
                    place.outermost = place.outermost.or(Some(span));
                    // Autograd numbers the operators of a forward pass.
                    place.in_forward |= self.sequence.int(spans.args(span)).is_some();
                }
                Kind::Backward => place.in_backward = true,
                Kind::AccumulateGradient => place.accumulates_gradient = true,
                Kind::OptimizerStep => place.optimizer_step = Some(span),
                Kind::Loader => place.in_loader = true,
                Kind::Module => place.in_forward = true,
                Kind::Python | Kind::Other => {}
            }
        }
        let kind = |span: &SpanId| self.kinds[span.index()];
        let is_python = |span: &SpanId| matches!(kind(span), Kind::Module | Kind::Python);
        place.function = open.last().copied().filter(|span| is_python(span));
        let mut operators = open.iter().rev().copied().filter(|span| !is_python(span)).peekable();
        let innermost = operators.peek().copied();
        place.operator = operators.find(|span| kind(span) != Kind::Empty).or(innermost);
        place
    }
}
