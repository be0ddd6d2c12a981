//! A row of the tree of modules.

use super::{Thing, places};
use crate::model::Model;
use crate::module_tree::{module_calls, module_tree};
use crate::report::door::Door;
use crate::reports::modules::schema;

pub(super) fn describe(model: &Model, door: &Door) -> Option<Thing> {
    let path = door.get("path")?;
    let (node, calls) = module_calls(model, path)?;
    // Which columns there are is up to all modules.
    let nodes = module_tree(model);
    let row = nodes.iter().find(|known| known.path == node.path)?;
    let mut thing = Thing::new("Module", &node.name, schema(&nodes).table([row])).with_calls(model, &calls);
    let launched =
        places::launched(model, &calls).map(|table| table.titled("Kernels launched in the forward pass"));
    thing.tables = [launched, places::operators(model, &calls), places::modules(model, &calls)]
        .into_iter()
        .flatten()
        .collect();
    Some(thing)
}
