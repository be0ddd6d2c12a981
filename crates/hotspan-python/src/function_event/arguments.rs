//! The args of an event as Python objects.

use hotspan_analyze::model::events::Role;
use hotspan_store::keys;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::PyFunctionEvent;
use crate::events::all_args;
use crate::json::to_python;

/// Args that have attributes of their own; others are keyword inputs of a range.
const ATTRIBUTE_ARGS: [&str; 12] = [
    keys::EXTERNAL_ID,
    keys::RECORD_FUNCTION_ID,
    keys::SEQUENCE_NUMBER,
    keys::FORWARD_THREAD,
    keys::CONCRETE_INPUTS,
    keys::INPUT_TYPES,
    keys::INPUT_STRIDES,
    keys::INPUT_DIMS,
    keys::EVENT_INDEX,
    keys::ASYNC,
    keys::SCOPE,
    keys::CALL_STACK,
];

impl PyFunctionEvent {
    pub(super) fn json_object<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.span_args().and_then(|args| self.model().arg(key).json(args)) {
            Some(value) => Ok(to_python(py, &value)?.into_bound(py)),
            None => Ok(PyList::empty(py).into_any()),
        }
    }

    pub(super) fn all_args<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.span_args().map_or_else(|| Ok(PyDict::new(py)), |args| all_args(py, self.model(), args))
    }

    pub(super) fn keyword_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let args = self.all_args(py)?;
        for key in ATTRIBUTE_ARGS {
            if args.contains(key)? {
                args.del_item(key)?;
            }
        }
        // Operators of torch have no others; `_RecordFunctionFast` makes ranges that count as operators.
        let is_range = self.role() == Some(Role::Annotation)
            || (self.role() == Some(Role::Operator)
                && !self.name().contains("::")
                && self.name() != "record_param_comms");
        if !is_range {
            args.clear();
        }
        Ok(args)
    }
}
