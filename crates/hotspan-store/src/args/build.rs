//! Building args: the tree of layouts, whose leaves are the tables of [`super::growing`].
//!
//! The tree is what keeps importing fast: the keys of an event are compared with the keys seen at the same step of the tree
//! before, which nearly always match at the first try, so no key is hashed and none is looked up twice.

use crate::args::growing::GrowingArgSchema;
use crate::args::{Arg, ArgKey, ArgOrigin, ArgSchema, ArgType, Args};
use crate::ids::{ArgSchemaId, StringId};
use crate::string_table::StringTable;

/// More distinct key lists than this and further ones are kept as packed JSON: a file that uses a new key in each
/// event must not grow one table per event.
pub(crate) const MAX_LAYOUTS: usize = 4_096;
const MAX_NODES: usize = 32_768;
const MAX_CHILDREN: usize = 128;

/// The args of an event that is being read, before the event is known to be whole.
#[derive(Clone, Debug, Default)]
pub struct PendingArgs {
    node: u32,
    values: Vec<Arg>,
    /// Once the tree is full: every key and value of the event, to be packed.
    overflow: Option<Vec<(ArgOrigin, StringId, Arg)>>,
}

impl PendingArgs {
    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.node = 0;
        self.values.clear();
        self.overflow = None;
    }

    /// Whether there is nothing to store.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.overflow.is_none()
    }
}

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    key: ArgKey,
    /// The name of the key, at hand for comparison.
    name: Box<[u8]>,
    children: Vec<u32>,
    layout: Option<ArgSchemaId>,
}

#[derive(Clone, Debug)]
pub(crate) struct ArgsBuilder {
    nodes: Vec<Node>,
    pub(crate) arg_schemas: Vec<GrowingArgSchema>,
}

impl Default for ArgsBuilder {
    fn default() -> Self {
        let root_key = ArgKey { name: StringId(0), origin: ArgOrigin::Args, kind: ArgType::Json };
        let root = Node {
            parent: 0,
            key: root_key,
            name: Box::default(),
            children: Vec::new(),
            layout: Some(ArgSchemaId(0)),
        };
        Self { nodes: vec![root], arg_schemas: vec![GrowingArgSchema::new(Vec::new())] }
    }
}

impl ArgsBuilder {
    /// Adds one key and value to the event being read. `key` is checked for UTF-8 only when it is new here.
    #[inline]
    pub(crate) fn push(
        &mut self,
        strings: &mut StringTable,
        pending: &mut PendingArgs,
        origin: ArgOrigin,
        key: &[u8],
        value: Arg,
    ) {
        if pending.overflow.is_none() {
            let kind = value.kind();
            for &child in &self.nodes[pending.node as usize].children {
                let candidate = &self.nodes[child as usize];
                if candidate.key.kind == kind && candidate.key.origin == origin && *candidate.name == *key {
                    pending.node = child;
                    pending.values.push(value);
                    return;
                }
            }
        }
        self.push_new(strings, pending, origin, key, value);
    }

    #[cold]
    fn push_new(
        &mut self,
        strings: &mut StringTable,
        pending: &mut PendingArgs,
        origin: ArgOrigin,
        key: &[u8],
        value: Arg,
    ) {
        let name = strings.intern(&String::from_utf8_lossy(key));
        if let Some(overflow) = &mut pending.overflow {
            overflow.push((origin, name, value));
            return;
        }
        // A key once seen with a fraction keeps one column: 25 is 25.0 there.
        if let Arg::Int(number) = value
            && number.unsigned_abs() < 1 << 53
        {
            let float = ArgKey { name, origin, kind: ArgType::Float };
            if let Some(child) = self.child(pending.node, float) {
                pending.node = child;
                pending.values.push(Arg::Float(number as f64));
                return;
            }
        }
        let key = ArgKey { name, origin, kind: value.kind() };
        match self.child_or_new(strings, pending.node, key) {
            Some(child) => {
                pending.node = child;
                pending.values.push(value);
            }
            None => {
                let mut all = self.entries(pending);
                all.push((origin, name, value));
                pending.overflow = Some(all);
            }
        }
    }

