//! Advice as Python sees it: findings as tuples, which `hotspan.advice` gives their names.

use hotspan_analyze::Model;
use hotspan_analyze::advice::{Selection, advise};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What, count, nanoseconds, bytes, when, source.
type EvidenceRow = (String, u64, i64, Option<i64>, Option<i64>, Option<String>);
/// Rule, title, message, fix, source, gain: nanoseconds, percent, how; confidence; evidence.
type FindingRow = (
    &'static str,
    &'static str,
    String,
    String,
    Option<String>,
    Option<(i64, f64, &'static str)>,
    &'static str,
    Vec<EvidenceRow>,
);
/// What is lacking, how to record it, the rules that need it.
type SkippedRow = (&'static str, &'static str, Vec<&'static str>);

/// Findings, rules that could not look, and all of it as text.
pub(crate) type AdviceRows = (Vec<FindingRow>, Vec<SkippedRow>, String);

pub(crate) fn ask(
    py: Python<'_>,
    model: &Model,
    only: Vec<String>,
    ignore: Vec<String>,
) -> PyResult<AdviceRows> {
    let selection = Selection { only, ignore };
    if let Some(name) = selection.unknown() {
        return Err(PyValueError::new_err(format!(
            "no rule is called {name:?}; `hotspan advise --docs` lists them"
        )));
    }
    let advice = py.detach(|| advise(model, &selection));
    let text = hotspan::advice_text(&advice);
    let skipped = advice.skipped_by_need();
    let skipped =
        skipped.into_iter().map(|(need, rules)| (need.name(), need.how_to_record(), rules)).collect();
    let mut findings = Vec::new();
    for (rule, finding) in advice.findings {
        let source = finding.source().map(str::to_owned);
        let evidence = finding.evidence.into_iter().map(|row| {
            let (bytes, at) = (row.bytes.map(|bytes| bytes.0), row.at.map(|at| at.0));
            (row.what, row.count, row.time.0, bytes, at, row.source)
        });
        findings.push((
            rule.id,
            rule.title,
            finding.message,
            finding.fix,
            source,
            finding.gain.map(|gain| (gain.time.0, gain.percent, gain.how)),
            finding.confidence.name(),
            evidence.collect(),
        ));
    }
    Ok((findings, skipped, text))
}
