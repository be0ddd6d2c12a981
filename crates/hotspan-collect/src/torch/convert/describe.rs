//! What an export of torch.profiler says of itself: its metadata, the process, and the span of the recording.

use hotspan_store::{
    Arg, ArgOrigin, Duration, EventRow, Ident, InstantRow, InstantScope, SpanRow, TraceBuilder,
};

use super::Converter;
use crate::clock::Ticks;
use crate::torch::session::Options;

impl Converter {
    /// Metadata and the process, as an importer would set them.
    pub(super) fn describe(&mut self, options: Options, number: u32) {
        let metadata = &mut self.builder.metadata;
        metadata.set("schemaVersion", "1");
        metadata.set("deviceProperties", "[]");
        for (key, set) in [("profile_memory", options.memory), ("record_shapes", options.shapes)] {
            if set {
                metadata.set(key, "1");
            }
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        metadata.set("host_name", &serde_json::Value::from(host.trim()).to_string());
        metadata.set("displayTimeUnit", "\"ms\"");

        let process = self.builder.process(Ident::Int(i64::from(number)));
        let name = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let name = self.builder.intern(name.trim_end());
        let labels = self.builder.intern("CPU");
        let described = self.builder.process_mut(process);
        described.name = Some(name);
        described.labels = Some(labels);
        described.sort_index = Some(i64::from(number));
    }

    /// The span of the recording itself, and marks at its ends.
    pub(super) fn window(&mut self, started: Ticks, stopped: Ticks) {
        let (start, end) = (self.time(started.0), self.time(stopped.0));
        let word = |builder: &mut TraceBuilder, text: &str| Ident::Text(builder.intern(text));
        let spans = word(&mut self.builder, "Spans");
        let profiler = word(&mut self.builder, "PyTorch Profiler");
        let track = self.builder.track(spans, profiler);
        let process = self.builder.process(spans);
        self.builder.process_mut(process).sort_index = Some(536_870_912);
        self.builder.push_arg(&mut self.pending, ArgOrigin::Args, b"Op count", Arg::Int(0));
        let args = self.builder.commit_args(&mut self.pending);
        self.pending.clear();
        let name = self.builder.intern("PyTorch Profiler (0)");
        let category = self.builder.category("Trace");
        let event = EventRow { time: start, name, category, track, args };
        self.builder.push_span(SpanRow { event, duration: Duration(end.since(start).0.max(0)) });

        let no_category = self.builder.category("");
        let args = self.builder.no_args();
        let traces = (word(&mut self.builder, "Traces"), word(&mut self.builder, "Trace PyTorch Profiler"));
        let nowhere = (word(&mut self.builder, ""), word(&mut self.builder, ""));
        let marks =
            [("Iteration Start: PyTorch Profiler", start, traces), ("Record Window End", end, nowhere)];
        for (name, time, (process, thread)) in marks {
            let track = self.builder.track(process, thread);
            let name = self.builder.intern(name);
            let event = EventRow { time, name, category: no_category, track, args };
            self.builder.push_instant(InstantRow { event, scope: InstantScope::Global });
        }
    }
}
