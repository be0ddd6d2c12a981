//! What was traced, as tables: sums for the store and for `getstats`, and calls as spans.

use hashbrown::HashMap;
use hotspan_store::{CallRow, Duration, FrameId, FrameKind, FrameRow, Ident, Timestamp, TraceBuilder};

use crate::calls::functions::Function;
use crate::calls::thread::{CallSpan, FunctionId, Site, Sums};
use crate::calls::tracer::{ThreadSpans, Tracer};
use crate::clock::Ticks;
use crate::interpreter::Owned;
use crate::locks::lock_unless_forked as lock;

/// Calls added up, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    /// All calls.
    pub calls: i64,
    /// Those made while the function was running already.
    pub recursive: i64,
    /// Time in the function itself.
    pub own: Duration,
    /// Time in it and in what it called.
    pub total: Duration,
}

/// A function that was called. Lives and dies with the GIL held.
#[derive(Debug)]
pub struct CalledFunction {
    /// Its file; `~` for functions of C.
    pub file: String,
    /// The line it begins at.
    pub first_line: u32,
    /// Its name.
    pub name: String,
    /// Whether it is a function of C.
    pub is_builtin: bool,
    /// Its code object.
    pub code: Option<Owned>,
    /// All its calls.
    pub sums: CallSums,
}

/// What a tracer has added up.
#[derive(Debug, Default)]
pub struct CallTable {
    /// Functions, in order of their first call.
    pub functions: Vec<CalledFunction>,
    /// Calls by caller and callee, which are indices into `functions`.
    pub edges: Vec<(usize, usize, CallSums)>,
}

/// Calls as spans, with the names they have in traces.
#[derive(Debug, Default)]
pub struct SpanTable {
    pub(crate) functions: Vec<SpanFunction>,
    pub(crate) threads: Vec<(i64, Vec<CallSpan>)>,
    pub(crate) dropped: u64,
}

#[derive(Debug)]
pub(crate) struct SpanFunction {
    pub(crate) name: String,
    /// The file of its code, for Python functions.
    pub(crate) file: Option<String>,
    pub(crate) module: Option<u32>,
}

impl Tracer {
    /// The sums so far. The GIL is held, and the tracer is not running.
    #[must_use]
    pub fn table(&self) -> CallTable {
        let calibration = self.calibration();
        let nanos = |ticks: u64| match calibration {
            Some(calibration) if !self.has_timer() => Duration(calibration.nanos(ticks)),
            _ => Duration(ticks as i64),
        };
        let sums = |sums: &Sums| CallSums {
            calls: sums.calls as i64,
            recursive: sums.recursive as i64,
            own: nanos(sums.own),
            total: nanos(sums.total),
        };
        let (Some(totals), Some(functions)) = (lock(&self.totals), lock(&self.functions)) else {
            return CallTable::default();
        };
        let mut table = CallTable::default();
        let mut indices: HashMap<FunctionId, usize> = HashMap::new();
        for index in 0..functions.len() {
            let id = FunctionId(index as u32);
            let (Some(function), Some(found)) = (functions.get(id), totals.functions.get(&id)) else {
                continue;
            };
            // SAFETY: the GIL is held, which `table` demands of its caller. Attributes of code objects run no Python
            // code, so that the locks are safe to hold.
            let label = unsafe { function.label(self.python) };
            indices.insert(id, table.functions.len());
            table.functions.push(CalledFunction {
                file: label.file,
                first_line: label.first_line,
                name: label.name,
                is_builtin: label.is_builtin,
                // SAFETY: the GIL is held, and the registry keeps the code object alive as long as it is locked.
                code: unsafe {
                    let code = function.code().map(|code| self.python.new_reference(code));
                    code.and_then(|code| Owned::new(self.python, code))
                },
                sums: sums(found),
            });
        }
        let mut edges: Vec<(usize, usize, CallSums)> = totals
            .edges
            .iter()
            .filter_map(|((caller, callee), found)| {
                Some((*indices.get(caller)?, *indices.get(callee)?, sums(found)))
            })
            .collect();
        edges.sort_unstable_by_key(|&(caller, callee, _)| (caller, callee));
        table.edges = edges;
        table
    }

    /// Takes the calls that were kept as spans out of the tracer. Files are shown without these prefixes. The GIL is held.
    #[must_use]
    pub fn take_spans(&self, prefixes: &[String]) -> SpanTable {
        let Some((spans, dropped)) = lock(&self.totals)
            .map(|mut totals| (std::mem::take(&mut totals.spans), std::mem::take(&mut totals.dropped)))
        else {
            return SpanTable::default();
        };
        self.named(spans, dropped, prefixes)
    }

