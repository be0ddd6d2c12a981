//! `FunctionEvents`: torch's `events()` as Python sees it, a sequence that makes each event when it is asked for.

use std::sync::{Arc, OnceLock};

use hotspan_analyze::{FunctionEvents, Model};
use pyo3::prelude::*;

use crate::events::position;
use crate::function_event::{EventFlows, PyFunctionEvent};

/// A trace and its events.
pub(crate) struct AllEvents {
    pub(crate) model: Arc<Model>,
    pub(crate) events: FunctionEvents,
    flows: OnceLock<EventFlows>,
}

impl AllEvents {
    pub(crate) fn new(model: Arc<Model>, events: FunctionEvents) -> Self {
        Self { model, events, flows: OnceLock::new() }
    }

    pub(crate) fn flows(&self) -> &EventFlows {
        self.flows.get_or_init(|| EventFlows::of(&self.model))
    }
}

/// All events in order of time: a sequence that makes its items on demand.
#[pyclass(frozen, name = "FunctionEvents", module = "hotspan._core", sequence)]
pub(crate) struct PyFunctionEvents {
    pub(crate) all: Arc<AllEvents>,
}

#[pymethods]
impl PyFunctionEvents {
    fn __len__(&self) -> usize {
        self.all.events.list().len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<PyFunctionEvent> {
        let list = self.all.events.list();
        let event = list[position(index, list.len())?];
        Ok(PyFunctionEvent { all: Arc::clone(&self.all), event })
    }
}
