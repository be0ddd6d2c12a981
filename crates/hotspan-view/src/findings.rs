//! Advice as the page shows it.

use hotspan_analyze::Model;
use hotspan_analyze::advice::Finding;

use crate::api::{AdviceData, FindingData, GapData, SkippedData};
use crate::reports::table_data;

/// What the rules say about a trace.
pub(crate) fn findings(model: &Model) -> AdviceData {
    let advice = model.advice();
    let findings = advice.findings.iter().map(|(rule, finding)| FindingData {
        rule: rule.id.to_owned(),
        title: rule.title.to_owned(),
        message: finding.message.clone(),
        fix: finding.fix.clone(),
        source: finding.source().map(str::to_owned),
        gain: finding.gain.as_ref().map(|gain| gain.time.0),
        gain_percent: finding.gain.as_ref().map(|gain| gain.percent),
        gain_per_step: finding
            .gain
            .as_ref()
            .filter(|_| advice.steps > 0)
            .map(|gain| gain.time.0 / advice.steps as i64),
        confidence: finding.confidence.name().to_owned(),
        evidence: table_data(&finding.evidence_report()),
        gaps: gaps(finding),
    });
    let skipped = advice.skipped_by_need().into_iter().map(|(need, rules)| SkippedData {
        need: need.name().to_owned(),
        record: need.how_to_record().to_owned(),
        rules: rules.into_iter().map(str::to_owned).collect(),
    });
    AdviceData {
        findings: findings.collect(),
        skipped: skipped.collect(),
        basis: advice.basis.to_owned(),
        about: advice.about.clone(),
    }
}

fn gaps(finding: &Finding) -> Vec<GapData> {
    let gaps = finding.evidence.iter().enumerate().filter_map(|(row, evidence)| Some((row, evidence.gap?)));
    gaps.map(|(row, gap)| GapData { row: row as u32, begin: gap.begin.0, end: gap.end.0 }).collect()
}
