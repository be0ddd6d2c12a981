//! The documentation of all rules, as Markdown. `docs/advice.md` is this text.

use crate::advice::{Need, RULES};

const INTRODUCTION: &str = "\
# Advice

`hotspan advise FILE…` asks every rule on this page about a trace, whoever recorded it, and prints what they found, most gain first;
`trace.advise()` and `prof.advise()` do the same in Python. A finding has evidence (what, how often, how long, where in the
trace), the source line where the trace knows it (`with_stack=True`, or samples), an estimated gain and a confidence.

Gains are estimates of the time that could be saved at best, each for itself: several may be about the same time, so do not add
them up. They are a percentage of the time of all steps, or of the whole recording where no steps are marked. A first step that takes
more than twice as long as the others is warm-up and is left out.

A rule that lacks data does not guess: `hotspan advise` says which rules could not look, and how to record what they need.

    hotspan advise trace.json.gz
    hotspan advise trace.json.gz --only fp64-slow-path,numpy-round-trip
    hotspan advise trace.json.gz --fail-on any --ignore warm-up-in-window    # exit code 3 when something is found: for CI
    hotspan advise trace.json.gz --json
    hotspan advise --docs                                                    # this page, made from the rules

";

/// The page.
#[must_use]
pub fn documentation() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("| rule | what is wrong | needs |\n|---|---|---|\n");
    for rule in RULES {
        let needs: Vec<&str> = rule.needs.iter().map(|need| need.name()).collect();
        page.push_str(&format!("| [`{0}`](#{0}) | {1} | {2} |\n", rule.id, rule.title, needs.join(", ")));
    }
    page.push_str("\n## What rules need\n\n| data | how to record it |\n|---|---|\n");
    for need in Need::ALL {
        page.push_str(&format!("| {} | {} |\n", need.name(), need.how_to_record()));
    }
    for rule in RULES {
        page.push_str(&format!(
            "\n## {}\n\n{}.\n\n**Finds.** {}\n\n**Costs.** {}\n\n**Fix.** {}\n\n**Measured.** {}\n",
            rule.id, rule.title, rule.finds, rule.costs, rule.fix, rule.measured
        ));
    }
    page
}
