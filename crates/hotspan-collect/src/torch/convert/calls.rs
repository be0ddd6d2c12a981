//! Calls of Python functions among the operators: `with_stack`. Spans as torch.profiler writes them, so that everything that
//! takes stacks from its traces takes them from ours.

use hashbrown::HashMap;
use hotspan_store::{Arg, EventRow, Ident, Loss, SpanRow, StringId};

use crate::calls::SpanTable;

use super::Converter;

impl Converter {
    /// Adds the spans; a call refers to its caller by number, counted over all threads.
    pub(super) fn calls(&mut self, process: Ident, mut calls: SpanTable) {
        if calls.dropped > 0 {
            self.builder.losses.add_many(Loss::BufferFull, calls.dropped, None);
        }
        let category = self.builder.category("python_function");
        let names: Vec<(StringId, Option<u32>)> = calls
            .functions
            .iter()
            .map(|function| (self.builder.intern(&function.name), function.module))
            .collect();
        let mut sites: HashMap<(u32, i32), StringId> = HashMap::new();
        let mut before = 0;
        for (os_thread, spans) in std::mem::take(&mut calls.threads) {
            let track = self.builder.track(process, Ident::Int(os_thread));
            if self.builder.track_mut(track).name.is_none() {
                self.track(process, os_thread, "");
            }
            for (index, span) in spans.iter().enumerate() {
                let Some(&(name, module)) = names.get(span.function.0 as usize) else { continue };
                if let Some((caller, file)) = calls.caller(&spans, span) {
                    let site = *sites
                        .entry((caller, span.site))
                        .or_insert_with(|| self.builder.intern(&format!("{file}:{}", span.site)));
                    self.arg(b"CallFrom", Arg::Text(site));
                }
                if span.parent > 0 {
                    self.arg(b"Python parent id", Arg::Int(before + i64::from(span.parent)));
                }
                self.arg(b"Python id", Arg::Int(before + index as i64 + 1));
                if let Some(module) = module {
                    self.arg(b"Python module id", Arg::Int(i64::from(module)));
                }
                let args = self.commit();
                let time = self.time(span.start.0);
                let event = EventRow { time, name, category, track, args };
                self.builder.push_span(SpanRow { event, duration: self.time(span.end.0).since(time) });
            }
            before += spans.len() as i64;
        }
    }
}
