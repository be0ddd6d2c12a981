//! C functions for test scripts: record in a Python process and read the trace back as JSON lines, without the module.

use std::ffi::{CStr, CString, c_char};
use std::sync::Mutex;

use hotspan_store::{Ident, Trace};

use crate::clock::{self, Ticks};
use crate::torch::{Options, Recording, Session, Shim, TorchInstall};

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
static TRACE: Mutex<Option<Trace>> = Mutex::new(None);

fn text(message: &impl ToString) -> *mut c_char {
    CString::new(message.to_string()).unwrap_or_default().into_raw()
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().ok()?.take()
}

fn put<T>(place: &Mutex<Option<T>>, value: T) {
    if let Ok(mut place) = place.lock() {
        *place = Some(value);
    }
}

/// Starts; null when it worked, otherwise the error. Flags: 1 shapes, 2 memory, 4 overload names.
///
/// # Safety
/// `root` is zero-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotspan_test_start(root: *const c_char, flags: u32, max_bytes: u64) -> *mut c_char {
    // SAFETY: as for this function.
    let root = unsafe { CStr::from_ptr(root) }.to_string_lossy().into_owned();
    let options = Options {
        shapes: flags & 1 != 0,
        memory: flags & 2 != 0,
        overload_names: flags & 4 != 0,
        max_bytes: (max_bytes > 0).then_some(max_bytes),
    };
    let start = || Session::start(&Shim::load(&TorchInstall::at(root)?)?, options);
    match start() {
        Ok(session) => {
            put(&SESSION, session);
            std::ptr::null_mut()
        }
        Err(error) => text(&error),
    }
}

/// Pauses or resumes.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_toggle(record: bool) {
    if let Ok(session) = SESSION.lock()
        && let Some(session) = &*session
    {
        session.toggle(record);
    }
}

/// Stops recording memory.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_release_memory() {
    if let Ok(session) = SESSION.lock()
        && let Some(session) = &*session
    {
        session.release_memory();
    }
}

/// The recording clock.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_now() -> u64 {
    clock::now().0
}

/// Adds a span of this thread that ends now.
///
/// # Safety
/// `name` is zero-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotspan_test_span(name: *const c_char, start: u64) {
    // SAFETY: as for this function.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if let Ok(session) = SESSION.lock()
        && let Some(session) = &*session
    {
        session.add_span(&name, Ticks(start), clock::now());
    }
}

/// Stops; returns how many events were lost.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_stop() -> u64 {
    let Some(session) = take(&SESSION) else { return u64::MAX };
    let recording = session.stop();
    let dropped = recording.dropped();
    put(&RECORDING, recording);
    dropped
}

/// Converts; returns how many events there are.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_convert() -> u64 {
    let Some(recording) = take(&RECORDING) else { return 0 };
    let builder = recording.into_builder();
    let count = builder.event_count();
    put(&TRACE, builder.finish());
    count as u64
}

/// Bytes of the trace.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_bytes() -> u64 {
    TRACE.lock().map_or(0, |trace| trace.as_ref().map_or(0, Trace::heap_bytes) as u64)
}

/// Forgets the trace.
#[unsafe(no_mangle)]
pub extern "C" fn hotspan_test_clear() {
    drop(take(&TRACE));
}

/// Writes the trace as a Chrome trace.
///
/// # Safety
/// `path` is zero-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotspan_test_dump(path: *const c_char) -> *mut c_char {
    // SAFETY: as for this function.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let Ok(trace) = TRACE.lock() else { return text(&"poisoned") };
    let Some(trace) = &*trace else { return text(&"nothing recorded") };
    match std::fs::write(path, dump(trace).to_string()) {
        Ok(()) => std::ptr::null_mut(),
        Err(error) => text(&error),
    }
}

fn dump(trace: &Trace) -> serde_json::Value {
    use serde_json::{Value, json};
    let ident = |ident: Ident| match ident {
        Ident::Int(number) => json!(number),
        Ident::Text(text) => json!(trace.str(text)),
    };
    let common = |event: hotspan_store::EventRow, phase: &str| -> serde_json::Map<String, Value> {
        let track = trace.track(event.track);
        let args = trace.args(event.args);
        let args = args
            .map(|(key, value)| (trace.str(key.name).to_owned(), value.resolve(trace.strings()).to_json()));
        let value = json!({
            "ph": phase, "cat": trace.category_name(event.category), "name": trace.str(event.name),
            "pid": ident(trace.process(track.process).ident), "tid": ident(track.ident),
            "ts": (event.time.0 + trace.clock().origin) as f64 / 1e3,
            "args": args.collect::<serde_json::Map<_, _>>(),
        });
        match value {
            Value::Object(object) => object,
            _ => serde_json::Map::new(),
        }
    };
    let mut events: Vec<Value> = Vec::new();
    for track in trace.tracks() {
        let name = track.name.map(|name| trace.str(name));
        events
            .push(json!({"ph": "M", "name": "thread_name", "pid": ident(trace.process(track.process).ident),
            "tid": ident(track.ident), "args": {"name": name}}));
    }
    for (span, event) in trace.spans().ids().zip(trace.spans().events()) {
        let mut object = common(event, "X");
        object.insert("dur".into(), json!(trace.spans().duration(span).as_micros()));
        events.push(object.into());
    }
    events.extend(trace.instants().events().map(|event| Value::from(common(event, "i"))));
    for index in 0..trace.flows().len() {
        let row = trace.flows().row(index);
        let mut object =
            common(row.event, if row.phase == hotspan_store::FlowPhase::Start { "s" } else { "f" });
        object.insert("id".into(), json!(row.id));
        events.push(object.into());
    }
    let losses: Vec<String> = trace.losses().counts().iter().map(ToString::to_string).collect();
    let metadata: serde_json::Map<String, Value> = trace
        .metadata()
        .iter()
        .filter_map(|(key, _)| Some((key.to_owned(), trace.metadata().value(key)?)))
        .collect();
    json!({"metadata": metadata, "baseTimeNanoseconds": trace.clock().base_unix, "losses": losses, "traceEvents": events})
}
