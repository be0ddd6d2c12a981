//! Which views have something to show of a trace, and what to record for those that have nothing. It is asked before anything is
//! computed, so each test looks at what is in the trace and runs no analysis of its own.

use hotspan_analyze::job::has_ranks;
use hotspan_analyze::model::events::Role;
use hotspan_analyze::model::steps::Step;
use hotspan_analyze::source_lines::has_source_lines;
use hotspan_analyze::{DeviceKind, Model, Report};
use hotspan_store::{Category, SpanId};

use crate::api::{Band, ViewContent};
use crate::{flame, memory, several};

/// A view, how to record what fills it, and whether a trace has that.
type View = (&'static str, fn() -> &'static str, fn(&Model) -> bool);

/// Views of one trace that may be empty.
const VIEWS: &[View] = &[
    ("steps", || record("steps"), |model| !model.steps().all.is_empty() || !model.recording().is_empty()),
    ("operators", || record("operators"), has_operators),
    ("modules", || record("module_tree"), has_modules),
    ("gpu", || record("gpu"), |model| !model.device_work().is_empty()),
    ("kernels", || record("kernels"), |model| has(model, Category::is_device)),
    ("copies", || record("copies"), |model| has(model, is_copy)),
    ("functions", || record("functions"), has_functions),
    ("source", || record("source"), has_source_lines),
    ("flame", || flame::RECORD, |model| has_samples(model) || has_role(model, Role::is_host)),
    (
        "memory",
        || memory::RECORD,
        |model| !model.memory_events().is_empty() || !model.process_memory().processes.is_empty(),
    ),
];

/// What the views have of a trace that is one of so many, and with so many in the job.
pub(crate) fn contents(model: &Model, traces: usize, together: usize) -> Vec<ViewContent> {
    let view = |view: &str, filled: bool, record: &str| ViewContent {
        view: view.to_owned(),
        filled,
        record: record.to_owned(),
    };
    let mut views: Vec<ViewContent> =
        VIEWS.iter().map(|(name, record, test)| view(name, test(model), record())).collect();
    // Whether the others in the folder are ranks is known once they are open: until then they may be.
    let ranks = together > 1 || has_ranks(model);
    views.push(view("ranks", ranks, several::RECORD_RANKS));
    views.push(view("compare", traces > 1, several::RECORD_TWO));
    views
}

/// The steps of a trace, for those who choose a range of them.
pub(crate) fn step_bands(model: &Model) -> Vec<Band> {
    let band = |step: &Step| Band {
        name: step.number.to_string(),
        begin: step.begin.0,
        end: step.begin.plus(step.duration).0,
    };
    model.steps().all.iter().map(band).collect()
}

fn record(report: &str) -> &'static str {
    Report::named(report).map_or("", |report| report.record)
}

/// Where nothing but memory was recorded, the table tells.
fn has_operators(model: &Model) -> bool {
    has_role(model, |role| role.is_host() && role != Role::Python)
        || model.averages().rows.iter().any(|row| row.device == DeviceKind::Cpu)
}

fn has_role(model: &Model, wanted: impl Fn(Role) -> bool) -> bool {
    model.spans().ids().any(|span| wanted(model.role(span)))
}

fn has(model: &Model, wanted: impl Fn(Category) -> bool) -> bool {
    let spans = model.spans();
    let is_wanted: Vec<bool> = model.categories().map(|(_, _, category)| wanted(category)).collect();
    let is_span = |span| is_wanted.get(spans.category(span).index()) == Some(&true);
    is_wanted.contains(&true) && spans.ids().any(is_span)
}

fn is_copy(category: Category) -> bool {
    matches!(category, Category::Memcpy | Category::Memset)
}

fn has_samples(model: &Model) -> bool {
    !model.profile().samples.is_empty()
}

fn has_functions(model: &Model) -> bool {
    !model.profile().calls.is_empty()
        || has_samples(model)
        || has(model, |category| category == Category::PythonFunction)
}

fn has_modules(model: &Model) -> bool {
    let named: Vec<bool> = model.strings().iter().map(|name| name.starts_with("nn.Module: ")).collect();
    let is_module = |span: SpanId| named[model.spans().name(span).index()];
    named.contains(&true)
        && model.spans().ids().any(|span| is_module(span) && model.role(span) == Role::Python)
}
