//! `FunctionEvent`: one event, with torch's attribute names. Times are in microseconds, as torch gives them.

mod arguments;
mod lookup;
mod parts;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hotspan::torch_table::time_text;
use hotspan_analyze::averages::{DeviceKind, RecordScope};
use hotspan_analyze::events::Role;
use hotspan_analyze::flops::shapes::shapes_of_json;
use hotspan_analyze::{FunctionEvent, FunctionEvents};
use hotspan_store::{Ident, SpanId};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::function_events::AllEvents;
pub(crate) use parts::{PyEventKernel, PyInterval};

/// One event, with torch's attribute names.
#[pyclass(frozen, name = "FunctionEvent", module = "hotspan._core")]
pub(crate) struct PyFunctionEvent {
    pub(crate) all: Arc<AllEvents>,
    pub(crate) event: FunctionEvent,
}

#[pymethods]
impl PyFunctionEvent {
    /// The number that the trace gives it; 0 without one.
    #[getter]
    fn id(&self) -> i64 {
        self.int("External id").or_else(|| self.int("correlation")).unwrap_or(0)
    }

    /// The name, which is also the key of its row in `key_averages()`.
    #[getter]
    fn name(&self) -> &str {
        match self.event {
            FunctionEvent::Span(span) => self.all.events.name(self.trace(), span).0,
            FunctionEvent::Memory { is_failure: true, .. } => "[OutOfMemory]",
            FunctionEvent::Memory { .. } => "[memory]",
        }
    }

    /// The name.
    #[getter]
    fn key(&self) -> &str {
        self.name()
    }

    /// The name as the trace has it: steps with their numbers.
    #[getter]
    fn trace_name(&self) -> &str {
        self.span().map_or_else(|| self.name(), |span| self.trace().span_name(span))
    }

    /// The operator's overload, where it was recorded.
    #[getter]
    fn overload_name(&self) -> &str {
        self.span().map_or("", |span| self.all.events.name(self.trace(), span).1)
    }

    /// When, in microseconds from the start of the trace.
    #[getter]
    fn time_range(&self) -> PyInterval {
        let start = self.begin();
        let end = self.span().map_or(start, |span| self.trace().spans().end(span));
        PyInterval { start: start.0 as f64 / 1e3, end: end.0 as f64 / 1e3 }
    }

    /// Nanoseconds from the start of the trace to its beginning.
    #[getter]
    fn start_ns(&self) -> i64 {
        self.begin().0
    }

    /// How many nanoseconds it took.
    #[getter]
    fn duration_ns(&self) -> i64 {
        self.span().map_or(0, |span| self.trace().spans().duration(span).0)
    }

    /// Its category as the trace spells it.
    #[getter]
    fn category(&self) -> &str {
        let trace = self.trace();
        self.span().map_or("cpu_instant_event", |span| trace.category_name(trace.spans().category(span)))
    }

    /// The same, as torch calls it.
    #[getter]
    fn activity_type(&self) -> &str {
        self.category()
    }

    /// Its thread by the system's number, or its stream.
    #[getter]
    fn thread(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ident = self.trace().track(self.track()).ident;
        Ok(match ident {
            Ident::Int(number) => number.into_pyobject(py)?.into_any().unbind(),
            Ident::Text(_) => ident.display(self.trace().strings()).into_pyobject(py)?.into_any().unbind(),
        })
    }

    /// The same, as torch calls it for devices.
    #[getter]
    fn device_resource_id(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.thread(py)
    }

    /// The thread of the forward operator of a node of the backward pass, by torch's number; 0 for none.
    #[getter]
    fn fwd_thread(&self) -> i64 {
        self.int("Fwd thread id").unwrap_or(0)
    }

    /// autograd's number, which forward operators share with their nodes of the backward pass; -1 for none.
    #[getter]
    fn sequence_nr(&self) -> i64 {
        self.int("Sequence number").unwrap_or(-1)
    }

    /// Where it comes from: 0 an operator, 1 a node of the backward pass, 7 a range that a person marked.
    #[getter]
    fn scope(&self) -> u8 {
        match self.of_span(|events, span| events.scope(self.trace(), span)) {
            RecordScope::Function => 0,
            RecordScope::Backward => 1,
            RecordScope::User => 7,
        }
    }

    /// The event that called it.
    #[getter]
    fn cpu_parent(&self) -> Option<Self> {
        self.span().and_then(|span| self.all.events.parent(span)).map(|parent| self.other(parent))
    }

    /// The events that it called.
    #[getter]
    fn cpu_children(&self) -> Vec<Self> {
        let children = self.span().map_or(&[][..], |span| self.all.events.children(span));
        children.iter().map(|&child| self.other(child)).collect()
    }

