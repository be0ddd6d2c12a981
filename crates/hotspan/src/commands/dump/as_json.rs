//! What `hotspan dump` prints as JSON: py-spy's form, and hotspan's own, which has more.

use hotspan_collect::sampler::{Frame, ThreadSample};
use serde_json::{Value, json};

use super::Seen;
use crate::commands::short_names::ShortNames;

/// The threads of all processes in one list, with py-spy's fields. Which frames C called is not told: `is_entry` and
/// `is_shim_entry` are always false.
pub(super) fn of_py_spy(seen: &[Seen], locals: u8) -> Value {
    let mut short_names = ShortNames::default();
    let mut frame = |seen: &Seen, frame: &Frame| {
        let function = seen.function(frame);
        let variable = |variable: &hotspan_collect::sampler::locals::Variable| {
            json!({
                "name": variable.name, "addr": variable.address.0, "arg": variable.is_argument, "repr": variable.value,
            })
        };
        let variables =
            (locals > 0).then(|| seen.variables(frame, locals).iter().map(variable).collect::<Vec<_>>());
        json!({
            "name": function.name,
            "filename": function.file,
            "module": null,
            "short_filename": short_names.of(&function.file),
            "line": frame.line,
            "locals": variables,
            "is_entry": false,
            "is_shim_entry": false,
        })
    };
    let mut threads = Vec::new();
    for seen in seen {
        for thread in &seen.threads {
            let name = Some(&thread.name).filter(|name| !name.is_empty());
            threads.push(json!({
                "pid": seen.process.0,
                "thread_id": thread.ident,
                "thread_name": name,
                "os_thread_id": thread.number.map(|number| number.0),
                "active": !thread.state.is_idle(),
                "owns_gil": thread.gil,
                "frames": thread.frames.iter().map(|inner| frame(seen, inner)).collect::<Vec<_>>(),
                "process_info": null,
            }));
        }
    }
    Value::Array(threads)
}

/// The process with its threads; its children, where asked for, in the same form.
pub(super) fn of_hotspan(seen: &[Seen], locals: u8) -> Value {
    let frame = |seen: &Seen, frame: &Frame| {
        let function = seen.function(frame);
        let mut value = json!({
            "name": function.name, "file": function.file, "line": frame.line, "first_line": function.first_line,
        });
        if locals > 0 {
            let variables = seen.variables(frame, locals);
            let variables: Vec<Value> =
                variables.iter().map(|each| json!({"name": each.name, "value": each.value})).collect();
            value["locals"] = Value::Array(variables);
        }
        value
    };
    let thread = |seen: &Seen, thread: &ThreadSample| {
        json!({
            "id": thread.number.map(|number| number.0),
            "ident": thread.ident,
            "name": thread.name,
            "state": thread.state.word(),
            "gil": thread.gil,
            "frames": thread.frames.iter().map(|inner| frame(seen, inner)).collect::<Vec<_>>(),
        })
    };
    let process = |seen: &Seen| {
        json!({
            "pid": seen.process.0,
            "command": seen.command_line(),
            "python": seen.interpreter().version.to_string(),
            "threads": seen.threads.iter().map(|each| thread(seen, each)).collect::<Vec<_>>(),
        })
    };
    let mut processes = seen.iter().map(process);
    let mut root = processes.next().unwrap_or(Value::Null);
    let children: Vec<Value> = processes.collect();
    if !children.is_empty() {
        root["children"] = Value::Array(children);
    }
    root
}
