//! Every analysis and every exporter on one trace: none may panic, whatever the trace says.

use std::sync::Arc;

use hotspan_analyze::call_tree::{ShowOptions, time_order, timed_threads};
use hotspan_analyze::diff::{By, diff};
use hotspan_analyze::overview::compare::compare;
use hotspan_analyze::{
    FunctionEvent, FunctionEvents, Model, ReportOptions, TreeOptions, call_tree, describe, job, overview,
    ranks, reports,
};
use hotspan_formats::EXPORTERS;
use hotspan_store::Trace;

/// Runs everything. `choice` picks one of the costly parts, so that a run is short and many runs see all of them.
pub(crate) fn everything(trace: Trace, choice: u8) {
    let model = Model::new(trace);
    match choice % 8 {
        0 => {
            let overview = overview(&model);
            let _ = overview.report();
        }
        1 => {
            for report in reports() {
                let tables = (report.tables)(&model, &ReportOptions::default()).unwrap_or_default();
                for door in tables.iter().flat_map(|table| table.doors.iter().flatten().take(4)) {
                    let _ = describe(&model, door);
                }
            }
        }
        2 => {
            for exporter in EXPORTERS {
                let _ = exporter.write(&model, &mut Vec::new());
            }
        }
        3 => {
            for options in [
                TreeOptions::default(),
                TreeOptions { lines: true, threads: true, busy_only: true, merge_steps: true },
            ] {
                let tree = call_tree(&model, &options);
                let _ = tree.report(&ShowOptions::default());
                for function in tree.functions().iter().take(4) {
                    let _ = tree.sandwich(&function.callee);
                }
            }
            for thread in timed_threads(&model).iter().take(2) {
                let _ = time_order(&model, thread.track);
            }
        }
        4 => {
            let again = Model::new(Arc::clone(model.trace()));
            let comparison = compare(&model, &again);
            let _ = (comparison.report(), comparison.in_words());
        }
        5 => {
            let again = Model::new(Arc::clone(model.trace()));
            let _ = diff(&model, &again, By::Operator);
            let _ = ranks::compare(&job::ranks(&model));
        }
        6 => {
            let events = FunctionEvents::of(&model);
            for event in events.list().iter().take(50) {
                let &FunctionEvent::Span(span) = event else { continue };
                let _ = (events.cpu_time(&model, span), events.self_cpu_time(&model, span));
                let _ = (events.device_time(&model, span), events.self_device_time(&model, span));
                let _ = (events.memory(&model, span), events.self_memory(&model, span));
                let _ = (events.scope(&model, span), events.stack(&model, span), events.name(&model, span));
            }
        }
        _ => {
            let merged = hotspan_store::merge(&[Arc::clone(model.trace()), Arc::clone(model.trace())]);
            let merged = Model::new(merged);
            for timeline in merged.memory_timeline() {
                let _ = (timeline.series(100), timeline.report(), timeline.by_category(1000));
            }
            let _ = overview(&merged).report();
        }
    }
}
