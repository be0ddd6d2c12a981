//! The reports of a trace: what `hotspan stats`, the dashboard and Python call by name. A file and a line in this list add one.
//!
//! A report declares its tables with [`Schema`](crate::report::schema::Schema); the numbers come from the analyses.

use crate::model::Model;
use crate::report::Table;
use crate::report::schema::{ReportOptions, SortError};

/// A report: tables made of a trace.
#[derive(Debug)]
pub struct Report {
    /// What programs call it.
    pub id: &'static str,
    /// What a row stands for and the name of that in `hotspan stats --by`, where it is one table.
    pub by: Option<(&'static str, &'static str)>,
    /// How to record what fills it.
    pub record: &'static str,
    /// Makes its tables.
    pub tables: fn(&Model, &ReportOptions) -> Result<Vec<Table>, SortError>,
}

macro_rules! reports {
    ($($file:ident,)*) => {
        $(pub mod $file;)*

        const FILES: &[&[Report]] = &[$($file::REPORTS,)*];
    };
}

reports! {
    overview,
    operators,
    calls,
    modules,
    kernels,
    copies,
    streams,
    steps,
    gpu,
    functions,
    lines,
    source,
    quality,
}

/// All reports.
pub fn reports() -> impl Iterator<Item = &'static Report> {
    FILES.iter().copied().flatten()
}

impl Report {
    /// The report of this name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        reports().find(|report| report.id == id)
    }

    /// The report that `hotspan stats --by` calls so.
    #[must_use]
    pub fn by(name: &str) -> Option<&'static Self> {
        reports().find(|report| report.by.is_some_and(|(by, _)| by == name))
    }
}

const TORCH: &str = "hotspan run train.py";
const DEVICE: &str = "hotspan run train.py    # on a machine with a GPU";
const SHAPES: &str =
    "with hotspan.profiler.profile(record_shapes=True, with_stack=True, with_modules=True) as prof: …";

#[cfg(test)]
mod tests {
    use hotspan_store::TraceBuilder;

    use super::*;

    #[test]
    fn names_are_unique_and_every_column_has_its_sentence() {
        let model = Model::new(TraceBuilder::new().finish());
        let (mut ids, mut names) = (Vec::new(), Vec::new());
        for report in reports() {
            ids.push(report.id);
            names.extend(report.by.map(|(name, _)| name));
            let tables = (report.tables)(&model, &ReportOptions::default()).unwrap();
            assert!(report.by.is_none() || tables.len() == 1, "{}", report.id);
            for column in tables.iter().flat_map(|table| &table.declared) {
                let is_sentence = column.help.ends_with('.') && column.help.len() > 10;
                assert!(is_sentence, "{} {}: {:?}", report.id, column.key, column.help);
            }
        }
        for mut all in [ids, names] {
            let count = all.len();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), count);
        }
    }
}
