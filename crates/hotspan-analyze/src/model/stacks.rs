//! Where calls came from: the Python stack and the `nn.Module` of each event.
//!
//! A recorded `Call stack` is taken as it is. Without one (torch writes it only when asked to be verbose) the Python
//! functions around the call say the same. Nodes of the backward pass show where their forward operator was called, and
//! in which module, for nobody wrote a call of `AddmmBackward0`.

use hashbrown::HashMap;
use hotspan_store::{SpanId, StringId, Trace, TrackId};

use super::events::Role;
use super::nesting::Nesting;
use super::scope::scope;
use super::{Model, RecordScope};

/// Entries of a stack that are enough to see where a call came from.
pub(super) const NEAR: usize = 32;

/// Frames that lead from `loss.backward()` to the engine: the same for every program, so they say nothing.
const UNINTERESTING: [(&str, &str); 6] = [
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
];

fn is_interesting(entry: &str) -> bool {
    UNINTERESTING.iter().all(|(file, function)| !(entry.contains(file) && entry.contains(function)))
}

/// The top of the stack of every event. Id 0 is the empty stack.
#[derive(Debug)]
pub(crate) struct Stacks {
    ids: Vec<u32>,
    distinct: Vec<Vec<String>>,
}

impl Stacks {
    pub(crate) fn of(model: &Model, nesting: &Nesting, depth: usize) -> Self {
        let mut interner = Interner::new(depth);
        let (spans, recorded) = (model.spans(), model.call_stack());
        let mut ids = if recorded.occurs() {
            let text = |span| recorded.id(spans.args(span));
            spans.ids().map(|span| text(span).map_or(0, |text| interner.recorded(model, text))).collect()
        } else {
            from_python_functions(model, nesting, &mut interner)
        };
        inherit_from_forward(model, nesting, &mut ids);
        Self { ids, distinct: interner.distinct }
    }

    pub(crate) fn id(&self, span: SpanId) -> u32 {
        self.ids[span.index()]
    }

    pub(crate) fn entries(&self, id: u32) -> &[String] {
        &self.distinct[id as usize]
    }
}

struct Interner {
    depth: usize,
    by_text: HashMap<StringId, u32>,
    by_functions: HashMap<Vec<StringId>, u32>,
    by_value: HashMap<Vec<String>, u32>,
    distinct: Vec<Vec<String>>,
}

impl Interner {
    fn new(depth: usize) -> Self {
        let by_value = [(Vec::new(), 0)].into_iter().collect();
        let (by_text, by_functions) = (HashMap::new(), HashMap::new());
        Self { depth, by_text, by_functions, by_value, distinct: vec![Vec::new()] }
    }

    fn recorded(&mut self, trace: &Trace, text: StringId) -> u32 {
        if let Some(&id) = self.by_text.get(&text) {
            return id;
        }
        let id = self.intern(trace.str(text).split(';').filter(|entry| !entry.is_empty()));
        self.by_text.insert(text, id);
        id
    }

    fn functions(&mut self, trace: &Trace, names: &[StringId]) -> u32 {
        if let Some(&id) = self.by_functions.get(names) {
            return id;
        }
        let id = self.intern(names.iter().map(|&name| trace.str(name)));
        self.by_functions.insert(names.to_vec(), id);
        id
    }

    fn intern<'a>(&mut self, entries: impl Iterator<Item = &'a str>) -> u32 {
        let top = entries.filter(|entry| is_interesting(entry)).take(self.depth).map(str::to_owned);
        let next = self.distinct.len() as u32;
        *self.by_value.entry(top.collect()).or_insert_with_key(|top| {
            self.distinct.push(top.clone());
            next
        })
    }
}

