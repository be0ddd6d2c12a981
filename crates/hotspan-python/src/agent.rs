//! `Agent`: what records a whole program from inside, as Python sees it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hotspan_collect::agent::{self, Agent, Operators, Samples};
use hotspan_collect::native::{self, Rate, Recorder};
use hotspan_collect::torch::{Options, Session, Shim, TorchInstall};
use pyo3::prelude::*;

use crate::error::{CollectError, from_collect, from_sample};
use crate::native::GarbagePauses;

/// The agent of this process.
#[pyclass(frozen, name = "Agent", module = "hotspan._core")]
pub(crate) struct PyAgent {
    agent: Mutex<Option<Agent>>,
    pauses: Mutex<Option<Py<GarbagePauses>>>,
}

impl PyAgent {
    fn take(&self) -> Option<Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn unwatch(&self, py: Python<'_>) {
        let pauses = self.pauses.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pauses) = pauses {
            // While the interpreter ends there may be no such list any more.
            let _ = GarbagePauses::unwatch(py, &pauses);
        }
    }
}

#[pymethods]
impl PyAgent {
    /// Begins to record this process into a new file of a folder.
    #[staticmethod]
    fn start(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let agent = py
            .detach(|| Agent::start(&folder))
            .map_err(|error| CollectError::new_err(format!("{}: {error}", folder.display())))?;
        Ok(Self { agent: Mutex::new(Some(agent)), pauses: Mutex::new(None) })
    }

    /// Says something about the recording, as JSON.
    fn set_metadata(&self, key: &str, json: &str) {
        if let Some(agent) = &*self.agent.lock().unwrap_or_else(PoisonError::into_inner) {
            agent.set_metadata(key, json);
        }
    }

    /// Records the operators of the torch whose Python package is that folder.
    #[pyo3(signature = (torch_root, shapes, memory))]
    fn record_operators(
        &self,
        py: Python<'_>,
        torch_root: PathBuf,
        shapes: bool,
        memory: bool,
    ) -> PyResult<()> {
        let options = Options { shapes, memory, ..Options::default() };
        let started = py.detach(|| Session::start(&Shim::load(&TorchInstall::at(&torch_root)?)?, options));
        let session = started.map_err(|error| from_collect(&error))?;
        if let Some(agent) = &*self.agent.lock().unwrap_or_else(PoisonError::into_inner) {
            agent.add(Box::new(Operators::new(session)));
        }
        Ok(())
    }

    /// Samples all threads, and watches the garbage collector.
    fn record_samples(&self, py: Python<'_>, rate: u32, native: bool) -> PyResult<()> {
        let started =
            py.detach(|| Recorder::start(native::Options { rate: Rate::new(rate)?, native, waiting: true }));
        let recorder = Arc::new(Mutex::new(Some(started.map_err(|error| from_sample(&error))?)));
        let pauses = GarbagePauses::watch(py, Arc::clone(&recorder))?;
        *self.pauses.lock().unwrap_or_else(PoisonError::into_inner) = Some(pauses);
        if let Some(agent) = &*self.agent.lock().unwrap_or_else(PoisonError::into_inner) {
            agent.add(Box::new(Samples::new(recorder)));
        }
        Ok(())
    }

    /// Ends the recording. What could not be written is said on stderr: the program has ended or goes on.
    fn finish(&self, py: Python<'_>) {
        self.unwatch(py);
        let Some(agent) = self.take() else { return };
        if let Err(error) = py.detach(|| agent.finish()) {
            agent::say(&format!("the recording is not complete: {error}"));
        }
    }

    /// Forgets the agent in a forked child, where it does not run.
    fn forget(&self, py: Python<'_>) {
        self.unwatch(py);
        if let Some(agent) = self.take() {
            agent.forget();
        }
    }
}
