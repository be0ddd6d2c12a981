//! What events carry, as typed columns. The names of the keys are in [`hotspan_store::keys`], and nowhere else: what would be
//! `trace.arg("correlation").int(trace.spans().args(span))` is `model.correlation().of(span)` here.

use hotspan_store::keys;
use hotspan_store::{ArgReader, Args, SpanId, Spans, StringId, Trace};

use super::Model;

/// Whole numbers by event.
#[derive(Debug)]
pub struct Numbers<'m>(Column<'m>);

/// Fractions by event.
#[derive(Debug)]
pub struct Fractions<'m>(Column<'m>);

/// Texts by event.
#[derive(Debug)]
pub struct Texts<'m>(Column<'m>);

#[derive(Debug)]
struct Column<'m> {
    trace: &'m Trace,
    spans: &'m Spans,
    reader: ArgReader<'m>,
    /// The same under the name that earlier versions gave it.
    old: Option<ArgReader<'m>>,
}

impl<'m> Column<'m> {
    fn new(model: &'m Model, key: &'m str, old: Option<&'m str>) -> Self {
        let old = old.map(|key| model.arg(key)).filter(ArgReader::occurs);
        let trace: &Trace = model.trace();
        Self { trace, spans: trace.spans(), reader: trace.arg(key), old }
    }

    fn occurs(&self) -> bool {
        self.reader.occurs() || self.old.is_some()
    }

    #[inline]
    fn find<T>(&self, get: impl Fn(&ArgReader<'m>) -> Option<T>) -> Option<T> {
        get(&self.reader).or_else(|| self.old.as_ref().and_then(get))
    }

    #[inline]
    fn args(&self, span: SpanId) -> Args {
        self.spans.args(span)
    }
}

impl Numbers<'_> {
    /// The number of a span.
    #[must_use]
    #[inline]
    pub fn of(&self, span: SpanId) -> Option<i64> {
        self.at(self.0.args(span))
    }

    /// The number of any event, by its args.
    #[must_use]
    #[inline]
    pub fn at(&self, args: Args) -> Option<i64> {
        self.0.find(|reader| reader.int(args))
    }

    /// Whether any event may have one.
    #[must_use]
    pub fn occurs(&self) -> bool {
        self.0.occurs()
    }
}

impl Fractions<'_> {
    /// The number of a span.
    #[must_use]
    #[inline]
    pub fn of(&self, span: SpanId) -> Option<f64> {
        self.0.find(|reader| reader.float(self.0.args(span)))
    }
}

impl<'m> Texts<'m> {
    /// The text of a span; that of a list or a number as JSON.
    #[must_use]
    pub fn of(&self, span: SpanId) -> Option<&'m str> {
        self.at(self.0.args(span))
    }

    /// The text of any event, by its args.
    #[must_use]
    pub fn at(&self, args: Args) -> Option<&'m str> {
        self.id(args).map(|id| self.0.trace.str(id))
    }

    /// The interned text of any event: equal ids are equal texts.
    #[must_use]
    pub fn id(&self, args: Args) -> Option<StringId> {
        self.0.find(|reader| reader.text_id(args))
    }

    /// The text of a span, whatever type the file gave it.
    #[must_use]
    pub fn any(&self, span: SpanId) -> Option<String> {
        match self.0.find(|reader| reader.json(self.0.args(span)))? {
            serde_json::Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }

    /// The JSON of a span.
    pub(super) fn json(&self, span: SpanId) -> Option<serde_json::Value> {
        self.0.find(|reader| reader.json(self.0.args(span)))
    }

    /// Whether any event may have one.
    #[must_use]
    pub fn occurs(&self) -> bool {
        self.0.occurs()
    }
}

/// Declares columns: what each is called, its type, its key, and the key of earlier versions where that was another.
macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident: $kind:ident = $key:ident $(, $old:ident)?;)*) => {
        impl Model {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $column(&self) -> $kind<'_> {
                    let old: Option<&str> = None$(.or(Some(keys::$old)))?;
                    $kind(Column::new(self, keys::$key, old))
                }
            )*
        }
    };
}

columns! {
    /// The number of an operator; of device work, that of the operator that launched it.
    external_id: Numbers = EXTERNAL_ID, OLD_EXTERNAL_ID;
    /// Joins a runtime call and the device work that it launched.
    correlation: Numbers = CORRELATION;
    /// Joins a forward operator and its node of the backward pass.
    sequence: Numbers = SEQUENCE_NUMBER;
    /// The thread of the forward operator, by torch's count.
    forward_thread: Numbers = FORWARD_THREAD;
    /// Whether a range ended on another thread, or by a future.
    asynchronous: Numbers = ASYNC;
    /// torch's `RecordScope`, where it was recorded.
    recorded_scope: Numbers = SCOPE;
    /// The shapes of inputs, as JSON.
    input_dims: Texts = INPUT_DIMS;
    /// The types of inputs, as JSON.
    input_types: Texts = INPUT_TYPES, OLD_INPUT_TYPES;
    /// The values of inputs that are no tensors, as JSON.
    input_values: Texts = CONCRETE_INPUTS;
    /// The recorded Python stack, innermost entry first, joined by `;`.
    call_stack: Texts = CALL_STACK;
    /// The file and line that a Python function was called from.
    called_from: Texts = CALLED_FROM;
    /// The `nn.Module`s around an operator of TorchScript.
    module_hierarchy: Texts = MODULE_HIERARCHY;
    /// The ordinal of a device.
    device_index: Numbers = DEVICE;
    /// The bytes of a copy.
    copy_bytes: Numbers = COPY_BYTES;
    /// Blocks of a kernel per multiprocessor.
    blocks_per_sm: Fractions = BLOCKS_PER_SM;
    /// The achieved occupancy of a kernel, estimated, in percent.
    occupancy: Fractions = OCCUPANCY;
    /// Bytes of an allocation; negative for a release.
    allocated_bytes: Numbers = BYTES;
    /// Bytes that the allocator has handed out in all, after an allocation or a release.
    total_allocated: Numbers = TOTAL_ALLOCATED;
    /// The address of an allocation.
    address: Numbers = ADDRESS;
    /// torch's `DeviceType` of an allocation.
    device_type: Numbers = DEVICE_TYPE;
    /// The ordinal of an allocation's device.
    device_id: Numbers = DEVICE_ID;
    /// What a tensor is to the program.
    tensor_role: Texts = TENSOR_ROLE;
    /// Whether a call of a model begins or ends.
    forward_phase: Texts = FORWARD_PHASE;
    /// Resident bytes of a process.
    resident_bytes: Numbers = RESIDENT_BYTES, OLD_RESIDENT_BYTES;
    /// The process group of a collective.
    process_group: Texts = PROCESS_GROUP;
    /// What a collective does.
    collective: Texts = COLLECTIVE;
    /// The number of a collective in its group.
    collective_sequence: Numbers = COLLECTIVE_SEQUENCE;
    /// How many elements a collective takes in.
    collective_elements: Numbers = COLLECTIVE_ELEMENTS;
    /// The type of a collective's elements.
    collective_type: Texts = COLLECTIVE_TYPE;
    /// How many ranks a process group has.
    group_size: Numbers = GROUP_SIZE;
}
