//! Views of several traces: two compared, and the ranks of a job.

use hotspan_analyze::Model;
use hotspan_analyze::Table;
use hotspan_analyze::diff::{By, diff};
use hotspan_analyze::overview::compare::compare as compare_runs;
use hotspan_analyze::ranks::{RankSummary, compare};

use crate::api::Page;
use crate::reports::page;

/// The ways two traces are compared, as requests call them.
pub(crate) const WAYS: [&str; 6] = ["overview", "op", "kernel", "function", "module", "shape"];

/// Two traces side by side.
pub(crate) fn compare_page(before: &Model, after: &Model, by: &str) -> Page {
    let by = match by {
        "op" => By::Operator,
        "kernel" => By::Kernel,
        "function" => By::Function,
        "module" => By::Module,
        "shape" => By::Shape,
        _ => {
            let by_title = |table: Table| Table { id: table.title.clone(), ..table };
            return page(compare_runs(before, after).report().into_iter().map(by_title).collect(), "");
        }
    };
    page(vec![diff(before, after, by).report(0, true)], "")
}

/// The ranks of a job side by side.
pub(crate) fn ranks_page(summaries: &[RankSummary]) -> Page {
    page(compare(summaries).report(), "one trace for each rank of a job, in one folder")
}