    /// The keys and values of an event that is being read.
    pub(crate) fn entries(&self, pending: &PendingArgs) -> Vec<(ArgOrigin, StringId, Arg)> {
        let values = pending.values.iter().copied();
        let entry = |(key, value): (ArgKey, Arg)| (key.origin, key.name, value);
        pending
            .overflow
            .clone()
            .unwrap_or_else(|| self.keys_to(pending.node).into_iter().zip(values).map(entry).collect())
    }

    /// Appends a row whose values have the types of the layout's keys.
    #[inline]
    pub(crate) fn append_row(&mut self, layout: ArgSchemaId, values: &[Arg]) -> Option<Args> {
        let keys = &self.arg_schemas[layout.index()].keys;
        let fits = keys.len() == values.len()
            && keys.iter().zip(values).all(|(key, value)| key.kind == value.kind());
        fits.then(|| self.append(layout, values))
    }

    /// Stores the event's args and says where.
    #[inline]
    pub(crate) fn commit(&mut self, strings: &mut StringTable, pending: &mut PendingArgs) -> Args {
        if let (Some(layout), None) = (self.nodes[pending.node as usize].layout, &pending.overflow) {
            return self.append(layout, &pending.values);
        }
        self.commit_new(strings, pending)
    }

    #[cold]
    fn commit_new(&mut self, strings: &mut StringTable, pending: &mut PendingArgs) -> Args {
        if pending.overflow.is_some() || self.arg_schemas.len() >= MAX_LAYOUTS {
            let text = pack(strings, &self.entries(pending));
            let id = strings.intern(&text);
            let layout = self.packed_layout();
            return self.append(layout, &[Arg::Json(id)]);
        }
        let layout = ArgSchemaId::at(self.arg_schemas.len());
        self.arg_schemas.push(GrowingArgSchema::new(self.keys_to(pending.node)));
        self.nodes[pending.node as usize].layout = Some(layout);
        self.append(layout, &pending.values)
    }

    /// Adds a layout read from a file; its columns are filled by the caller.
    pub(crate) fn add_layout(&mut self, strings: &StringTable, keys: Vec<ArgKey>) -> Option<ArgSchemaId> {
        if self.arg_schemas.len() > MAX_LAYOUTS {
            return None;
        }
        let mut node = 0;
        for &key in &keys {
            node = self.child_or_new(strings, node, key)?;
        }
        let layout = ArgSchemaId::at(self.arg_schemas.len());
        self.arg_schemas.push(GrowingArgSchema::new(keys));
        self.nodes[node as usize].layout = Some(layout);
        Some(layout)
    }

    pub(crate) fn finish(self) -> Vec<ArgSchema> {
        self.arg_schemas.into_iter().map(GrowingArgSchema::finish).collect()
    }

    /// Moves the rows out, keeping the layouts and their ids. Rows go on being numbered from where they were, so that
    /// [`Args`] handed out before stay what they are.
    pub(crate) fn take_rows(&mut self) -> Vec<ArgSchema> {
        self.arg_schemas.iter_mut().map(GrowingArgSchema::take).collect()
    }

    fn append(&mut self, layout: ArgSchemaId, values: &[Arg]) -> Args {
        let table = &mut self.arg_schemas[layout.index()];
        for (column, &value) in table.columns.iter_mut().zip(values) {
            column.push(value);
        }
        let row = table.next;
        // Events without args may outnumber the rows; their row is never looked at.
        table.next = table.next.saturating_add(1);
        Args { schema: layout, row }
    }

    fn child(&self, node: u32, key: ArgKey) -> Option<u32> {
        let children = &self.nodes[node as usize].children;
        children.iter().copied().find(|&child| self.nodes[child as usize].key == key)
    }

    fn child_or_new(&mut self, strings: &StringTable, node: u32, key: ArgKey) -> Option<u32> {
        if let Some(child) = self.child(node, key) {
            return Some(child);
        }
        // One id is always left for the packed layout.
        let packed = key.origin == ArgOrigin::Packed;
        let full = self.nodes.len() >= MAX_NODES || self.nodes[node as usize].children.len() >= MAX_CHILDREN;
        if full && !packed {
            return None;
        }
        let child = self.nodes.len() as u32;
        let name = strings.get(key.name).as_bytes().into();
        self.nodes.push(Node { parent: node, key, name, children: Vec::new(), layout: None });
        self.nodes[node as usize].children.push(child);
        Some(child)
    }

