//! Single calls of operators that took longest, beside what a call of the same operator takes: what averages hide.

use hashbrown::HashMap;
use hotspan_store::{Category, Duration, SpanId, StringId};

use super::{Report, TORCH};
use crate::model::Model;
use crate::report::schema::Schema;

/// Rows, unless somebody says how many.
const LIMIT: usize = 100;

pub(super) const REPORTS: &[Report] = &[Report {
    id: "calls",
    by: Some(("call", "A single call of an operator, the longest first")),
    record: TORCH,
    tables: |model, options| {
        let rows = calls(model);
        let mut options = options.clone();
        options.limit.get_or_insert(LIMIT);
        Ok(vec![schema(model).show(&rows, &options)?])
    },
}];

/// A call, and the median of the calls of the same operator.
struct Call {
    span: SpanId,
    time: Duration,
    median: Duration,
}

fn calls(model: &Model) -> Vec<Call> {
    let spans = model.spans();
    let is_operator = |span: &SpanId| model.span_category(*span) == Category::Operator;
    let mut by_name: HashMap<StringId, Vec<Duration>> = HashMap::new();
    for span in spans.ids().filter(is_operator) {
        by_name.entry(spans.name(span)).or_default().push(spans.duration(span));
    }
    for times in by_name.values_mut() {
        times.sort_unstable();
    }
    let call = |span| {
        let times = &by_name[&spans.name(span)];
        Call { span, time: spans.duration(span), median: times[times.len() / 2] }
    };
    spans.ids().filter(is_operator).map(call).collect()
}

fn schema(model: &Model) -> Schema<'_, Call> {
    let spans = model.spans();
    Schema::<Call>::new("calls", "Longest calls")
        .text("name", "Name", |call| model.span_name(call.span))
        .help("The operator.")
        .text("thread", "Thread", |call| model.track(spans.track(call.span)).ident.display(model.strings()))
        .help("The thread that it was called on.")
        .duration("begin", "Begin", |call| Duration(spans.time(call.span).0))
        .help("When the call began, from the start of the trace.")
        .duration("time", "Time", |call| call.time)
        .help("How long the call took, with all it called.")
        .duration("median", "Median", |call| call.median)
        .help("How long the median call of the same operator took.")
        .number("times_median", "Times median", |call| {
            (call.median.0 > 0).then(|| call.time.0 as f64 / call.median.0 as f64)
        })
        .help("How many times as long as the median call this one took.")
        .sorted_by("time")
}

#[cfg(test)]
mod tests {
    use hotspan_store::{EventRow, Ident, SpanRow, Timestamp, TraceBuilder};

    use super::*;
    use crate::report::Cell;
    use crate::report::schema::ReportOptions;

    #[test]
    fn the_longest_call_stands_out() {
        let mut builder = TraceBuilder::new();
        let track = builder.track(Ident::Int(1), Ident::Int(7));
        for (begin, duration) in [(0, 10), (20, 80), (110, 10)] {
            let (name, category) = (builder.intern("aten::add"), builder.category("cpu_op"));
            let event = EventRow { time: Timestamp(begin), name, category, track, args: builder.no_args() };
            builder.push_span(SpanRow { event, duration: Duration(duration) });
        }
        let tables = (REPORTS[0].tables)(&builder.finish().into(), &ReportOptions::default()).unwrap();
        let time = |nanoseconds| Cell::Duration(Duration(nanoseconds));
        let longest = ["aten::add".into(), "7".into(), time(20), time(80), time(10), Cell::Number(8.0)];
        assert_eq!(tables[0].rows[0], longest);
        assert_eq!(tables[0].rows.len(), 3);
    }
}
