//! Advice: rules that look at a trace and say what to change, with evidence, source line and estimated gain.
//!
//! Each rule is a file in [`rules`]: its code, its documentation and its messages; `docs/advice.md` is made from them.
//! Gains of different findings may be about the same time, so they must not be added up.

mod context;
mod device;
mod docs;
mod finding;
mod loading;
mod need;
mod parallel;
mod report;
pub mod rules;

use hotspan_store::Duration;

use crate::model::Model;

pub use docs::documentation;
pub use finding::{Confidence, Evidence, Finding, Gain};
pub use need::Need;
pub use rules::RULES;

use context::Context;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, for command lines and ignore lists.
    pub id: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// What it finds.
    pub finds: &'static str,
    /// Why that costs time or memory.
    pub costs: &'static str,
    /// What to change.
    pub fix: &'static str,
    /// What it measures, its thresholds, and how the gain is estimated.
    pub measured: &'static str,
    /// What a trace must have for it.
    pub needs: &'static [Need],
    /// Looks at a trace.
    check: fn(&Context<'_>) -> Option<Finding>,
}

/// Which rules to ask.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only these; all when empty.
    pub only: Vec<String>,
    /// Not these.
    pub ignore: Vec<String>,
}

impl Selection {
    /// The first name that no rule has.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let exists = |id: &str| RULES.iter().any(|rule| rule.id == id);
        self.only.iter().chain(&self.ignore).map(String::as_str).find(|id| !exists(id))
    }

    fn takes(&self, rule: &Rule) -> bool {
        let names = |list: &[String]| list.iter().any(|id| id == rule.id);
        (self.only.is_empty() || names(&self.only)) && !names(&self.ignore)
    }
}

/// What the rules say about a trace.
#[derive(Debug)]
pub struct Advice {
    /// What was found, most gain first, where a gain counts by how sure it is.
    pub findings: Vec<(&'static Rule, Finding)>,
    /// Rules that could not look, and what they lacked.
    pub skipped: Vec<(&'static Rule, Need)>,
    /// The time that gains are a percentage of.
    pub whole: Duration,
    /// What that time is.
    pub basis: &'static str,
    /// How many steps it has; 0 where none are marked.
    pub steps: u64,
    /// Which process it is about, where that is not the one that was started, and why.
    pub about: Option<String>,
}

/// Asks the rules about a trace; of a program that starts others, about the process that does its work, as the report does.
#[must_use]
pub fn advise(model: &Model, selection: &Selection) -> Advice {
    let Some(job) = model.job() else { return judge(&Context::of(model), selection) };
    let mut advice = judge(&Context::of_job(job), selection);
    advice.about = Some(job.words.clone());
    let originals = job.spans_in(model);
    for row in advice.findings.iter_mut().flat_map(|(_, finding)| &mut finding.evidence) {
        row.span = row.span.and_then(|span| originals.get(span.index()).copied());
    }
    advice
}

fn judge(context: &Context<'_>, selection: &Selection) -> Advice {
    let met: Vec<bool> = Need::ALL.iter().map(|need| need.is_met(context)).collect();
    let lacks = |rule: &Rule| {
        let mut all = Need::ALL.into_iter().zip(&met);
        all.find(|(need, met)| !**met && rule.needs.contains(need)).map(|(need, _)| need)
    };
    let (mut findings, mut skipped) = (Vec::new(), Vec::new());
    for &rule in RULES.iter().filter(|rule| selection.takes(rule)) {
        match lacks(rule) {
            Some(need) => skipped.push((rule, need)),
            None => {
                let finding = (rule.check)(context);
                // What has no gain is not about time.
                let worth =
                    |finding: &Finding| finding.gain.as_ref().is_none_or(|gain| context.is_worth_it(gain));
                findings.extend(finding.filter(worth).map(|finding| (rule, finding)));
            }
        }
    }
    findings.sort_by(|(_, left), (_, right)| right.worth().total_cmp(&left.worth()));
    let steps = if context.steps.is_empty() { 0 } else { context.step_count() };
    Advice { findings, skipped, whole: context.whole, basis: context.basis(), steps, about: None }
}
