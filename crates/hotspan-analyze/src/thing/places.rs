//! Where calls came from: input shapes, modules, Python stacks, and what launched or was launched by what.

use std::cmp::Reverse;
use std::hash::Hash;

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameKind, SpanId};

use crate::averages::DeviceKind;
use crate::model::Model;
use crate::model::events::Role;
use crate::model::source::{file_and_line, is_users};
use crate::report::Table;
use crate::report::door::Door;
use crate::report::schema::Schema;
use crate::reports::kernels::kernel_door;
use crate::reports::operators::operator_door;

/// Rows of each table.
const MOST_ROWS: usize = 20;
/// Stacks that are shown.
const MOST_STACKS: usize = 5;
/// Letters of a text.
const LONGEST_TEXT: usize = 400;
/// A file may nest without end.
const DEEPEST: usize = 300;
const MODULE_PREFIX: &str = "nn.Module: ";

/// A Python stack that calls came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStack {
    /// The line of the program behind the longest of the calls, as `file:line`.
    pub source: Option<String>,
    /// How many calls.
    pub calls: u64,
    /// Their time.
    pub total: Duration,
    /// The functions, innermost first.
    pub entries: Vec<String>,
}

/// Calls that have something in common.
struct Group {
    calls: u64,
    total: Duration,
    longest: SpanId,
}

/// The span of the host behind a call: for work of a device what launched it.
pub(super) fn host_of(model: &Model, span: SpanId) -> SpanId {
    if !model.role(span).is_device() {
        return span;
    }
    model.launches().owner(span).or_else(|| model.launch_calls().call(span)).unwrap_or(span)
}

/// The line of the program behind a call, as `file:line`; for the backward pass that of the forward operator.
pub(crate) fn source_of(model: &Model, span: SpanId) -> Option<String> {
    let host = host_of(model, span);
    let of_stack = || {
        let stacks = model.near_stacks();
        let mut places = stacks.entries(stacks.id(host)).iter().filter_map(|entry| file_and_line(entry));
        places.find(|(file, _)| is_users(file)).map(|(file, line)| format!("{file}:{line}"))
    };
    model.sources().line(model, host).or_else(of_stack)
}

/// Groups of calls with the same key, most time first.
fn grouped<K: Hash + Eq + Copy>(
    model: &Model,
    calls: impl IntoIterator<Item = SpanId>,
    key: impl Fn(SpanId) -> Option<K>,
) -> Vec<(K, Group)> {
    let spans = model.spans();
    let mut groups: Vec<(K, Group)> = Vec::new();
    let mut indices: HashMap<K, usize> = HashMap::new();
    for span in calls {
        let Some(key) = key(span) else { continue };
        let index = *indices.entry(key).or_insert_with(|| {
            groups.push((key, Group { calls: 0, total: Duration::ZERO, longest: span }));
            groups.len() - 1
        });
        let group = &mut groups[index].1;
        group.calls += 1;
        group.total += spans.duration(span);
        if spans.duration(span) > spans.duration(group.longest) {
            group.longest = span;
        }
    }
    groups.sort_by_key(|(_, group)| Reverse(group.total));
    groups
}

/// A row of a table of groups.
struct Row {
    name: String,
    group: Group,
    door: Option<Door>,
}

fn table(model: &Model, id: &str, title: &str, what: &str, rows: Vec<Row>) -> Option<Table> {
    let (all, mut rows) = (rows.len(), rows);
    rows.truncate(MOST_ROWS);
    let title =
        if all > MOST_ROWS { format!("{title} (the first {MOST_ROWS} of {all})") } else { title.to_owned() };
    let table = Schema::<Row>::new(id, title)
        .text("name", what, |row| &row.name)
        .help("What these calls have in common.")
        .count("calls", "Calls", |row| row.group.calls)
        .help("How many there are.")
        .duration("total", "Total", |row| row.group.total)
        .help("Their time added up.")
        .duration("longest", "Longest", |row| model.spans().duration(row.group.longest))
        .help("The longest of them.")
        .door(|row| row.door.clone())
        .table(&rows);
    table.filled()
}

/// The shapes of inputs that calls, or the operators that launched them, had.
pub(super) fn shapes(model: &Model, calls: &[SpanId]) -> Option<Table> {
    let shapes = model.shapes();
    if !shapes.is_recorded() {
        return None;
    }
    let id = |span| Some(shapes.id(host_of(model, span))).filter(|&id| !shapes.get(id).is_empty());
    let groups = grouped(model, calls.iter().copied(), id);
    let row = |(id, group)| Row { name: cut(&format!("{:?}", shapes.get(id))), group, door: None };
    table(model, "shapes", "Input shapes", "Shapes", groups.into_iter().map(row).collect())
}

/// The modules around calls, each with those around it.
pub(super) fn modules(model: &Model, calls: &[SpanId]) -> Option<Table> {
    let module = |span| model.modules().module(host_of(model, span));
    let groups = grouped(model, calls.iter().copied(), module);
    let row = |(module, group): (_, Group)| {
        let own = model.str(module);
        let path = module_path(model, host_of(model, group.longest));
        let is_path = path.last().is_some_and(|last| *last == own);
        let shown = if is_path { path } else { vec![own] };
        let names: Vec<&str> =
            shown.iter().map(|name| name.strip_prefix(MODULE_PREFIX).unwrap_or(name)).collect();
        Row { name: cut(&names.join(" / ")), group, door: None }
    };
    table(model, "modules", "Modules", "Module", groups.into_iter().take(MOST_ROWS + 1).map(row).collect())
}

