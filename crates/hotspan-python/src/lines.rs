//! `LineRecorder`: the line collector as Python sees it.
//!
//! That the interpreter calls the collector is asked for by [`watch`] where there is `sys.monitoring`, by
//! [`trace_function`] before; [`reports`] shows what was recorded, [`from_rows`] takes what Python has measured itself.

mod forward;
pub(crate) mod from_rows;
pub(crate) mod reports;
mod trace_function;
mod turn;
mod watch;

use std::cell::{Cell, RefCell};
use std::sync::{Mutex, PoisonError};

use hotspan_collect::lines::{Function, LineRecorder, Measure, Object, check};
use pyo3::prelude::*;

use crate::error::CollectError;
use crate::trace::PyTrace;
use trace_function::{begin_tracing, end_tracing, marker};
use turn::in_turn;
use watch::{has_monitoring, unwatch, watch};

/// Whether and how often recording was asked for.
#[derive(Default)]
struct State {
    count: Cell<usize>,
    explicit: Cell<bool>,
    attached: Cell<bool>,
    /// The trace function for new threads that was set before ours.
    earlier_for_threads: RefCell<Option<Py<PyAny>>>,
    codes: RefCell<Vec<Py<PyAny>>>,
}

/// Records the lines of chosen functions.
#[pyclass(frozen, name = "LineRecorder", module = "hotspan._core")]
pub(crate) struct PyLineRecorder {
    collector: LineRecorder,
    state: Mutex<State>,
}

impl PyLineRecorder {
    fn state<T>(&self, act: impl FnOnce(&State) -> T) -> T {
        act(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From here on the interpreter tells about the lines of all code objects added.
    fn attach(&self, py: Python<'_>) -> PyResult<()> {
        if !has_monitoring(py) {
            return Ok(());
        }
        in_turn(py, || {
            if self.state(|state| state.attached.replace(true)) {
                return Ok(());
            }
            watch(py, self.codes(py))
        })
    }

    fn detach(&self, py: Python<'_>) -> PyResult<()> {
        in_turn(py, || {
            if !self.state(|state| state.attached.replace(false)) {
                return Ok(());
            }
            // SAFETY: `py` proves that the GIL is held.
            unsafe { self.collector.forget_frames() };
            unwatch(py, self.codes(py))
        })
    }

    fn codes(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.state(|state| state.codes.borrow().iter().map(|code| code.clone_ref(py)).collect())
    }
}

#[pymethods]
impl PyLineRecorder {
    #[new]
    fn new(memory: bool) -> PyResult<Self> {
        check().map_err(|error| CollectError::new_err(error.to_string()))?;
        let measure = if memory { Measure::Memory } else { Measure::Time };
        Ok(Self { collector: LineRecorder::new(measure), state: Mutex::default() })
    }

    /// Whether the trace function that a thread had before goes on while its lines are recorded, which CPython before 3.12 does
    /// not do by itself. Sets it for all recorders, if told to, and returns what it was before.
    #[staticmethod]
    #[pyo3(signature = (wraps=None))]
    fn wrap_trace(wraps: Option<bool>) -> bool {
        forward::switch(wraps)
    }

    /// Watches a function: its code object, then others whose lines count as its own.
    #[expect(clippy::too_many_arguments, reason = "what a function is")]
    fn add(
        &self,
        py: Python<'_>,
        codes: Vec<Py<PyAny>>,
        name: String,
        file: String,
        first_line: u32,
        last_line: u32,
        statements: Vec<u32>,
    ) -> PyResult<()> {
        let function = Function { name, file, first_line, last_line, statements };
        let with_line = |code: &Py<PyAny>| -> PyResult<(*mut Object, u32)> {
            Ok((code.as_ptr().cast(), code.bind(py).getattr("co_firstlineno")?.extract()?))
        };
        let pointers: Vec<(*mut Object, u32)> = codes.iter().map(with_line).collect::<PyResult<_>>()?;
        in_turn(py, || {
            // SAFETY: the GIL is held, and the caller passes code objects, which `codes` keeps alive.
            unsafe { self.collector.add(function, &pointers) };
            if self.state(|state| state.attached.get()) {
                watch(py, codes.iter().map(|code| code.clone_ref(py)).collect())?;
            }
            self.state(|state| state.codes.borrow_mut().extend(codes));
            Ok(())
        })
    }

    /// Records on this thread (with `sys.monitoring`: on all) until `disable_by_count` was called as often.
    fn enable_by_count(&self, py: Python<'_>) -> PyResult<()> {
        self.attach(py)?;
        if self.state(|state| state.count.replace(state.count.get() + 1)) == 0 {
            self.collector.enable();
        }
        if has_monitoring(py) { Ok(()) } else { begin_tracing(py) }
    }

    fn disable_by_count(&self, py: Python<'_>) -> PyResult<()> {
        let before = self.state(|state| state.count.replace(state.count.get().saturating_sub(1)));
        if before == 0 {
            return Ok(());
        }
        if before == 1 {
            self.collector.disable();
        }
        if has_monitoring(py) { Ok(()) } else { end_tracing(py) }
    }

    /// Records on this thread and on those that begin later (with `sys.monitoring`: on all) until `disable`.
    fn enable(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.explicit.replace(true)) {
            return Ok(());
        }
        self.enable_by_count(py)?;
        if !has_monitoring(py) {
            let threading = py.import("threading")?;
            let earlier = threading.call_method0("gettrace")?.unbind();
            threading.call_method1("settrace", (marker(py)?,))?;
            self.state(|state| state.earlier_for_threads.replace(Some(earlier)));
        }
        Ok(())
    }

    fn disable(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.explicit.replace(false)) {
            if !has_monitoring(py) {
                let earlier = self.state(|state| state.earlier_for_threads.take());
                let earlier = earlier.unwrap_or_else(|| py.None());
                py.import("threading")?.call_method1("settrace", (earlier,))?;
            }
            self.disable_by_count(py)?;
        }
        self.rest(py)
    }

