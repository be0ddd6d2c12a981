//! What shares a row: the key of an event, made of interned numbers only.

use hashbrown::HashMap;
use hotspan_store::{ArgReader, Ident, SpanId, StringId, Trace};

use crate::averages::GroupBy;
use crate::averages::stacks::{Modules, Stacks};
use crate::events::{Events, Name};
use crate::flops::shapes::{InputShapes, shapes_of_json};
use crate::nesting::Nesting;

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) name: Name,
    pub(super) on_device: bool,
    pub(super) annotation: bool,
    pub(super) shapes: u32,
    pub(super) stack: u32,
    pub(super) module: Option<StringId>,
    pub(super) track: Option<u32>,
    pub(super) device: Option<i64>,
    /// The number of the event, when each has a row.
    pub(super) event: u32,
}

/// Makes keys, and remembers what the numbers in them stand for.
pub(super) struct Keys<'a> {
    trace: &'a Trace,
    events: &'a Events,
    group_by: &'a GroupBy,
    shapes: Option<Shapes<'a>>,
    pub(super) stacks: Option<Stacks>,
    modules: Option<Modules>,
    device: ArgReader<'a>,
    /// Instants that have rows of their own: numbered after the spans.
    instants: u32,
}

impl<'a> Keys<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        events: &'a Events,
        nesting: &Nesting,
        group_by: &'a GroupBy,
    ) -> Self {
        Self {
            trace,
            events,
            group_by,
            shapes: group_by.input_shapes.then(|| Shapes::new(trace)),
            stacks: (group_by.stack_depth > 0)
                .then(|| Stacks::of(trace, events, nesting, group_by.stack_depth)),
            modules: group_by.module.then(|| Modules::of(trace, events, nesting)),
            device: trace.arg("device"),
            instants: trace.spans().len() as u32,
        }
    }

    /// The key of an event of this name that has nothing else to tell it apart, on a thread.
    pub(super) fn plain(&mut self, key: StringId, track: u32) -> Key {
        Key {
            name: Name { key, overload: StringId(0) },
            on_device: false,
            annotation: false,
            shapes: 0,
            stack: 0,
            module: None,
            track: self.group_by.thread.then_some(track),
            device: None,
            event: self.next_instant(),
        }
    }

    pub(super) fn of(&mut self, span: SpanId) -> Key {
        let role = self.events.role(span);
        let mut name = self.events.name(self.trace, span);
        if !self.group_by.overload_name {
            name.overload = StringId(0);
        }
        let track = self.trace.spans().track(span);
        Key {
            name,
            on_device: role.is_device(),
            annotation: role.is_annotation(),
            shapes: self.shapes.as_mut().map_or(0, |shapes| shapes.id(span)),
            stack: self.stacks.as_ref().map_or(0, |stacks| stacks.id(span)),
            module: self.modules.as_ref().and_then(|modules| modules.module(span)),
            track: self.group_by.thread.then_some(track.0),
            device: (self.group_by.device && role.is_device()).then(|| self.device_index(span)).flatten(),
            event: if self.group_by.event { span.0 } else { 0 },
        }
    }

    fn next_instant(&mut self) -> u32 {
        self.instants = self.instants.wrapping_add(u32::from(self.group_by.event));
        if self.group_by.event { self.instants } else { 0 }
    }

    pub(super) fn shapes(&self, id: u32) -> Option<InputShapes> {
        self.shapes.as_ref().map(|shapes| shapes.distinct[id as usize].clone())
    }

    fn device_index(&self, span: SpanId) -> Option<i64> {
        let spans = self.trace.spans();
        // Kineto writes the device as the process of its streams; the arg says the same where there is one.
        self.device.int(spans.args(span)).or_else(|| {
            let process = self.trace.track(spans.track(span)).process;
            match self.trace.process(process).ident {
                Ident::Int(index) => Some(index),
                Ident::Text(_) => None,
            }
        })
    }
}

/// The distinct lists of input shapes. Id 0 is the empty list, which events without recorded shapes have.
struct Shapes<'a> {
    trace: &'a Trace,
    reader: ArgReader<'a>,
    by_text: HashMap<StringId, u32>,
    by_value: HashMap<InputShapes, u32>,
    distinct: Vec<InputShapes>,
}

impl<'a> Shapes<'a> {
    fn new(trace: &'a Trace) -> Self {
        let mut by_value = HashMap::new();
        by_value.insert(InputShapes::default(), 0);
        Self {
            trace,
            reader: trace.arg("Input Dims"),
            by_text: HashMap::new(),
            by_value,
            distinct: vec![InputShapes::default()],
        }
    }

    fn id(&mut self, span: SpanId) -> u32 {
        let args = self.trace.spans().args(span);
        let Some(text) = self.reader.text_id(args) else {
            // Packed args have no text id; they are rare.
            return self.reader.json(args).map_or(0, |json| self.id_of(shapes_of_json(&json)));
        };
        if let Some(&id) = self.by_text.get(&text) {
            return id;
        }
        let json = serde_json::from_str(self.trace.str(text)).unwrap_or_default();
        let id = self.id_of(shapes_of_json(&json));
        self.by_text.insert(text, id);
        id
    }

    fn id_of(&mut self, shapes: InputShapes) -> u32 {
        let next = self.distinct.len() as u32;
        *self.by_value.entry(shapes).or_insert_with_key(|shapes| {
            self.distinct.push(shapes.clone());
            next
        })
    }
}