    /// Adds the calls that were kept as spans to a trace, whose time begins with the first. They stay in the tracer. The GIL is
    /// held, and the tracer is not running.
    pub fn write_spans(&self, builder: &mut TraceBuilder) {
        let Some((spans, dropped)) = lock(&self.totals).map(|totals| (totals.spans.clone(), totals.dropped))
        else {
            return;
        };
        let calibration = self.calibration().filter(|_| !self.has_timer());
        let nanos =
            |ticks: Ticks| calibration.map_or(ticks.0 as i64, |calibration| calibration.unix(ticks).0);
        let firsts = spans.iter().filter_map(|thread| thread.spans.first());
        let Some(origin) = firsts.map(|span| nanos(span.start)).min() else { return };
        if calibration.is_some() {
            (builder.clock.origin, builder.clock.base_unix) = (0, Some(origin));
        }
        let process = Ident::Int(i64::from(std::process::id()));
        let table = self.named(spans, dropped, &[]);
        table.write(builder, process, &mut 0, |ticks| Timestamp(nanos(ticks) - origin));
    }

    fn named(&self, spans: Vec<ThreadSpans>, dropped: u64, prefixes: &[String]) -> SpanTable {
        let Some(functions) = lock(&self.functions) else { return SpanTable::default() };
        let mut threads: Vec<(i64, Vec<CallSpan>)> =
            spans.into_iter().map(|thread| (thread.os_thread, thread.spans)).collect();
        let mut lines: HashMap<(FunctionId, Site), Site> = HashMap::new();
        for (_, spans) in &mut threads {
            for index in 0..spans.len() {
                let (site, parent) = (spans[index].site, spans[index].parent);
                if let (true, Some(caller)) = (site < 0, (parent as usize).checked_sub(1)) {
                    let caller = spans[caller].function;
                    spans[index].site = *lines.entry((caller, site)).or_insert_with(|| {
                        // SAFETY: the GIL is held, which the callers of `named` demand of theirs.
                        let line = |function: &Function| unsafe { function.line_at(self.python, !site) };
                        functions.get(caller).and_then(line).unwrap_or(0)
                    });
                }
            }
        }
        let named = (0..functions.len()).filter_map(|index| functions.get(FunctionId(index as u32))).map(
            |function| SpanFunction {
                // SAFETY: the GIL is held, which the callers of `named` demand of theirs.
                name: unsafe { function.span_name(self.python, prefixes) },
                // SAFETY: the GIL is held, which the callers of `named` demand of theirs.
                file: unsafe { function.short_file(self.python, prefixes) },
                module: function.module_number(),
            },
        );
        SpanTable { functions: named.collect(), threads, dropped }
    }
}

impl SpanTable {
    /// The Python function whose line a call was made from, and its file: the nearest around it that is not C.
    pub(crate) fn caller(&self, spans: &[CallSpan], span: &CallSpan) -> Option<(u32, &str)> {
        let mut parent = Some(span).filter(|span| span.site > 0)?.parent;
        loop {
            let around = spans.get((parent as usize).checked_sub(1)?)?;
            let function = self.functions.get(around.function.0 as usize)?;
            // A module's calls are made by torch's own code, which has no span here.
            if function.module.is_some() {
                return None;
            }
            if let Some(file) = &function.file {
                return Some((around.function.0, file));
            }
            parent = around.parent;
        }
    }
}

impl CallTable {
    /// Adds the sums to a trace. Functions that share name and file share rows.
    pub fn write(&self, builder: &mut TraceBuilder) {
        let frames: Vec<FrameId> = self
            .functions
            .iter()
            .map(|function| {
                let (name, file) = (builder.intern(&function.name), builder.intern(&function.file));
                let kind = if function.is_builtin { FrameKind::Builtin } else { FrameKind::Python };
                builder.frame(FrameRow { name, file, line: 0, first_line: function.first_line, kind })
            })
            .collect();
        let mut rows: Vec<CallRow> = Vec::new();
        let mut indices: HashMap<(FrameId, FrameId), usize> = HashMap::new();
        let all = self
            .functions
            .iter()
            .zip(&frames)
            .map(|(function, &callee)| (FrameId::NONE, callee, function.sums));
        let edges = self.edges.iter().map(|&(caller, callee, sums)| (frames[caller], frames[callee], sums));
        for (caller, callee, sums) in all.chain(edges) {
            let index = *indices.entry((caller, callee)).or_insert_with(|| {
                let (calls, primitive_calls) = (0, 0);
                let (self_time, total_time) = (Duration(0), Duration(0));
                rows.push(CallRow { caller, callee, calls, primitive_calls, self_time, total_time });
                rows.len() - 1
            });
            let row = &mut rows[index];
            row.calls += sums.calls;
            row.primitive_calls += sums.calls - sums.recursive;
            row.self_time.0 += sums.own.0;
            row.total_time.0 += sums.total.0;
        }
        for row in rows {
            builder.push_calls(row);
        }
    }
}