/// The calls of modules around a span, the outermost first.
fn module_path(model: &Model, span: SpanId) -> Vec<&str> {
    let nesting = model.nesting();
    let around = std::iter::successors(Some(span), |&inner| nesting.parent(inner)).take(DEEPEST);
    let functions =
        around.filter(|&outer| model.role(outer) == Role::Python).map(|outer| model.span_name(outer));
    let mut path: Vec<&str> = functions.filter(|name| name.starts_with(MODULE_PREFIX)).collect();
    path.reverse();
    path
}

/// The operators that launched work of a device.
pub(super) fn launched_by(model: &Model, calls: &[SpanId]) -> Option<Table> {
    let nesting = model.merged_nesting();
    let owner = |span| {
        let owner = model.launches().owner(span)?;
        let owner = if nesting.is_merged(owner) { nesting.parent(owner)? } else { owner };
        Some((model.events().name(model, owner).key, model.role(owner).is_annotation()))
    };
    let groups = grouped(model, calls.iter().copied(), owner);
    let row = |((name, is_annotation), group)| {
        let name = model.events().names.get(name);
        let door = operator_door(name, DeviceKind::Cpu, is_annotation);
        Row { name: cut(name), group, door: Some(door) }
    };
    table(model, "launched_by", "Launched by", "Operator", groups.into_iter().map(row).collect())
}

/// The work that calls, and all they called, gave to devices.
pub(super) fn launched(model: &Model, calls: &[SpanId]) -> Option<Table> {
    let owners = model.launches().owners();
    if owners.is_empty() {
        return None;
    }
    let (spans, is_inside) = (model.spans(), inside(model, calls));
    let work = owners.iter().filter(|(_, owner)| is_inside[owner.index()]).map(|&(device, _)| device);
    let groups = grouped(model, work, |span| Some(spans.name(span)));
    let row = |(name, group)| {
        let name = model.str(name);
        Row { name: cut(name), group, door: Some(kernel_door(name)) }
    };
    table(model, "launched", "Kernels launched", "Kernel", groups.into_iter().map(row).collect())
}

/// The operators that calls, and what they called, ran; those inside of other operators are left out.
pub(super) fn operators(model: &Model, calls: &[SpanId]) -> Option<Table> {
    let is_inside = inside(model, calls);
    let (nesting, mut is_covered) = (model.merged_nesting(), vec![false; model.spans().len()]);
    let mut found: Vec<SpanId> = Vec::new();
    for &span in nesting.order() {
        let is_operator = model.role(span) == Role::Operator && is_inside[span.index()];
        let in_another = nesting.parent(span).is_some_and(|outer| is_covered[outer.index()]);
        is_covered[span.index()] = is_operator || in_another;
        if is_operator && !in_another && !nesting.is_merged(span) {
            found.push(span);
        }
    }
    let groups = grouped(model, found, |span| Some(model.events().name(model, span).key));
    let row = |(name, group)| {
        let name = model.events().names.get(name);
        Row { name: cut(name), group, door: Some(operator_door(name, DeviceKind::Cpu, false)) }
    };
    table(model, "called", "Operators called", "Operator", groups.into_iter().map(row).collect())
}

/// Which spans are some calls, or inside them.
fn inside(model: &Model, calls: &[SpanId]) -> Vec<bool> {
    let nesting = model.nesting();
    let mut is_inside = vec![false; model.spans().len()];
    for &call in calls {
        is_inside[call.index()] = true;
    }
    for &span in nesting.order() {
        is_inside[span.index()] |= nesting.parent(span).is_some_and(|outer| is_inside[outer.index()]);
    }
    is_inside
}

/// The Python stacks of calls.
pub(super) fn stacks(model: &Model, calls: &[SpanId]) -> Vec<CallStack> {
    let stacks = model.near_stacks();
    let groups = grouped(model, calls.iter().copied(), |span| Some(stacks.id(host_of(model, span))));
    let stack = |(id, group): (u32, Group)| {
        let host = host_of(model, group.longest);
        let recorded = stacks.entries(id);
        let entries = if recorded.is_empty() { sampled(model, host) } else { recorded.to_vec() };
        CallStack {
            source: source_of(model, group.longest),
            calls: group.calls,
            total: group.total,
            entries: entries.iter().map(|entry| cut(entry)).collect(),
        }
    };
    let shown = groups.into_iter().take(MOST_STACKS).map(stack);
    shown.filter(|stack| !stack.entries.is_empty() || stack.source.is_some()).collect()
}

/// The stack of the first sample within a call.
fn sampled(model: &Model, span: SpanId) -> Vec<String> {
    let (spans, profile) = (model.spans(), model.profile());
    let mut samples = model.sources().between(spans.track(span), spans.time(span), spans.end(span));
    let Some(sample) = samples.next() else { return Vec::new() };
    let frames =
        profile.stacks.frames(profile.samples.row(sample).stack).map(|frame| profile.frames.row(frame));
    let python = frames.filter(|frame| frame.kind == FrameKind::Python).take(DEEPEST);
    python
        .map(|frame| {
            let line = frame.line.max(frame.first_line);
            format!("{}({line}): {}", model.str(frame.file), model.str(frame.name))
        })
        .collect()
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
