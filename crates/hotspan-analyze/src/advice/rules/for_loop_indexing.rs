//! `for-loop-indexing`: a Python loop takes a tensor apart, element by element.

use hotspan_store::{Duration, SpanId};

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "for-loop-indexing",
    title: "A loop indexes a tensor element by element",
    finds: "Runs of at least 16 `aten::select`, `aten::index` or `aten::slice` calls on inputs of one shape, with little work between two of them, and no matrix products: those are steps of recurrent networks.",
    costs: "Each round costs several microseconds of Python and dispatch to handle one row or one number.",
    fix: "One operator on the whole tensor: broadcasting, `torch.gather`, `index_select`, masks, `torch.cumsum`, `torch.vmap`.",
    measured: "Runs of such calls, outside of data loaders, not more than 12 other calls and 2 ms apart, and 200 µs a round on average; their time from first \
        to last, reported from 5 % of the time on. The gain is nine tenths of it.",
    needs: &[Need::Operators, Need::Shapes],
    check,
};

const FEWEST: u64 = 16;
/// One round may be held up; all together must be short.
const WIDEST: Duration = Duration(2_000_000);
const WIDEST_MEAN: i64 = 200_000;
const MOST_BETWEEN: usize = 12;

/// A round that multiplies by weights is a step of a recurrent network: each needs the one before.
const STEPS_OF_RECURRENCES: [&str; 8] = [
    "aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell", "aten::bmm",
];

struct Run {
    shape: u32,
    first: SpanId,
    last: SpanId,
    count: u64,
    between: usize,
}

fn check(context: &Context<'_>) -> Option<Finding> {
    let spans = context.model.spans();
    let shapes = context.model.shapes();
    let loading = context.inside("enumerate(Data");
    let mut runs: Vec<Option<Run>> = (0..context.model.tracks().len()).map(|_| None).collect();
    let mut tally = Tally::default();
    let close = |run: Option<Run>, tally: &mut Tally| {
        if let Some(run) = run.filter(|run| run.count >= FEWEST) {
            let time = spans.end(run.last).since(spans.time(run.first));
            if time.0 / i64::try_from(run.count).unwrap_or(i64::MAX) > WIDEST_MEAN {
                return;
            }
            tally.add(context, &format!("{} ({} times in a row)", context.name(run.first), run.count), run.first, time);
        }
    };
    for span in context.outermost_calls().filter(|&span| loading.of(span).is_none()) {
        let slot = &mut runs[spans.track(span).index()];
        if !matches!(context.name(span), "aten::select" | "aten::index" | "aten::slice") {
            if STEPS_OF_RECURRENCES.contains(&context.name(span)) {
                close(slot.take(), &mut tally);
            } else if let Some(run) = slot {
                run.between += 1;
            }
            continue;
        }
        let shape = shapes.id(span);
        match slot {
            Some(run)
                if run.shape == shape
                    && run.between <= MOST_BETWEEN
                    && spans.time(span).since(spans.end(run.last)) <= WIDEST =>
            {
                (run.last, run.between) = (span, 0);
                run.count += 1;
            }
            // `x[i, j]` is a select of a select: the second one has another shape.
            Some(run) if run.between == 0 && run.count > 0 && run.shape != shape => run.between += 1,
            _ => {
                let run = Run { shape, first: span, last: span, count: 1, between: 0 };
                close(slot.replace(run), &mut tally);
            }
        }
    }
    for run in runs {
        close(run, &mut tally);
    }
    let percent = context.percent(tally.time());
    if percent < 5.0 {
        return None;
    }
    let time = tally.time();
    Some(Finding {
        message: format!("{percent:.0} % of {} goes to loops that index a tensor element by element", context.basis()),
        fix: "replace the loop by an operator on the whole tensor".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.9), "nine tenths of the time of the loops"),
        confidence: Confidence::Medium,
    })
}
