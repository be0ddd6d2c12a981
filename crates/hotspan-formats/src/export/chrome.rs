//! Chrome traces in the schema Kineto writes, for Perfetto, HTA and everything else that reads those.
//!
//! Unlike Kineto's writer, strings are escaped rather than altered, so the file is valid JSON whatever names contain,
//! and importing it gives the same trace again.

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_store::{
    Arg, ArgOrigin, Args, EventRow, FlowPhase, Ident, InstantScope, StringId, Trace, TrackId, keys,
};
use serde_json::Value;

use super::Exporter;
use super::chrome_samples::spans_of_samples;
use super::json_text::{write_display, write_micros, write_number, write_string};

/// The exporter of Chrome traces.
pub struct Chrome;

impl Exporter for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn help(&self) -> &'static str {
        "Chrome trace JSON as Kineto writes it, for Perfetto, HTA and other viewers"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let trace: &Trace = model;
        let mut writer = EventWriter {
            trace,
            output,
            line: Vec::with_capacity(1 << 16),
            first: true,
            scope: trace.strings().find(keys::SCOPE),
        };
        writer.header()?;
        writer.describe_tracks()?;
        writer.spans()?;
        writer.samples()?;
        writer.instants()?;
        writer.counters()?;
        writer.flows()?;
        for event in trace.verbatim() {
            writer.begin();
            writer.line.extend_from_slice(event.as_bytes());
            writer.end_line()?;
        }
        writer.line.extend_from_slice(b"\n]}\n");
        writer.flush()
    }
}

/// Events are written to a line buffer that is handed on when it is large enough.
struct EventWriter<'a> {
    trace: &'a Trace,
    output: &'a mut dyn Write,
    line: Vec<u8>,
    first: bool,
    /// An arg of our own, which Kineto does not have and readers find by other means.
    scope: Option<StringId>,
}

