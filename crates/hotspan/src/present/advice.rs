//! Advice for people and for programs: text, Markdown and JSON.

use hotspan_analyze::advice::{Advice, Finding, Rule};
use hotspan_store::visible;
use serde_json::{Value, json};

use super::{json_rows, markdown, text};

/// Advice as text: each finding with its fix, its gain and its evidence, then what could not be checked.
#[must_use]
pub fn advice_text(advice: &Advice) -> String {
    let mut out = heading(advice);
    for (number, (rule, finding)) in advice.findings.iter().enumerate() {
        out.push_str(&format!("\n{}. {}: {}\n", number + 1, rule.id, visible(&finding.message)));
        for (label, value) in details(finding) {
            out.push_str(&format!("   {label:<11} {value}\n"));
        }
        let mut evidence = finding.evidence_report();
        evidence.title.clear();
        for line in text(&evidence).lines() {
            out.push_str(&format!("     {line}\n"));
        }
    }
    out.push_str(&skipped(advice, ""));
    out
}

/// Advice as Markdown.
pub(crate) fn advice_markdown(advice: &Advice) -> String {
    let mut out = heading(advice);
    for (rule, finding) in &advice.findings {
        out.push_str(&format!("\n### {}\n\n{}\n\n", rule.id, visible(&finding.message)));
        for (label, value) in details(finding) {
            out.push_str(&format!("- {label}: {value}\n"));
        }
        let mut evidence = finding.evidence_report();
        evidence.title.clear();
        out.push_str(&format!("\n{}", markdown(&evidence)));
    }
    out.push_str(&skipped(advice, "- "));
    out
}

/// Advice as JSON: times in nanoseconds.
pub(crate) fn advice_json(advice: &Advice) -> Value {
    let finding = |(rule, finding): &(&Rule, Finding)| {
        let gain = finding.gain.as_ref();
        json!({
            "rule": rule.id,
            "title": rule.title,
            "message": finding.message,
            "fix": finding.fix,
            "source": finding.source(),
            "gain_ns": gain.map(|gain| gain.time.0),
            "gain_percent": gain.map(|gain| gain.percent),
            "gain_how": gain.map(|gain| gain.how),
            "confidence": finding.confidence.name(),
            "evidence": json_rows(&finding.evidence_report()),
        })
    };
    let skipped = advice
        .skipped_by_need()
        .into_iter()
        .map(|(need, rules)| json!({"lacks": need.name(), "record": need.how_to_record(), "rules": rules}));
    json!({
        "about": advice.about,
        "steps": advice.steps,
        "basis": advice.basis,
        "basis_ns": advice.whole.0,
        "findings": advice.findings.iter().map(finding).collect::<Value>(),
        "skipped": skipped.collect::<Value>(),
    })
}

fn heading(advice: &Advice) -> String {
    let basis = match advice.steps {
        0 => format!("{} of {}", advice.whole, advice.basis),
        1 => format!("{} of {} in 1 step", advice.whole, advice.basis),
        steps => format!("{} of {} in {steps} steps", advice.whole, advice.basis),
    };
    let found = match advice.findings.len() {
        0 => format!("Nothing found in {basis}.\n"),
        1 => format!("1 finding in {basis}.\n"),
        count => format!(
            "{count} findings in {basis}, most gain first. Gains may be about the same time: do not add them up.\n"
        ),
    };
    advice.about.iter().map(|about| format!("{about}\n")).chain([found]).collect()
}

fn details(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut rows = vec![("fix", visible(&finding.fix).into_owned())];
    if let Some(source) = finding.source() {
        rows.push(("source", visible(source).into_owned()));
    }
    if let Some(gain) = &finding.gain {
        rows.push(("gain", format!("up to {} ({:.1} %): {}", gain.time, gain.percent, gain.how)));
    }
    rows.push(("confidence", finding.confidence.name().to_owned()));
    rows
}

fn skipped(advice: &Advice, bullet: &str) -> String {
    let mut out = String::new();
    for (need, rules) in advice.skipped_by_need() {
        if out.is_empty() {
            out.push_str("\nNot checked:\n\n");
        }
        let (name, how) = (need.name(), need.how_to_record());
        out.push_str(&format!("{bullet}{}: the trace has no {name} ({how})\n", rules.join(", ")));
    }
    out
}