    fn keys_to(&self, node: u32) -> Vec<ArgKey> {
        let mut keys = Vec::new();
        let mut at = node;
        while at != 0 {
            keys.push(self.nodes[at as usize].key);
            at = self.nodes[at as usize].parent;
        }
        keys.reverse();
        keys
    }

    /// How many events had their args packed.
    pub(crate) fn packed_rows(&self) -> u64 {
        let is_packed =
            |layout: &&GrowingArgSchema| layout.keys.iter().any(|key| key.origin == ArgOrigin::Packed);
        self.arg_schemas.iter().filter(is_packed).map(|layout| u64::from(layout.next - layout.first)).sum()
    }

    fn packed_layout(&mut self) -> ArgSchemaId {
        let key = ArgKey { name: StringId(0), origin: ArgOrigin::Packed, kind: ArgType::Json };
        let known = self.arg_schemas.iter().rposition(|layout| layout.keys == [key]);
        known.map(ArgSchemaId::at).unwrap_or_else(|| {
            let layout = ArgSchemaId::at(self.arg_schemas.len());
            self.arg_schemas.push(GrowingArgSchema::new(vec![key]));
            layout
        })
    }
}

/// An event's args as one JSON object.
fn pack(strings: &StringTable, all: &[(ArgOrigin, StringId, Arg)]) -> String {
    let object = |wanted: ArgOrigin| {
        let entries = all.iter().filter(|(origin, ..)| *origin == wanted);
        entries
            .map(|(_, key, value)| (strings.get(*key).to_owned(), value.resolve(strings).to_json()))
            .collect::<serde_json::Map<_, _>>()
    };
    serde_json::json!({"args": object(ArgOrigin::Args), "event": object(ArgOrigin::Event)}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(args: &mut ArgsBuilder, strings: &mut StringTable, pairs: &[(&str, Arg)]) -> Args {
        let mut pending = PendingArgs::default();
        for (key, value) in pairs {
            args.push(strings, &mut pending, ArgOrigin::Args, key.as_bytes(), *value);
        }
        args.commit(strings, &mut pending)
    }

    #[test]
    fn equal_key_lists_share_a_layout() {
        let (mut args, mut strings) = (ArgsBuilder::default(), StringTable::default());
        let first = event(&mut args, &mut strings, &[("stream", Arg::Int(7)), ("bytes", Arg::Int(1 << 40))]);
        let second = event(&mut args, &mut strings, &[("stream", Arg::Int(8)), ("bytes", Arg::Int(2))]);
        let other = event(&mut args, &mut strings, &[("bytes", Arg::Int(2)), ("stream", Arg::Int(8))]);
        assert_eq!(first.schema, second.schema);
        assert_ne!(first.schema, other.schema, "order is kept, so it tells layouts apart");
        let arg_schemas = args.finish();
        assert_eq!(arg_schemas[first.schema.index()].value(1, first.row), Some(Arg::Int(1 << 40)));
        assert_eq!(arg_schemas[first.schema.index()].value(0, second.row), Some(Arg::Int(8)));
    }

    #[test]
    fn whole_numbers_join_the_column_of_fractions() {
        let (mut args, mut strings) = (ArgsBuilder::default(), StringTable::default());
        let fraction = event(&mut args, &mut strings, &[("blocks per SM", Arg::Float(0.5))]);
        let whole = event(&mut args, &mut strings, &[("blocks per SM", Arg::Int(25))]);
        assert_eq!(fraction.schema, whole.schema);
        assert_eq!(args.finish()[whole.schema.index()].value(0, whole.row), Some(Arg::Float(25.0)));
    }

    #[test]
    fn endless_new_keys_are_packed_instead_of_growing_tables() {
        let (mut args, mut strings) = (ArgsBuilder::default(), StringTable::default());
        let mut last = Args::default();
        for number in 0..20_000 {
            last = event(&mut args, &mut strings, &[(&format!("key {number}"), Arg::Int(number))]);
        }
        assert!(args.arg_schemas.len() <= MAX_LAYOUTS + 1);
        let arg_schemas = args.finish();
        let Some(Arg::Json(text)) = arg_schemas[last.schema.index()].value(0, last.row) else {
            panic!("not packed")
        };
        assert_eq!(strings.get(text), r#"{"args":{"key 19999":19999},"event":{}}"#);
    }
}
