//! `Agent`: what records a whole program from inside, as Python sees it.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use hotspan_collect::agent::{self, Agent, Operators};
use hotspan_collect::torch::{Options, Session, Shim, TorchInstall};
use pyo3::prelude::*;

use crate::error::{CollectError, from_collect};

/// The agent of this process.
#[pyclass(frozen, name = "Agent", module = "hotspan._core")]
pub(crate) struct PyAgent {
    agent: Mutex<Option<Agent>>,
}

impl PyAgent {
    fn take(&self) -> Option<Agent> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner).take()
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
        Ok(Self { agent: Mutex::new(Some(agent)) })
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

    /// Ends the recording. What could not be written is said on stderr: the program has ended or goes on.
    fn finish(&self, py: Python<'_>) {
        let Some(agent) = self.take() else { return };
        if let Err(error) = py.detach(|| agent.finish()) {
            agent::say(&format!("the recording is not complete: {error}"));
        }
    }

    /// Forgets the agent in a forked child, where it does not run.
    fn forget(&self) {
        if let Some(agent) = self.take() {
            agent.forget();
        }
    }
}
