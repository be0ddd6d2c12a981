//! Calls as spans of a trace, as torch.profiler writes them with `with_stack`, so that everything that takes stacks from its
//! traces takes them from ours.

use hashbrown::HashMap;
use hotspan_store::args::PendingArgs;
use hotspan_store::{Arg, EventRow, Ident, Loss, Place, SpanRow, StringId, Timestamp, TraceBuilder};

use crate::calls::SpanTable;
use crate::clock::Ticks;

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
            for (place, span) in spans.iter().enumerate() {
                let Some(&(name, module)) = names.get(span.function.0 as usize) else { continue };
                let mut arg = |builder: &mut TraceBuilder, key: &[u8], value| {
                    builder.push_arg(&mut pending, Place::Args, key, value);
                };
                if let Some((caller, file)) = self.caller(&spans, span) {
                    let site = *sites
                        .entry((caller, span.site))
                        .or_insert_with(|| builder.intern(&format!("{file}:{}", span.site)));
                    arg(builder, b"CallFrom", Arg::Text(site));
                }
                if span.parent > 0 {
                    arg(builder, b"Python parent id", Arg::Int(before + i64::from(span.parent)));
                }
                arg(builder, b"Python id", Arg::Int(before + place as i64 + 1));
                if let Some(module) = module {
                    arg(builder, b"Python module id", Arg::Int(i64::from(module)));
                }
                arg(builder, b"Ev Idx", Arg::Int(*index));
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
}