    /// Device work that it launched itself.
    #[getter]
    fn kernels(&self) -> Vec<PyEventKernel> {
        let device = self.trace().arg("device");
        let kernel = |kernel: SpanId| PyEventKernel {
            name: self.trace().span_name(kernel).to_owned(),
            device: device.int(self.trace().spans().args(kernel)).unwrap_or(0),
            duration: self.trace().spans().duration(kernel).as_micros(),
        };
        self.span().map_or(Vec::new(), |span| self.all.events.kernels(span).map(kernel).collect())
    }

    /// How many events it stands for.
    #[getter]
    fn count(&self) -> u64 {
        1
    }

    /// The shapes of its inputs, empty for those that are no tensor.
    #[getter]
    fn input_shapes(&self) -> Vec<Vec<i64>> {
        let value = self.span_args().and_then(|args| self.trace().arg("Input Dims").json(args));
        value.map_or(Vec::new(), |json| shapes_of_json(&json))
    }

    /// The same, with the shapes of each tensor of a list.
    #[getter]
    fn structured_input_shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, "Input Dims")
    }

    /// The strides of its inputs likewise.
    #[getter]
    fn structured_input_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, "Input Strides")
    }

    /// The types of its inputs.
    #[getter]
    fn input_dtypes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, "Input type")
    }

    /// The values of its inputs that are no tensors, as the trace writes them.
    #[getter]
    fn concrete_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.json_object(py, "Concrete Inputs")
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

    /// Where in the Python program it was called, innermost first.
    #[getter]
    fn stack(&self) -> Vec<String> {
        self.of_span(|events, span| events.stack(self.trace(), span).to_vec())
    }

    /// Floating point operations, from formulas.
    #[getter]
    fn flops(&self) -> u64 {
        self.of_span(FunctionEvents::flops)
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
        let process = self.trace().track(self.track()).process;
        self.int("device").unwrap_or(match self.trace().process(process).ident {
            Ident::Int(number) => number,
            Ident::Text(_) => 0,
        })
    }

    /// Whether it began and ended on different threads, or says so.
    #[getter]
    fn is_async(&self) -> bool {
        self.int("Async") == Some(1)
    }

    /// Whether a person marked it.
    #[getter]
    fn is_user_annotation(&self) -> bool {
        self.role().is_some_and(Role::is_annotation)
    }

    /// Whether it is a Python function.
    #[getter]
    fn is_python_function(&self) -> bool {
        self.role() == Some(Role::Python)
    }

    /// Never: torch's older recorders are gone.
    #[getter]
    fn is_legacy(&self) -> bool {
        false
    }

    /// Never.
    #[getter]
    fn is_remote(&self) -> bool {
        false
    }

    /// None.
    #[getter]
    fn node_id(&self) -> i64 {
        -1
    }

    #[getter]
    fn external_id(&self) -> i64 {
        self.int("External id").unwrap_or(0)
    }

    #[getter]
    fn cpu_time_total(&self) -> f64 {
        self.cpu().as_micros()
    }

    #[getter]
    fn cpu_time(&self) -> f64 {
        self.cpu().as_micros()
    }

    #[getter]
    fn self_cpu_time_total(&self) -> f64 {
        self.self_cpu().as_micros()
    }

    #[getter]
    fn device_time_total(&self) -> f64 {
        self.device().as_micros()
    }

    #[getter]
    fn device_time(&self) -> f64 {
        self.device().as_micros()
    }

    #[getter]
    fn self_device_time_total(&self) -> f64 {
        self.self_device().as_micros()
    }

    #[getter]
    fn cpu_time_total_str(&self) -> String {
        time_text(self.cpu())
    }

    #[getter]
    fn cpu_time_str(&self) -> String {
        time_text(self.cpu())
    }

    #[getter]
    fn self_cpu_time_total_str(&self) -> String {
        time_text(self.self_cpu())
    }

    #[getter]
    fn device_time_total_str(&self) -> String {
        time_text(self.device())
    }

    #[getter]
    fn device_time_str(&self) -> String {
        time_text(self.device())
    }

    #[getter]
    fn self_device_time_total_str(&self) -> String {
        time_text(self.self_device())
    }

    #[getter]
    fn cpu_memory_usage(&self) -> i64 {
        self.used().cpu.0
    }

    #[getter]
    fn device_memory_usage(&self) -> i64 {
        self.used().device.0
    }

    #[getter]
    fn self_cpu_memory_usage(&self) -> i64 {
        self.own_use().cpu.0
    }

    #[getter]
    fn self_device_memory_usage(&self) -> i64 {
        self.own_use().device.0
    }

    fn __eq__(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all.trace, &other.all.trace) && self.event == other.event
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
            self.of_span(|events, span| events.children(span).len())
        )
    }
}
