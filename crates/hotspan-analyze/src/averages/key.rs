//! What shares a row: the key of an event, made of interned numbers only.

use hotspan_store::{SpanId, StringId};

use crate::averages::GroupBy;
use crate::model::Model;
use crate::model::columns::Numbers;
use crate::model::events::Name;
use crate::model::inputs::InputShapes;
use crate::model::stacks::{Modules, Stacks};

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
    model: &'a Model,
    group_by: &'a GroupBy,
    pub(super) stacks: Option<Stacks>,
    modules: Option<Modules>,
    device: Numbers<'a>,
    /// Instants that have rows of their own: numbered after the spans.
    instants: u32,
}

impl<'a> Keys<'a> {
    pub(super) fn new(model: &'a Model, group_by: &'a GroupBy) -> Self {
        let nesting = model.merged_nesting();
        Self {
            model,
            group_by,
            stacks: (group_by.stack_depth > 0).then(|| Stacks::of(model, nesting, group_by.stack_depth)),
            modules: group_by.module.then(|| Modules::of(model, nesting)),
            device: model.device_index(),
            instants: model.spans().len() as u32,
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
        let (model, events) = (self.model, self.model.events());
        let role = events.role(span);
        let mut name = events.name(model, span);
        if !self.group_by.overload_name {
            name.overload = StringId(0);
        }
        let track = model.spans().track(span);
        Key {
            name,
            on_device: role.is_device(),
            annotation: role.is_annotation(),
            shapes: if self.group_by.input_shapes { model.shapes().id(span) } else { 0 },
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
        self.group_by.input_shapes.then(|| self.model.shapes().get(id).clone())
    }

    /// Kineto writes the device as the process of its streams; the arg says the same where there is one.
    fn device_index(&self, span: SpanId) -> Option<i64> {
        let model = self.model;
        let process = || model.process(model.track(model.spans().track(span)).process);
        self.device.of(span).or_else(|| process().ident.number())
    }
}
