//! `FunctionEvent`: one event, with torch's attribute names. Times are in microseconds, as torch gives them.

mod arguments;
pub(crate) mod concrete;
mod flows;
mod lookup;
mod parts;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hotspan::torch_table::time_text;
use hotspan_analyze::FunctionEvent;
use hotspan_analyze::averages::{DeviceKind, RecordScope};
use hotspan_analyze::model::events::Role;
use hotspan_store::{Ident, SpanId, keys};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::function_events::AllEvents;
use crate::getters::getters;
use crate::json::from_python;
pub(crate) use flows::EventFlows;
pub(crate) use parts::{PyEventKernel, PyInterval};

/// One event, with torch's attribute names.
#[pyclass(frozen, dict, name = "FunctionEvent", module = "hotspan._core")]
pub(crate) struct PyFunctionEvent {
    pub(crate) all: Arc<AllEvents>,
    pub(crate) event: FunctionEvent,
}

getters! {
    PyFunctionEvent {
        /// The number that the trace gives it; 0 without one.
        id: i64 = |event| event.int(keys::EXTERNAL_ID).or_else(|| event.int(keys::CORRELATION)).unwrap_or(0);
        /// The name.
        key: &str = |event| event.name();
        /// The name as the trace has it: steps with their numbers.
        trace_name: &str = |event|
            event.span().map_or_else(|| event.name(), |span| event.model().span_name(span));
        /// The operator's overload, where it was recorded.
        overload_name: &str = |event|
            event.span().map_or("", |span| event.all.events.name(event.model(), span).1);
        /// Nanoseconds from the start of the trace to its beginning.
        start_ns: i64 = |event| event.begin().0;
        /// How many nanoseconds it took.
        duration_ns: i64 = |event| event.span().map_or(0, |span| event.model().spans().duration(span).0);
        /// Its category, as torch calls it.
        activity_type: &str = |event| event.category();
        /// The thread of the forward operator of a node of the backward pass, numbered like `thread`; 0 for none.
        fwd_thread: i64 = |event|
            event.int(keys::FORWARD_THREAD).filter(|&number| number != 0).map_or(0, |number| event.all.flows().thread(number));
        /// autograd's number, which forward operators share with their nodes of the backward pass; -1 for none.
        sequence_nr: i64 = |event| event.int(keys::SEQUENCE_NUMBER).unwrap_or(-1);
        /// The event that called it.
        cpu_parent: Option<PyFunctionEvent> = |event|
            event.span().and_then(|span| event.model().merged_nesting().parent(span)).map(|parent| event.other(parent));
        /// How many events it stands for.
        count: u64 = |_| 1;
        /// Where in the Python program it was called, innermost first.
        stack: Vec<String> = |event| event.of_span(|events, span| events.stack(event.model(), span).to_vec());
        /// Floating point operations, from formulas.
        flops: u64 = |event| event.of_span(|_, span| event.model().flops().of_span(span));
        /// Whether it began and ended on different threads, or says so.
        is_async: bool = |event| event.of_span(|_, span| event.model().events().is_async(span));
        /// Whether a person marked it.
        is_user_annotation: bool = |event| event.role().is_some_and(Role::is_annotation);
        /// Whether it is a Python function.
        is_python_function: bool = |event| event.role() == Some(Role::Python);
        /// Never: torch's older recorders are gone.
        is_legacy: bool = |_| false;
        /// Never.
        is_remote: bool = |_| false;
        /// None.
        node_id: i64 = |_| -1;
        external_id: i64 = |event| event.int(keys::EXTERNAL_ID).unwrap_or(0);
        /// Of device work and calls of its runtime, the number of the operator that they are for; 0 for others.
        linked_correlation_id: i64 = |event|
            event.int(keys::CORRELATION).and_then(|_| event.int(keys::EXTERNAL_ID)).unwrap_or(0);
        /// The number of the flow that begins or ends here; 0 for none.
        flow_id: i64 = |event| event.flow().map_or(0, |flow| flow.id);
        /// What kind of flow: 1 from a forward operator to its node, 2 from a launch to device work; 0 for none.
        flow_type: i64 = |event| event.flow().map_or(0, |flow| flow.kind);
        /// Whether the flow begins here.
        flow_start: bool = |event| event.flow().is_some_and(|flow| flow.is_start);
        /// The number of a call of a Python function; -1 for others.
        python_id: i64 = |event| event.int(keys::PYTHON_ID).unwrap_or(-1);
        /// The number of the call that it was called from; -1 for none.
        python_parent_id: i64 = |event| event.int(keys::PYTHON_PARENT_ID).unwrap_or(-1);
        /// The number of the module that was called; -1 for none.
        python_module_id: i64 = |event| event.int(keys::PYTHON_MODULE_ID).unwrap_or(-1);
        /// The kind of device that was recorded beside the CPU, as torch spells it.
        use_device: Option<String> = |event| DeviceKind::of(event.model()).map(|kind| kind.title().to_lowercase());
        cuda_time: f64 = |event| event.device().as_micros();
        cuda_time_total: f64 = |event| event.device().as_micros();
        self_cuda_time_total: f64 = |event| event.self_device().as_micros();
        cuda_memory_usage: i64 = |event| event.used().device.0;
        self_cuda_memory_usage: i64 = |event| event.own_use().device.0;
        cpu_time_total: f64 = |event| event.cpu().as_micros();
        cpu_time: f64 = |event| event.cpu().as_micros();
        self_cpu_time_total: f64 = |event| event.self_cpu().as_micros();
        device_time_total: f64 = |event| event.device().as_micros();
        device_time: f64 = |event| event.device().as_micros();
        self_device_time_total: f64 = |event| event.self_device().as_micros();
        cpu_time_total_str: String = |event| time_text(event.cpu());
        cpu_time_str: String = |event| time_text(event.cpu());
        self_cpu_time_total_str: String = |event| time_text(event.self_cpu());
        device_time_total_str: String = |event| time_text(event.device());
        device_time_str: String = |event| time_text(event.device());
        self_device_time_total_str: String = |event| time_text(event.self_device());
        cpu_memory_usage: i64 = |event| event.used().cpu.0;
        device_memory_usage: i64 = |event| event.used().device.0;
        self_cpu_memory_usage: i64 = |event| event.own_use().cpu.0;
        self_device_memory_usage: i64 = |event| event.own_use().device.0;
    }

    /// Shares belong to tables: torch's own sets these three.
    #[classattr]
    fn self_cpu_percent() -> i64 {
        -1
    }

    #[classattr]
    fn total_cpu_percent() -> i64 {
        -1
    }

    #[classattr]
    fn total_device_percent() -> i64 {
        -1
    }

    /// The name, which is also the key of its row in `key_averages()`.
    #[getter]
    fn name(&self) -> &str {
        match self.event {
            FunctionEvent::Span(span) => self.all.events.name(self.model(), span).0,
            FunctionEvent::Memory { is_failure: true, .. } => "[OutOfMemory]",
            FunctionEvent::Memory { .. } => "[memory]",
        }
    }

    /// When, in microseconds from the start of the trace.
    #[getter]
    fn time_range(&self) -> PyInterval {
        let start = self.begin();
        let end = self.span().map_or(start, |span| self.model().spans().end(span));
        PyInterval { start: start.0 as f64 / 1e3, end: end.0 as f64 / 1e3 }
    }

    /// Its category as the trace spells it.
    #[getter]
    fn category(&self) -> &str {
        let trace = self.model();
        self.span().map_or("cpu_instant_event", |span| trace.category_name(trace.spans().category(span)))
    }

    /// Its thread by the system's number, or its stream.
    #[getter]
    fn thread(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ident = self.model().track(self.track()).ident;
        Ok(match ident {
            Ident::Int(number) => number.into_pyobject(py)?.into_any().unbind(),
            Ident::Text(_) => ident.display(self.model().strings()).into_pyobject(py)?.into_any().unbind(),
        })
    }

    /// Its thread or stream, as torch calls it for devices.
    #[getter]
    fn device_resource_id(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.thread(py)
    }

    /// Where it comes from: 0 an operator, 1 a node of the backward pass, 7 a range that a person marked.
    #[getter]
    fn scope(&self) -> u8 {
        scope_number(self.of_span(|events, span| events.scope(self.model(), span)))
    }

    /// The events that it called.
    #[getter]
    fn cpu_children(&self) -> Vec<Self> {
        let children = self.span().map_or(&[][..], |span| self.model().merged_children().of_span(span));
        children.iter().map(|&child| self.other(child)).collect()
    }

    /// Device work that it launched itself.
    #[getter]
    fn kernels(&self) -> Vec<PyEventKernel> {
        let device = self.model().device_index();
        let kernel = |kernel: SpanId| PyEventKernel {
            name: self.model().span_name(kernel).to_owned(),
            device: device.of(kernel).unwrap_or(0),
            duration: self.model().spans().duration(kernel).as_micros(),
        };
        self.span().map_or(Vec::new(), |span| self.all.events.kernels(span).map(kernel).collect())
    }

    /// The shapes of its inputs, empty for those that are no tensor.
    #[getter]
    fn input_shapes(&self) -> Vec<Vec<i64>> {
        self.of_span(|_, span| self.model().shapes().of_span(span).clone())
    }

    /// The shapes of its inputs, with those of each tensor of a list.
    #[getter]
    fn structured_input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, keys::INPUT_DIMS)
    }

    /// The strides of its inputs likewise.
    #[getter]
    fn structured_input_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, keys::INPUT_STRIDES)
    }

    /// The types of its inputs.
    #[getter]
    fn input_dtypes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, keys::INPUT_TYPES)
    }

    /// The values of its inputs, `None` for tensors and what else has no value here.
    #[getter]
    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let texts = self.json_object(py, keys::CONCRETE_INPUTS)?;
        let values = texts.try_iter()?.map(|text| concrete::value(&text?)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, values)?.into_any())
    }

    /// Inputs of a range by name.
    #[getter]
    fn kwinputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.keyword_inputs(py)
    }

    /// Everything that the trace says beside times and names.
    #[getter]
    fn args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.all_args(py)
    }

    /// Everything that the trace says beside times and names; `None` where that is nothing, as torch has it.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let args = self.all_args(py)?;
        Ok((!args.is_empty()).then_some(args))
    }

    /// The same as JSON without braces, as torch has it.
    #[getter]
    fn metadata_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let json = from_python(self.all_args(py)?.as_any())?.to_string();
        Ok(PyString::new(py, json.get(1..json.len() - 1).unwrap_or_default()))
    }

    /// What torch knows of device work by name, where torch is loaded; deprecated there.
    #[getter]
    fn event_metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(builder) = loaded(py, "torch.autograd.profiler_util", "_build_metadata")? else {
            return Ok(py.None().into_bound(py));
        };
        let texts = PyDict::new(py);
        for (key, value) in self.all_args(py)?.iter() {
            let is_text = value.is_instance_of::<PyString>();
            texts.set_item(key, if is_text { value } else { PyString::new(py, &from_python(&value)?.to_string()).into_any() })?;
        }
        builder.call1((texts,))
    }

    /// Where it happened: torch's `DeviceType` where torch is loaded, else its name.
    #[getter]
    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        device_type(py, self.device_kind())
    }

    /// The index of its device; of what happens on the CPU, the number of the process, as in torch.
    #[getter]
    fn device_index(&self) -> i64 {
        let process = self.model().track(self.track()).process;
        self.int(keys::DEVICE).unwrap_or(match self.model().process(process).ident {
            Ident::Int(number) => number,
            Ident::Text(_) => 0,
        })
    }

    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all.model, &other.all.model) && self.event == other.event
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.start_ns(), self.span()).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!(
            "<FunctionEvent name={} cpu_time={} start_us={:.3} cpu_children={}>",
            self.name(),
            self.cpu_time_str(),
            self.begin().0 as f64 / 1e3,
            self.of_span(|_, span| self.model().merged_children().of_span(span).len())
        )
    }
}

/// torch's number of a scope.
pub(crate) fn scope_number(scope: RecordScope) -> u8 {
    match scope {
        RecordScope::Function => 0,
        RecordScope::Backward => 1,
        RecordScope::User => 7,
    }
}

/// A kind of device as torch's `DeviceType` where torch is loaded, else its name.
pub(crate) fn device_type(py: Python<'_>, kind: DeviceKind) -> PyResult<Bound<'_, PyAny>> {
    let name = if kind == DeviceKind::PrivateUse1 { "PrivateUse1" } else { kind.title() };
    match loaded(py, "torch.profiler", "DeviceType")? {
        Some(kinds) => kinds.getattr(name),
        None => Ok(name.into_pyobject(py)?.into_any()),
    }
}

/// What a module that is loaded has under a name. Nothing is imported for it.
fn loaded<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.call_method1("get", (module,))?;
    if module.is_none() { Ok(None) } else { module.getattr_opt(name) }
}