    /// Lets go of the interpreter when nothing is to be recorded, so that watched functions run at full speed.
    fn rest(&self, py: Python<'_>) -> PyResult<()> {
        if self.state(|state| state.count.get()) == 0 { self.detach(py) } else { Ok(()) }
    }

    #[getter]
    fn enable_count(&self) -> usize {
        self.state(|state| state.count.get())
    }

    #[getter]
    fn is_enabled(&self) -> bool {
        self.collector.is_enabled()
    }

    /// The code objects that run on this thread and are recorded, outermost first, each with its line.
    fn running_lines(&self, py: Python<'_>) -> Vec<(Py<PyAny>, u32)> {
        // SAFETY: `py` proves that the GIL is held.
        let running = unsafe { self.collector.running_lines() };
        let own = |(code, line): (*mut Object, u32)| {
            // SAFETY: they are among `codes`, which keeps them alive.
            (unsafe { Bound::from_borrowed_ptr(py, code.cast()) }.unbind(), line)
        };
        running.into_iter().map(own).collect()
    }

    /// Forgets what was recorded.
    fn clear(&self) {
        self.collector.clear();
    }

    /// What was recorded so far.
    fn snapshot(&self) -> PyTrace {
        PyTrace::new(self.collector.to_builder().finish())
    }
}

impl Drop for PyLineRecorder {
    fn drop(&mut self) {
        let _ = Python::try_attach(|py| {
            // When the interpreter refuses, it is ending.
            let _ = self.disable(py);
            let _ = self.detach(py);
            // SAFETY: `py` proves that the GIL is held.
            for code in unsafe { self.collector.close() } {
                // SAFETY: the collector hands over the reference it held.
                drop(unsafe { Bound::from_owned_ptr(py, code.cast()) });
            }
        });
    }
}
