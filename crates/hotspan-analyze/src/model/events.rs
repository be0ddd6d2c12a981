//! Which spans are events in torch's sense, and what they are called there.
//!
//! Leaves their nesting to [`super::nesting`] and their grouping to [`crate::averages`].

use hotspan_store::{Category, SpanId, StringId, StringTable, Trace};

use super::{Model, RecordScope};

/// What part a span plays in the operator table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Not in the table: a mark, a wait, an unknown category, or a helper operator that torch hides too.
    Ignored,
    /// A torch operator.
    Operator,
    /// A `record_function` range.
    Annotation,
    /// A call into the device runtime or driver.
    Launch,
    /// A Python function.
    Python,
    /// The profiler's own cost.
    Overhead,
    /// Work of a device.
    Device,
    /// A user annotation as the device saw it. Its time covers kernels that have rows of their own.
    DeviceAnnotation,
}

impl Role {
    /// The role of a category's spans.
    #[must_use]
    pub fn of(category: Category) -> Self {
        match category {
            Category::Operator => Self::Operator,
            Category::UserAnnotation => Self::Annotation,
            Category::Runtime | Category::Driver => Self::Launch,
            Category::PythonFunction => Self::Python,
            Category::Overhead => Self::Overhead,
            Category::Kernel | Category::Memcpy | Category::Memset | Category::Collective => Self::Device,
            Category::GpuUserAnnotation => Self::DeviceAnnotation,
            // torch lists waits (`cuda_sync`) as device work and adds them to the device's busy time. A device that
            // waits does not work, so they are left out here.
            Category::GarbageCollection
            | Category::Sync
            | Category::DeviceEvent
            | Category::ProfilerRange
            | Category::CpuInstant
            | Category::Recording
            | Category::Unknown => Self::Ignored,
        }
    }

    /// Whether it happens on a CPU thread.
    #[must_use]
    pub fn is_host(self) -> bool {
        matches!(self, Self::Operator | Self::Annotation | Self::Launch | Self::Python | Self::Overhead)
    }

    /// Whether it happens on a device.
    #[must_use]
    pub fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::DeviceAnnotation)
    }

    /// Whether a person marked it.
    #[must_use]
    pub fn is_annotation(self) -> bool {
        matches!(self, Self::Annotation | Self::DeviceAnnotation)
    }
}

/// Operators that exist only because a profiler looks: torch leaves them out of the tree, so their time counts as
/// their caller's.
const HIDDEN: [&str; 8] = [
    "[memory]",
    "[OutOfMemory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
];

/// A name as tables show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// The key of its row, an id of [`Events::names`].
    pub key: StringId,
    /// The operator's overload, an id of [`Events::names`]; empty when not recorded.
    pub overload: StringId,
}

/// The role and the table name of every span.
#[derive(Clone, Debug)]
pub struct Events {
    roles: Vec<Role>,
    /// Spans that ended on another thread, or by a future; empty where there are none.
    asynchronous: Vec<bool>,
    /// Scopes as they were recorded; empty where none were.
    scopes: Vec<Option<RecordScope>>,
    /// For each string of the trace that names a span, its index in `distinct` plus one.
    name_of: Vec<u32>,
    distinct: Vec<Name>,
    /// The texts of [`Name`].
    pub names: StringTable,
    /// The name of rows for allocations outside of all spans.
    pub memory: StringId,
    /// The name of rows for failed allocations.
    pub out_of_memory: StringId,
}

