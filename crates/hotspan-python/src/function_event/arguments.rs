//! The args of an event as Python objects.

use hotspan_analyze::events::Role;
use hotspan_store::Place;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyFunctionEvent;

/// Args that have attributes of their own; others are keyword inputs of a range.
const ATTRIBUTE_ARGS: [&str; 11] = [
    "External id",
    "Record function id",
    "Sequence number",
    "Fwd thread id",
    "Concrete Inputs",
    "Input type",
    "Input Strides",
    "Input Dims",
    "Ev Idx",
    "Async",
    "Call stack",
];

impl PyFunctionEvent {
    pub(super) fn json_object<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.span_args().and_then(|args| self.trace().arg(key).json(args));
        let text = value.map_or_else(|| "[]".to_owned(), |value| value.to_string());
        py.import("json")?.call_method1("loads", (text,))
    }

    pub(super) fn all_args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        let Some(args) = self.span_args() else { return Ok(found) };
        let json = py.import("json")?;
        for (key, value) in self.trace().args(args).filter(|(key, _)| key.place != Place::Packed) {
            let resolved = value.resolve(self.trace().strings());
            let object = json.call_method1("loads", (resolved.to_json().to_string(),))?;
            found.set_item(self.trace().str(key.name), object)?;
        }
        Ok(found)
    }

    pub(super) fn keyword_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let args = self.all_args(py)?;
        for key in ATTRIBUTE_ARGS {
            if args.contains(key)? {
                args.del_item(key)?;
            }
        }
        if self.role() != Some(Role::Annotation) {
            args.clear();
        }
        Ok(args)
    }
}
