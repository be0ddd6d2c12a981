//! Asking the interpreter to tell about the lines of chosen code objects, by `sys.monitoring`: CPython 3.12 and later.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use hotspan_collect::lines::monitoring::Event;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Tool ids of `sys.monitoring` in the order they are tried: those nobody has by name first.
const TOOL_IDS: [u8; 5] = [3, 4, 2, 1, 5];
const TOOL_NAME: &str = "hotspan.lines";

/// Which code objects the interpreter tells about, and for how many recorders.
#[derive(Default)]
struct Monitoring {
    tool: Option<u8>,
    codes: HashMap<usize, usize>,
}

static MONITORING: Mutex<Option<Monitoring>> = Mutex::new(None);

pub(super) fn has_monitoring(py: Python<'_>) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    // Found before it is kept: nobody may wait for a thread that is in the interpreter.
    FOUND.get().copied().unwrap_or_else(|| {
        let found = py.version_info() >= (3, 12);
        let _ = FOUND.set(found);
        found
    })
}

fn monitoring<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("sys")?.getattr("monitoring")
}

fn event_bits(monitoring: &Bound<'_, PyAny>, local: bool) -> PyResult<u32> {
    let events = monitoring.getattr("events")?;
    let wanted = Event::ALL.into_iter().filter(|event| event.is_local() == local);
    wanted
        .map(|event| events.getattr(event.name())?.extract::<u32>())
        .try_fold(0, |bits, bit| Ok(bits | bit?))
}

/// Takes a tool id and registers the callbacks, once.
fn tool(py: Python<'_>) -> PyResult<u8> {
    let with = |act: &dyn Fn(&mut Monitoring) -> Option<u8>| {
        let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
        act(guard.get_or_insert_with(Monitoring::default))
    };
    if let Some(tool) = with(&|monitoring| monitoring.tool) {
        return Ok(tool);
    }
    let monitoring = monitoring(py)?;
    for id in TOOL_IDS {
        if !monitoring.call_method1("get_tool", (id,))?.is_none() {
            continue;
        }
        monitoring.call_method1("use_tool_id", (id, TOOL_NAME))?;
        let events = monitoring.getattr("events")?;
        for event in Event::ALL {
            // SAFETY: the GIL is held; the function made is ours to own, null comes with an exception.
            let callback = unsafe { Bound::from_owned_ptr_or_err(py, event.callback().cast()) }?;
            monitoring.call_method1("register_callback", (id, events.getattr(event.name())?, callback))?;
        }
        monitoring.call_method1("set_events", (id, event_bits(&monitoring, false)?))?;
        with(&|monitoring| monitoring.tool.replace(id));
        return Ok(id);
    }
    Err(PyRuntimeError::new_err(
        "all tool ids of sys.monitoring are taken; stop another profiler, debugger or coverage tool first",
    ))
}

pub(super) fn watch(py: Python<'_>, codes: Vec<Py<PyAny>>) -> PyResult<()> {
    let tool = tool(py)?;
    let monitoring = monitoring(py)?;
    let bits = event_bits(&monitoring, true)?;
    for code in codes {
        let count = {
            let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = guard.get_or_insert_with(Monitoring::default);
            let count = watched.codes.entry(code.as_ptr() as usize).or_default();
            *count += 1;
            *count
        };
        if count == 1 {
            monitoring.call_method1("set_local_events", (tool, code, bits))?;
        }
    }
    Ok(())
}

pub(super) fn unwatch(py: Python<'_>, codes: Vec<Py<PyAny>>) -> PyResult<()> {
    let monitoring = monitoring(py)?;
    for code in codes {
        let (tool, last) = {
            let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = guard.get_or_insert_with(Monitoring::default);
            let key = code.as_ptr() as usize;
            let left = watched.codes.get(&key).copied().unwrap_or(0).saturating_sub(1);
            if left == 0 {
                watched.codes.remove(&key);
            } else {
                watched.codes.insert(key, left);
            }
            (watched.tool, left == 0)
        };
        if let (Some(tool), true) = (tool, last) {
            monitoring.call_method1("set_local_events", (tool, code, 0))?;
        }
    }
    // The last one gives the tool id back, for others to use.
    let unused = {
        let mut guard = MONITORING.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_mut().filter(|watched| watched.codes.is_empty()).and_then(|watched| watched.tool.take())
    };
    if let Some(tool) = unused {
        monitoring.call_method1("set_events", (tool, 0))?;
        let events = monitoring.getattr("events")?;
        for event in Event::ALL {
            monitoring.call_method1("register_callback", (tool, events.getattr(event.name())?, py.None()))?;
        }
        monitoring.call_method1("free_tool_id", (tool,))?;
    }
    Ok(())
}