impl Events {
    /// Reads the names and categories of a trace.
    pub(super) fn of(model: &Model) -> Self {
        let trace = model.trace();
        let mut names = StringTable::default();
        let (memory, out_of_memory) = (names.intern("[memory]"), names.intern("[OutOfMemory]"));
        let hidden: Vec<StringId> = HIDDEN.iter().filter_map(|name| trace.strings().find(name)).collect();
        let roles_of: Vec<Role> = trace.categories().map(|(_, _, category)| Role::of(category)).collect();
        let spans = trace.spans();
        let mut events = Self {
            roles: Vec::with_capacity(spans.len()),
            name_of: vec![0; trace.strings().len()],
            distinct: Vec::new(),
            asynchronous: Vec::new(),
            scopes: Vec::new(),
            names,
            memory,
            out_of_memory,
        };
        let (asynchronous, scopes) = (model.asynchronous(), model.recorded_scope());
        if asynchronous.occurs() {
            events.asynchronous = spans.ids().map(|span| asynchronous.of(span) == Some(1)).collect();
        }
        if scopes.occurs() {
            let scope = |span| scopes.of(span).map(RecordScope::from_torch);
            events.scopes = spans.ids().map(scope).collect();
        }
        for span in spans.ids() {
            let name = spans.name(span);
            let mut role = roles_of.get(spans.category(span).index()).copied().unwrap_or(Role::Ignored);
            if hidden.contains(&name) {
                role = Role::Ignored;
            }
            events.roles.push(role);
            if role != Role::Ignored {
                events.add_name(trace, name);
            }
        }
        events
    }

    /// The role of a span.
    #[must_use]
    pub fn role(&self, span: SpanId) -> Role {
        self.roles[span.index()]
    }

    /// Whether a span is a range that ended on another thread, or by a future. It encloses nothing, and its time is nobody's.
    #[must_use]
    pub fn is_async(&self, span: SpanId) -> bool {
        self.asynchronous.get(span.index()).copied().unwrap_or(false)
    }

    /// The scope of a span, where it was recorded.
    pub(super) fn recorded_scope(&self, span: SpanId) -> Option<RecordScope> {
        self.scopes.get(span.index()).copied().flatten()
    }

    /// The table name of a span that is not ignored. Overloads are split off operators only.
    #[must_use]
    pub fn name(&self, trace: &Trace, span: SpanId) -> Name {
        let name = trace.spans().name(span);
        let index = self.name_of.get(name.index()).copied().unwrap_or(0);
        let name = self.distinct.get((index as usize).wrapping_sub(1)).copied();
        name.unwrap_or(Name { key: StringId(0), overload: StringId(0) })
    }

    fn add_name(&mut self, trace: &Trace, name: StringId) {
        let Some(index) = self.name_of.get_mut(name.index()) else { return };
        if *index == 0 {
            let (key, overload) = shown(trace.str(name));
            self.distinct.push(Name { key: self.names.intern(key), overload: self.names.intern(overload) });
            *index = self.distinct.len() as u32;
        }
    }
}

/// A name as tables show it, and the overload that was recorded with it.
fn shown(name: &str) -> (&str, &str) {
    if name.starts_with("ProfilerStep#") {
        return ("ProfilerStep*", "");
    }
    split_overload(name).unwrap_or((name, ""))
}

/// `aten::add.Tensor` is overload `Tensor` of `aten::add`. Other names with dots stay whole.
fn split_overload(name: &str) -> Option<(&str, &str)> {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (namespace, rest) = name.split_once("::")?;
    let (operator, overload) = rest.split_once('.')?;
    (is_word(namespace) && is_word(operator) && is_word(overload)).then(|| {
        let end = name.len() - overload.len() - 1;
        (&name[..end], overload)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overloads_are_split_off_operators_only() {
        assert_eq!(shown("aten::add.Tensor"), ("aten::add", "Tensor"));
        assert_eq!(shown("aten::add_"), ("aten::add_", ""));
        assert_eq!(shown("Optimizer.step#SGD.step"), ("Optimizer.step#SGD.step", ""));
        assert_eq!(shown("void at::native::foo<1.5>(int)"), ("void at::native::foo<1.5>(int)", ""));
        assert_eq!(shown("ProfilerStep#12"), ("ProfilerStep*", ""));
    }
}
