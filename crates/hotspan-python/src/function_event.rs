//! `FunctionEvent`: one event, with torch's attribute names. Times are in microseconds, as torch gives them.

mod arguments;
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
use pyo3::types::PyDict;

use crate::function_events::AllEvents;
use crate::getters::getters;
pub(crate) use parts::{PyEventKernel, PyInterval};

/// One event, with torch's attribute names.
#[pyclass(frozen, name = "FunctionEvent", module = "hotspan._core")]
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
        /// The thread of the forward operator of a node of the backward pass, by torch's number; 0 for none.
        fwd_thread: i64 = |event| event.int(keys::FORWARD_THREAD).unwrap_or(0);
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
        match self.of_span(|events, span| events.scope(self.model(), span)) {
            RecordScope::Function => 0,
            RecordScope::Backward => 1,
            RecordScope::User => 7,
        }
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

    /// The values of its inputs that are no tensors, as the trace writes them.
    #[getter]
    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, keys::CONCRETE_INPUTS)
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

    /// Where it happened: torch's `DeviceType` where torch is loaded, else its name.
    #[getter]
    fn device_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kind = self.device_kind();
        let name = if kind == DeviceKind::PrivateUse1 { "PrivateUse1" } else { kind.title() };
        let modules = py.import("sys")?.getattr("modules")?;
        let torch = modules.call_method1("get", ("torch.profiler",))?;
        if !torch.is_none() && torch.hasattr("DeviceType")? {
            return torch.getattr("DeviceType")?.getattr(name);
        }
        Ok(name.into_pyobject(py)?.into_any())
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
