//! The tree of `nn.Module` calls: which module called which, and the time of each on the host and on devices.
//!
//! The tree follows the calls of the forward pass. Operators of the backward pass belong to the module that called their forward
//! operator, for nobody wrote a call of `AddmmBackward0`.

use hashbrown::HashMap;
use hotspan_store::{Duration, SpanId, StringId};

use crate::model::Model;
use crate::model::events::Role;
use crate::model::stacks::inherit_from_forward;

const PREFIX: &str = "nn.Module: ";

/// A module where it was called from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNode {
    /// Its name, with the number that tells it from others of its class.
    pub name: String,
    /// How many modules are around it.
    pub depth: usize,
    /// How often it was called.
    pub calls: u64,
    /// The time of its calls.
    pub total: Duration,
    /// The time of its calls without those of modules in them.
    pub own: Duration,
    /// The time of its operators in the backward pass, modules in it included.
    pub backward: Duration,
    /// The time of device work that it or modules in it launched, in both passes.
    pub device: Duration,
    /// The time of device work without that of modules in it.
    pub own_device: Duration,
    /// The names of those around it and its own, where they are not too many to write down.
    pub path: Option<String>,
    parent: Option<usize>,
}

/// Longer paths name nothing that anybody reads.
const LONGEST_PATH: usize = 1000;

/// A module by its path, and the calls of it.
#[must_use]
pub fn module_calls(model: &Model, path: &str) -> Option<(ModuleNode, Vec<SpanId>)> {
    let (nodes, node_of) = grow(model);
    let index = nodes.iter().position(|node| node.path.as_deref() == Some(path))?;
    let is_call = |&span: &SpanId| {
        node_of[span.index()] as usize == index + 1
            && model.role(span) == Role::Python
            && model.span_name(span).starts_with(PREFIX)
    };
    let calls = model.spans().ids().filter(is_call).collect();
    Some((nodes[index].clone(), calls))
}

/// The modules of a trace, each before those it calls, longest first; empty when no calls of modules were recorded.
#[must_use]
pub fn module_tree(model: &Model) -> Vec<ModuleNode> {
    in_order(&grow(model).0)
}

/// The modules in order of appearance, and for each span the number of the one whose forward pass it is in, counted from 1.
fn grow(model: &Model) -> (Vec<ModuleNode>, Vec<u32>) {
    let is_module: Vec<bool> = model.strings().iter().map(|name| name.starts_with(PREFIX)).collect();
    if !is_module.contains(&true) {
        return (Vec::new(), Vec::new());
    }
    let (spans, events, nesting) = (model.spans(), model.events(), model.nesting());
    let mut nodes: Vec<ModuleNode> = Vec::new();
    let mut numbers: HashMap<(u32, StringId), u32> = HashMap::new();
    // The node around each span, counted from 1; 0 is outside of all modules.
    let mut node_of = vec![0_u32; spans.len()];
    for &span in nesting.order().iter().filter(|&&span| events.role(span).is_host()) {
        let around = nesting.parent(span).map_or(0, |parent| node_of[parent.index()]);
        let name = spans.name(span);
        if events.role(span) != Role::Python || !is_module[name.index()] {
            node_of[span.index()] = around;
            continue;
        }
        let number = *numbers.entry((around, name)).or_insert_with(|| {
            nodes.push(ModuleNode::new(model.str(name), (around as usize).checked_sub(1), &nodes));
            nodes.len() as u32
        });
        node_of[span.index()] = number;
        let duration = spans.duration(span);
        let node = &mut nodes[number as usize - 1];
        node.calls += 1;
        node.total += duration;
        node.own += duration;
        if let Some(outer) = (around as usize).checked_sub(1) {
            nodes[outer].own -= duration;
        }
    }
    let forward = node_of.clone();
    inherit_from_forward(model, nesting, &mut node_of);
    let at = |span: SpanId| (node_of[span.index()] as usize).checked_sub(1);
    let is_backward = |span: SpanId| forward[span.index()] != node_of[span.index()];
    for &span in nesting.order().iter().filter(|&&span| events.role(span).is_host() && is_backward(span)) {
        // The outermost of the backward pass stands for those in it.
        let is_outermost = nesting.parent(span).is_none_or(|outer| at(outer) != at(span));
        if let Some(node) = at(span).filter(|_| is_outermost) {
            nodes[node].backward += spans.duration(span);
        }
    }
    for &(device, owner) in model.launches().owners() {
        if let Some(node) = at(owner) {
            nodes[node].own_device += spans.duration(device);
        }
    }
    for index in (0..nodes.len()).rev() {
        let own = nodes[index].own_device;
        nodes[index].device += own;
        let (device, backward, parent) = (nodes[index].device, nodes[index].backward, nodes[index].parent);
        if let Some(parent) = parent {
            nodes[parent].device += device;
            nodes[parent].backward += backward;
        }
    }
    (nodes, forward)
}

impl ModuleNode {
    fn new(name: &str, parent: Option<usize>, nodes: &[Self]) -> Self {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        let around =
            parent.map_or(Some(String::new()), |parent| Some(format!("{}/", nodes[parent].path.as_ref()?)));
        let path = around.map(|around| around + name).filter(|path| path.len() <= LONGEST_PATH);
        Self {
            name: name.to_owned(),
            path,
            depth: parent.map_or(0, |parent| nodes[parent].depth + 1),
            calls: 0,
            total: Duration::ZERO,
            own: Duration::ZERO,
            backward: Duration::ZERO,
            device: Duration::ZERO,
            own_device: Duration::ZERO,
            parent,
        }
    }
}

/// Each node before those below it, the longest of sisters first.
fn in_order(nodes: &[ModuleNode]) -> Vec<ModuleNode> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut roots = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        node.parent.map_or(&mut roots, |parent| &mut children[parent]).push(index);
    }
    let shortest_first = |list: &mut Vec<usize>| {
        list.sort_by_key(|&index| (nodes[index].device.max(nodes[index].total), std::cmp::Reverse(index)));
    };
    shortest_first(&mut roots);
    children.iter_mut().for_each(shortest_first);
    let mut result = Vec::with_capacity(nodes.len());
    let mut open = roots;
    while let Some(index) = open.pop() {
        result.push(nodes[index].clone());
        open.append(&mut children[index]);
    }
    result
}

#[cfg(test)]
mod tests {
    use hotspan_store::{EventRow, Ident, SpanRow, Timestamp, TraceBuilder};

    use super::*;

    #[test]
    fn modules_nest_as_they_were_called() {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(1));
        for (name, begin, duration) in [
            ("nn.Module: Net_0", 0, 100),
            ("nn.Module: Linear_0", 10, 20),
            ("nn.Module: Linear_1", 40, 50),
            ("nn.Module: Net_0", 200, 100),
            ("nn.Module: Linear_0", 210, 30),
        ] {
            let (name, category) = (builder.intern(name), builder.category("python_function"));
            let event = EventRow { time: Timestamp(begin), name, category, track, args: builder.no_args() };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        let model = Model::new(builder.finish());
        let tree = module_tree(&model);
        let seen: Vec<_> = tree
            .iter()
            .map(|row| (row.depth, row.name.as_str(), row.calls, row.total.0, row.own.0))
            .collect();
        assert_eq!(seen, [(0, "Net_0", 2, 200, 100), (1, "Linear_0", 2, 50, 50), (1, "Linear_1", 1, 50, 50)]);
        let report = crate::Report::named("module_tree").unwrap();
        let tables = (report.tables)(&model, &crate::ReportOptions::default()).unwrap();
        assert_eq!(tables[0].rows.len(), 3);
    }
}