impl EventWriter<'_> {
    fn header(&mut self) -> io::Result<()> {
        self.line.extend_from_slice(b"{\n");
        for (key, value) in self.trace.metadata().iter() {
            write_string(&mut self.line, key);
            self.line.extend_from_slice(b": ");
            self.line.extend_from_slice(value.as_bytes());
            self.line.extend_from_slice(b",\n");
        }
        if let Some(base) = self.trace.clock().base_unix {
            self.line.extend_from_slice(b"\"baseTimeNanoseconds\": ");
            write_number(&mut self.line, base);
            self.line.extend_from_slice(b",\n");
        }
        self.line.extend_from_slice(b"\"traceEvents\": [\n");
        self.flush()
    }

    /// Names and sort orders of processes and threads, as metadata events.
    fn describe_tracks(&mut self) -> io::Result<()> {
        let trace = self.trace;
        for process in trace.processes() {
            let thread = Ident::Int(0);
            if let Some(name) = process.name {
                self.describe("process_name", process.ident, thread, "name", Described::Text(name))?;
            }
            if let Some(labels) = process.labels {
                self.describe("process_labels", process.ident, thread, "labels", Described::Text(labels))?;
            }
            if let Some(index) = process.sort_index {
                self.describe(
                    "process_sort_index",
                    process.ident,
                    thread,
                    "sort_index",
                    Described::Int(index),
                )?;
            }
        }
        for track in trace.tracks() {
            let process = trace.process(track.process).ident;
            if let Some(name) = track.name {
                self.describe("thread_name", process, track.ident, "name", Described::Text(name))?;
            }
            if let Some(index) = track.sort_index {
                self.describe(
                    "thread_sort_index",
                    process,
                    track.ident,
                    "sort_index",
                    Described::Int(index),
                )?;
            }
        }
        Ok(())
    }

    fn describe(
        &mut self,
        name: &str,
        process: Ident,
        thread: Ident,
        key: &str,
        value: Described,
    ) -> io::Result<()> {
        self.begin();
        self.line.extend_from_slice(b"{\"name\": ");
        write_string(&mut self.line, name);
        self.line.extend_from_slice(b", \"ph\": \"M\", \"ts\": ");
        write_micros(&mut self.line, self.trace.clock().origin);
        self.idents(process, thread);
        self.line.extend_from_slice(b", \"args\": {");
        write_string(&mut self.line, key);
        self.line.extend_from_slice(b": ");
        match value {
            Described::Text(text) => write_string(&mut self.line, self.trace.str(text)),
            Described::Int(number) => write_number(&mut self.line, number),
        }
        self.line.extend_from_slice(b"}}");
        self.end_line()
    }

    fn spans(&mut self) -> io::Result<()> {
        let spans = self.trace.spans();
        for span in spans.ids() {
            self.event(b"X", spans.event(span.index()));
            self.line.extend_from_slice(b", \"dur\": ");
            write_micros(&mut self.line, spans.duration(span).0);
            self.args(spans.args(span))?;
        }
        Ok(())
    }

    /// Samples as the calls they show, since viewers know no samples.
    fn samples(&mut self) -> io::Result<()> {
        for span in spans_of_samples(self.trace) {
            self.begin();
            self.line.extend_from_slice(b"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": ");
            write_string(&mut self.line, &span.name(self.trace));
            self.track(span.track);
            self.line.extend_from_slice(b", \"ts\": ");
            write_micros(&mut self.line, span.time.0.saturating_add(self.trace.clock().origin));
            self.line.extend_from_slice(b", \"dur\": ");
            write_micros(&mut self.line, span.duration.0);
            self.line.push(b'}');
            self.end_line()?;
        }
        Ok(())
    }

    fn instants(&mut self) -> io::Result<()> {
        let instants = self.trace.instants();
        for index in 0..instants.len() {
            let row = instants.row(index);
            self.event(b"i", row.event);
            self.line.extend_from_slice(match row.scope {
                InstantScope::Unspecified => b"".as_slice(),
                InstantScope::Thread => b", \"s\": \"t\"",
                InstantScope::Process => b", \"s\": \"p\"",
                InstantScope::Global => b", \"s\": \"g\"",
            });
            self.args(row.event.args)?;
        }
        Ok(())
    }

    fn counters(&mut self) -> io::Result<()> {
        for event in self.trace.counters().events() {
            self.event(b"C", event);
            self.args(event.args)?;
        }
        Ok(())
    }

    fn flows(&mut self) -> io::Result<()> {
        let flows = self.trace.flows();
        for index in 0..flows.len() {
            let row = flows.row(index);
            let phase = match row.phase {
                FlowPhase::Start => b"s",
                FlowPhase::Step => b"t",
                FlowPhase::End => b"f",
            };
            self.event(phase, row.event);
            let has_id = |(key, _): (hotspan_store::ArgKey, Arg)| {
                key.origin == ArgOrigin::Event && self.trace.str(key.name) == "id"
            };
            if !self.trace.args(row.event.args).any(has_id) {
                self.line.extend_from_slice(b", \"id\": ");
                write_number(&mut self.line, row.id);
            }
            if row.binds_enclosing {
                self.line.extend_from_slice(b", \"bp\": \"e\"");
            }
            self.args(row.event.args)?;
        }
        Ok(())
    }

    /// The fields all events have; the object stays open.
    fn event(&mut self, phase: &[u8; 1], event: EventRow) {
        self.begin();
        self.line.extend_from_slice(b"{\"ph\": \"");
        self.line.extend_from_slice(phase);
        let category = self.trace.category_name(event.category);
        if !category.is_empty() {
            self.line.extend_from_slice(b"\", \"cat\": ");
            write_string(&mut self.line, category);
            self.line.extend_from_slice(b", \"name\": ");
        } else {
            self.line.extend_from_slice(b"\", \"name\": ");
        }
        write_string(&mut self.line, self.trace.str(event.name));
        self.track(event.track);
        self.line.extend_from_slice(b", \"ts\": ");
        write_micros(&mut self.line, event.time.0.saturating_add(self.trace.clock().origin));
    }

    fn track(&mut self, id: TrackId) {
        let track = self.trace.track(id);
        self.idents(self.trace.process(track.process).ident, track.ident);
    }

    fn idents(&mut self, process: Ident, thread: Ident) {
        for (key, ident) in [(b", \"pid\": ", process), (b", \"tid\": ", thread)] {
            self.line.extend_from_slice(key);
            match ident {
                Ident::Int(number) => write_number(&mut self.line, number),
                Ident::Text(text) => write_string(&mut self.line, self.trace.str(text)),
            }
        }
    }

    /// Keys beside `args`, then `args`, then the end of the event.
    fn args(&mut self, args: Args) -> io::Result<()> {
        let trace = self.trace;
        for (key, value) in trace.args(args).filter(|(key, _)| key.origin == ArgOrigin::Event) {
            self.line.extend_from_slice(b", ");
            self.pair(key.name, value);
        }
        let mut open = false;
        for (key, value) in trace.args(args) {
            match key.origin {
                ArgOrigin::Event => {}
                ArgOrigin::Args if Some(key.name) == self.scope => {}
                ArgOrigin::Packed => return self.packed(value),
                ArgOrigin::Args => {
                    self.line.extend_from_slice(if open { b", " } else { b", \"args\": {" });
                    open = true;
                    self.pair(key.name, value);
                }
            }
        }
        self.line.extend_from_slice(if open { b"}}" } else { b"}" });
        self.end_line()
    }

    fn pair(&mut self, key: StringId, value: Arg) {
        write_string(&mut self.line, self.trace.str(key));
        self.line.extend_from_slice(b": ");
        match value {
            Arg::Int(number) => write_number(&mut self.line, number),
            // The shortest form that reads back as the same number; exponents where they are shorter.
            Arg::Float(number) if number.is_finite() => {
                write_display(&mut self.line, format_args!("{number:?}"));
            }
            Arg::Float(_) => self.line.extend_from_slice(b"null"),
            Arg::Text(text) => write_string(&mut self.line, self.trace.str(text)),
            Arg::Json(text) => self.line.extend_from_slice(self.trace.str(text).as_bytes()),
        }
    }

    /// Args that were stored as one JSON object for want of layouts.
    #[cold]
    fn packed(&mut self, value: Arg) -> io::Result<()> {
        let Value::Object(packed) = value.resolve(self.trace.strings()).to_json() else {
            self.line.push(b'}');
            return self.end_line();
        };
        if let Some(Value::Object(beside)) = packed.get("event") {
            for (key, value) in beside {
                self.line.extend_from_slice(b", ");
                write_string(&mut self.line, key);
                write_display(&mut self.line, format_args!(": {value}"));
            }
        }
        if let Some(args) = packed.get("args") {
            write_display(&mut self.line, format_args!(", \"args\": {args}"));
        }
        self.line.push(b'}');
        self.end_line()
    }

    fn begin(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.line.extend_from_slice(b",\n");
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        if self.line.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }
}

/// A value of a metadata event.
#[derive(Clone, Copy)]
enum Described {
    Text(StringId),
    Int(i64),
}
