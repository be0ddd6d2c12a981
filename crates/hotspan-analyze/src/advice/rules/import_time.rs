//! `import-time`: packages that take long to import, and that nothing was seen to use.

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, FrameKind, SampleRow, StackId};

use crate::advice::context::Context;
use crate::advice::finding::Tally;
use crate::advice::{Confidence, Finding, Need, Rule};
use crate::model::source::users_line;
use crate::wall_time::{is_importing, package};

pub(super) const RULE: Rule = Rule {
    id: "import-time",
    title: "Imports of packages that the run does not seem to need take long",
    finds: "Installed packages whose import took long, and in which no sample saw the program after that.",
    costs: "Each start of the program imports them again: of a command that runs for seconds, or of worker processes that are spawned, that is a large part.",
    fix: "Import them in the function that needs them, or not at all; `python -X importtime` lists every module.",
    measured: "Samples of the main thread in the import of a package, with all it imports that is not used either; reported when such packages take 5 % of the run and 0.3 s together. \
        What is used for less time than passes between two samples is not seen, so look before you remove an import. The gain is that time.",
    needs: &[Need::Program],
    check,
};

const LEAST: Duration = Duration(300_000_000);

fn check(context: &Context<'_>) -> Option<Finding> {
    let model = context.model;
    let main = context.main_thread()?;
    let process = model.track(main).process;
    let profile = model.profile();
    let mut known: HashMap<StackId, (bool, Vec<String>)> = HashMap::new();
    let mut seen = |row: &SampleRow| {
        let entry = known.entry(row.stack).or_insert_with(|| {
            let importing = is_importing(model, row.stack);
            (importing, packages(context, row.stack, importing))
        });
        entry.clone()
    };
    let mut used: HashSet<String> = HashSet::new();
    let mut importing: Vec<(usize, SampleRow, Vec<String>)> = Vec::new();
    for (index, row) in profile.samples.rows().enumerate().filter(|(_, row)| model.track(row.track).process == process) {
        match seen(&row) {
            (true, packages) if row.track == main => importing.push((index, row, packages)),
            (true, _) => {}
            (false, packages) => used.extend(packages),
        }
    }
    if Need::Operators.is_met(context) {
        used.insert("torch".to_owned());
    }
    let mut tally = Tally::default();
    for (index, row, packages) in importing {
        let Some(outermost) = packages.last() else { continue };
        if packages.iter().all(|package| !used.contains(package)) {
            tally.add_time(&format!("import {outermost}"), row.time, row.weight, users_line(model, index));
        }
    }
    let whole = model.wall_time().as_ref()?.total;
    let time = tally.time();
    let percent = time.0 as f64 * 100.0 / whole.0.max(1) as f64;
    if time < LEAST || percent < 5.0 {
        return None;
    }
    Some(Finding {
        message: format!("{percent:.0} % of the whole run goes to imports of packages in which nothing ran afterwards"),
        fix: "import them where they are needed, in the function, or not at all".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain_of_program(time, "the time of these imports, a share of the whole run"),
        confidence: Confidence::Low,
    })
}

/// The installed packages of a stack, innermost first: all of them, or those whose modules are being imported.
fn packages(context: &Context<'_>, stack: StackId, importing: bool) -> Vec<String> {
    let (model, profile) = (context.model, context.model.profile());
    let mut found = Vec::new();
    for frame in profile.stacks.frames(stack).map(|frame| profile.frames.row(frame)) {
        let (name, file) = (model.str(frame.name), model.str(frame.file));
        let is_module = frame.kind == FrameKind::Python && name == "<module>";
        if (is_module || !importing) && (file.contains("/site-packages/") || file.contains("/dist-packages/")) {
            found.push(package(file).trim_end_matches(".py").to_owned());
        }
    }
    found
}
