//! The tree of `nn.Module` calls; `depth` says what is below what.

use super::{Report, SHAPES};
use crate::module_tree::{ModuleNode, module_tree};
use crate::report::door::Door;
use crate::report::schema::{Schema, unless_zero};

pub(super) const REPORTS: &[Report] = &[Report {
    id: "module_tree",
    by: None,
    record: SHAPES,
    tables: |model, options| {
        let nodes = module_tree(model);
        Ok(vec![schema(&nodes).show(&nodes, options)?])
    },
}];

/// The kind of doors to modules.
pub(crate) const MODULE: &str = "module";

pub(crate) fn schema(nodes: &[ModuleNode]) -> Schema<'_, ModuleNode> {
    let with_device = nodes.iter().any(|node| node.device.0 > 0);
    Schema::<ModuleNode>::new("modules", "Modules")
        .text("module", "Module", |node| &node.name)
        .help("The class, with the number that tells it from others of its class.")
        .count("depth", "Depth", |node| node.depth as u64)
        .help("How many modules are around it.")
        .count("calls", "# of Calls", |node| node.calls)
        .help("How often it was called in the forward pass.")
        .duration("cpu_time_total", "CPU total", |node| unless_zero(node.total))
        .help("Time of its calls on the processor, with the modules in it.")
        .duration("self_cpu_time_total", "Self CPU", |node| unless_zero(node.own))
        .help("Time of its calls on the processor, without the modules in it.")
        .duration("backward_cpu_time", "CPU in backward", |node| unless_zero(node.backward))
        .help("Time of its operators in the backward pass, with the modules in it.")
        .duration("device_time_total", "Device total", |node| unless_zero(node.device))
        .help("Time of the kernels that it and the modules in it launched, in both passes.")
        .when(with_device)
        .duration("self_device_time_total", "Self device", |node| unless_zero(node.own_device))
        .help("Time of the kernels it launched, in both passes, without the modules in it.")
        .when(with_device)
        .door(|node| Some(Door::new(MODULE).with("path", node.path.as_ref()?)))
}
