//! Calls as spans of a trace, as torch.profiler writes them with `with_stack`, so that everything that takes stacks from its
//! traces takes them from ours.

use hashbrown::HashMap;
use hotspan_store::args::PendingArgs;
use hotspan_store::{
    Arg, ArgOrigin, EventRow, Ident, Loss, SpanRow, StringId, Timestamp, TraceBuilder, keys,
};

use crate::calls::SpanTable;
use crate::calls::rows::SpanFunction;
use crate::calls::thread::CallSpan;
use crate::clock::Ticks;

/// Where the hooks of `hotspan.profiler` are. They call nothing of the program's.
const OUR_HOOKS: &str = "hotspan/profiler/_";

impl SpanTable {
    /// Adds the spans to a trace. A call refers to its caller by number, counted over all threads; `index` counts events.
    pub(crate) fn write(
        mut self,
        builder: &mut TraceBuilder,
        process: Ident,
        index: &mut i64,
        time: impl Fn(Ticks) -> Timestamp,
    ) {
        if self.dropped > 0 {
            builder.losses.add_many(Loss::BufferFull, self.dropped, None);
        }
        let category = builder.category("python_function");
        let names: Vec<(StringId, Option<u32>)> =
            self.functions.iter().map(|function| (builder.intern(&function.name), function.module)).collect();
        let mut sites: HashMap<(u32, i32), StringId> = HashMap::new();
        let mut pending = PendingArgs::default();
        let mut before = 0;
        for (os_thread, spans) in std::mem::take(&mut self.threads) {
            let track = builder.track(process, Ident::Int(os_thread));
            if builder.track_mut(track).name.is_none() {
                let name = builder.intern(&format!("thread {os_thread} ()"));
                let described = builder.track_mut(track);
                (described.name, described.sort_index) = (Some(name), Some(os_thread));
            }
            let hidden = self.hidden(&spans);
            for (position, span) in spans.iter().enumerate() {
                let Some(&(name, module)) = names.get(span.function.0 as usize) else { continue };
                if hidden[position] {
                    continue;
                }
                let mut arg = |builder: &mut TraceBuilder, key: &str, value| {
                    builder.push_arg(&mut pending, ArgOrigin::Args, key.as_bytes(), value);
                };
                if let Some((caller, file)) = self.caller(&spans, span) {
                    let site = *sites
                        .entry((caller, span.site))
                        .or_insert_with(|| builder.intern(&format!("{file}:{}", span.site)));
                    arg(builder, keys::CALLED_FROM, Arg::Text(site));
                }
                if span.parent > 0 {
                    arg(builder, keys::PYTHON_PARENT_ID, Arg::Int(before + i64::from(span.parent)));
                }
                arg(builder, keys::PYTHON_ID, Arg::Int(before + position as i64 + 1));
                if let Some(module) = module {
                    arg(builder, keys::PYTHON_MODULE_ID, Arg::Int(i64::from(module)));
                }
                arg(builder, keys::EVENT_INDEX, Arg::Int(*index));
                *index += 1;
                let args = builder.commit_args(&mut pending);
                pending.clear();
                let start = time(span.start);
                let event = EventRow { time: start, name, category, track, args };
                builder.push_span(SpanRow { event, duration: time(span.end).since(start) });
            }
            before += spans.len() as i64;
        }
    }

    /// Which calls are those of hooks that a profiler of ours put into the program, with all that they call.
    fn hidden(&self, spans: &[CallSpan]) -> Vec<bool> {
        let is_ours = |function: &SpanFunction| {
            function.file.as_deref().is_some_and(|file| file.starts_with(OUR_HOOKS))
        };
        let ours: Vec<bool> = self.functions.iter().map(is_ours).collect();
        let mut hidden: Vec<bool> = Vec::with_capacity(spans.len());
        for span in spans {
            let caller = (span.parent as usize).checked_sub(1).and_then(|caller| hidden.get(caller));
            let is_ours = ours.get(span.function.0 as usize) == Some(&true);
            hidden.push(is_ours || caller == Some(&true));
        }
        hidden
    }
}