/// The Python functions around each event: what a function calls shares the stack inside that function.
fn from_python_functions(model: &Model, nesting: &Nesting, interner: &mut Interner) -> Vec<u32> {
    let (spans, events) = (model.spans(), model.events());
    let around = nesting.innermost(|span| events.role(span) == Role::Python);
    let caller = |span: SpanId| nesting.parent(span).and_then(|parent| around.of(parent));
    // Frames of the way into the backward pass are dropped later, so a few more are taken.
    let reach = interner.depth.saturating_add(UNINTERESTING.len());
    let mut inside: HashMap<SpanId, u32> = HashMap::new();
    let mut names: Vec<StringId> = Vec::new();
    for &span in nesting.order().iter().filter(|&&span| events.role(span) == Role::Python) {
        names.clear();
        names.extend(
            std::iter::successors(Some(span), |&function| caller(function))
                .take(reach)
                .map(|function| spans.name(function)),
        );
        inside.insert(span, interner.functions(model, &names));
    }
    let stack = |span| caller(span).and_then(|function| inside.get(&function)).copied().unwrap_or(0);
    spans.ids().map(stack).collect()
}

/// Gives events of the backward pass the id (of a stack, of a module) that their forward operator has.
pub(crate) fn inherit_from_forward(model: &Model, nesting: &Nesting, ids: &mut [u32]) {
    const NONE: u32 = u32::MAX;
    let (sequence, forward_thread) = (model.sequence(), model.forward_thread());
    if !sequence.occurs() {
        return;
    }
    let (spans, events) = (model.spans(), model.events());
    // The backward node around each event.
    let mut backward = vec![NONE; spans.len()];
    // Sequence numbers count per thread, so several threads may use the same.
    let mut forward: HashMap<i64, Vec<(TrackId, u32)>> = HashMap::new();
    for &span in nesting.order().iter().filter(|&&span| events.role(span).is_host()) {
        let parent = nesting.parent(span);
        backward[span.index()] = match scope(model, nesting, span) {
            RecordScope::Backward => span.0,
            _ => parent.map_or(NONE, |parent| backward[parent.index()]),
        };
        if backward[span.index()] == NONE
            && let Some(number) = sequence.of(span)
        {
            let track = spans.track(span);
            let stacks = forward.entry(number).or_default();
            if stacks.iter().all(|&(other, _)| other != track) {
                stacks.push((track, ids[span.index()]));
            }
        }
    }
    // Backward nodes name the forward thread by torch's own count. Numbers used on one thread only tell which it is.
    let mut threads: HashMap<i64, TrackId> = HashMap::new();
    let node = |span: SpanId| {
        let node = SpanId(backward[span.index()]);
        Some((sequence.of(node)?, forward_thread.of(node).unwrap_or(0)))
    };
    let in_backward: Vec<SpanId> =
        nesting.order().iter().copied().filter(|span| backward[span.index()] != NONE).collect();
    for &span in &in_backward {
        if let Some((number, thread)) = node(span)
            && let Some([(track, _)]) = forward.get(&number).map(Vec::as_slice)
        {
            threads.entry(thread).or_insert(*track);
        }
    }
    for &span in &in_backward {
        let stack = node(span).and_then(|(number, thread)| {
            let stacks = forward.get(&number)?;
            let track = threads.get(&thread);
            let same_thread = stacks.iter().find(|(other, _)| Some(other) == track);
            same_thread.or_else(|| stacks.first().filter(|_| track.is_none())).map(|&(_, stack)| stack)
        });
        ids[span.index()] = stack.unwrap_or(0);
    }
}

/// The innermost `nn.Module` around every event.
#[derive(Debug)]
pub(crate) struct Modules {
    /// Names, 0 for none.
    modules: Vec<u32>,
}

impl Modules {
    pub(crate) fn of(model: &Model, nesting: &Nesting) -> Self {
        let (spans, events, hierarchy) = (model.spans(), model.events(), model.module_hierarchy());
        let mut modules = vec![0_u32; spans.len()];
        for &span in nesting.order().iter().filter(|&&span| events.role(span).is_host()) {
            let own = match events.role(span) {
                Role::Python => model.span_name(span).starts_with("nn.Module: ").then(|| spans.name(span)),
                _ => hierarchy.id(spans.args(span)),
            };
            let around = nesting.parent(span).map_or(0, |parent| modules[parent.index()]);
            modules[span.index()] = own.map_or(around, |own| own.0);
        }
        inherit_from_forward(model, nesting, &mut modules);
        Self { modules }
    }

    pub(crate) fn module(&self, span: SpanId) -> Option<StringId> {
        Some(StringId(self.modules[span.index()])).filter(|&module| module != StringId(0))
    }
}
