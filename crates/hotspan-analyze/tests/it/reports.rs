//! Reports of a whole recording: every column says what it means, whatever table it is in.

use hotspan_analyze::diff::{By, diff};
use hotspan_analyze::ranks::{RankSummary, compare};
use hotspan_analyze::{ReportOptions, Table, reports};

use crate::kineto::golden_step;

#[test]
fn every_column_of_a_recording_has_its_sentence() {
    let trace = golden_step();
    let tables_of =
        |report: &hotspan_analyze::Report| (report.tables)(&trace, &ReportOptions::default()).unwrap();
    let mut tables: Vec<Table> = reports().flat_map(tables_of).collect();
    tables.push(diff(&trace, &trace, By::Operator).report(0, true));
    tables.extend(compare(&[RankSummary::of(&trace), RankSummary::of(&trace)]).report());
    assert!(tables.iter().any(|table| table.id == "roofline"), "the recording has device work");
    for table in &tables {
        for column in &table.declared {
            assert!(column.help.ends_with('.') && column.help.len() > 10, "{} {}", table.id, column.key);
        }
    }
}

#[test]
fn every_report_can_be_sorted_by_every_column_it_names() {
    let trace = golden_step();
    for report in reports().filter(|report| report.by.is_some()) {
        let table = (report.tables)(&trace, &ReportOptions::default()).unwrap().remove(0);
        for column in table.declared.iter().filter(|column| !column.sort_key.is_empty()) {
            let sort = Some(column.sort_key.to_owned());
            let sorted = (report.tables)(&trace, &ReportOptions { sort, ..ReportOptions::default() });
            assert_eq!(sorted.unwrap()[0].rows.len(), table.rows.len(), "{} {}", report.id, column.key);
        }
    }
}
