//! Traces as one self-contained page: the web app with its answers in it, to be sent to somebody. It asks nobody for anything.
//!
//! What is asked for with numbers of its own (a range) cannot be answered in advance; all else can. Where a trace is large the page has
//! less of it, and says at the top of what.

use hotspan_analyze::Model;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use hotspan_analyze::call_tree::timed_threads;
use hotspan_analyze::overview::{damage, missing};
use hotspan_analyze::ranks::RankSummary;
use hotspan_formats::worker;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::api::{Picture, Run, RunList};
use crate::assets;
use crate::contents::contents;
use crate::curves::curves;
use crate::details::Drawn;
use crate::findings::findings;
use crate::flame::{compared, flame, in_time_order, sandwiches, tree};
use crate::flows::FlowIndex;
use crate::held::held_spans;
use crate::memory::memory;
use crate::reports::{report_page, shortened};
use crate::several::{WAYS, compare_page, on_one_clock, ranks_of, ranks_page, together, waterfall_data};
use crate::source::source;
use crate::timeline::Timeline;
use crate::verdicts::verdict_data;

/// What the timeline of a page takes at most; it is as fine as that allows.
const MOST_BYTES: usize = 3_000_000;
const MOST_ROWS: usize = 2000;
const MOST_TRACES: usize = 16;
/// Of more traces than these not every one is compared with every other.
const MOST_COMPARED: usize = 4;
/// Functions that have a sandwich: those with most time of their own.
const SANDWICHES: usize = 30;
const THREADS: usize = 8;
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// Makes the page of some traces; `None` when the program was built without the web app. Source text is put in only
/// where asked for: a trace may name files that are not meant to be sent to anybody.
#[must_use]
pub fn static_page(traces: &[(PathBuf, Model)], with_source: bool) -> Option<String> {
    let (script, style) = (assets::with_ending(".js")?, assets::with_ending(".css")?);
    let data = serde_json::to_string(&answers(traces, with_source)).ok()?;
    // In JSON `<` occurs in strings only; written as an escape it can end no element.
    let data = data.replace('<', "\\u003c");
    Some(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>hotspan</title>\
         <link rel=\"icon\" href=\"data:,\">\
         <style>{style}</style></head><body><div id=\"app\"></div>\
         <script type=\"application/json\" id=\"answers\">{data}</script>\
         <script type=\"module\">{}</script></body></html>\n",
        script.replace("</script", "<\\/script")
    ))
}

/// Answers by the question that the page asks.
#[derive(Default)]
struct Answers {
    known: Map<String, Value>,
}

impl Answers {
    fn add(&mut self, question: String, answer: &impl Serialize) {
        self.known.insert(question, json!(answer));
    }
}

fn answers(traces: &[(PathBuf, Model)], with_source: bool) -> Value {
    let shown = &traces[..traces.len().min(MOST_TRACES)];
    let mut answers = Answers::default();
    let runs: Vec<Run> = shown.iter().enumerate().map(|(id, (path, model))| run(id, path, model)).collect();
    let summaries: Vec<Vec<RankSummary>> = shown.iter().map(|(_, model)| ranks_of(model)).collect();
    for run in &runs {
        let ranks = together(&runs, run.id).into_iter().flat_map(|id| summaries[id as usize].clone());
        let page = shortened(ranks_page(&ranks.collect::<Vec<_>>()), MOST_ROWS);
        answers.add(format!("ranks?run={}", run.id), &page);
        let (model, count) = (&shown[run.id as usize].1, together(&runs, run.id).len());
        answers.add(format!("contents?run={}", run.id), &contents(model, runs.len(), count));
        let job = together(&runs, run.id).into_iter().map(|id| (id, &shown[id as usize].1));
        answers.add(format!("clocks?run={}", run.id), &on_one_clock(&runs, job));
    }
    answers.add("runs".to_owned(), &RunList { runs, note: Some(note(traces.len(), with_source)) });
    for (id, (_, model)) in shown.iter().enumerate() {
        of_trace(&mut answers, &format!("run/{id}"), model);
        if with_source {
            of_source(&mut answers, &format!("run/{id}"), model);
        }
    }
    let compare = &shown[..shown.len().min(MOST_COMPARED)];
    for (after, (_, second)) in compare.iter().enumerate() {
        for (before, (_, first)) in compare.iter().enumerate().filter(|&(before, _)| before != after) {
            let which = format!("before={before}&after={after}");
            for by in WAYS {
                let page = shortened(compare_page(first, second, by), MOST_ROWS);
                answers.add(format!("compare?{which}&by={by}"), &page);
            }
            answers.add(format!("compare/flame?{which}"), &compared(first, second));
            answers.add(format!("compare/waterfall?{which}"), &waterfall_data(first, second));
        }
    }
    Value::Object(answers.known)
}

/// What the page says of itself.
fn note(traces: usize, with_source: bool) -> String {
    let mut note = format!(
        "A page to share. Tables have up to {MOST_ROWS} rows; of a large trace, the timeline shows less detail and the spans that advice \
         points at. `hotspan view` on the trace itself shows everything."
    );
    if traces > MOST_TRACES {
        note.push_str(&format!(" The first {MOST_TRACES} of {traces} traces are here."));
    }
    if !with_source {
        note.push_str(" Source text was left out.");
    }
    note
}

fn run(id: usize, path: &Path, model: &Model) -> Run {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (worker, cycle) = worker(&file);
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    Run {
        id: id as u32,
        run: folder.unwrap_or_else(|| "report".to_owned()),
        worker: worker.to_owned(),
        cycle: cycle.map(str::to_owned),
        file: file.clone(),
        bytes: model.source().bytes,
        modified: 0,
    }
}

fn of_trace(answers: &mut Answers, run: &str, model: &Model) {
    for report in hotspan_analyze::reports() {
        let page = shortened(report_page(report, model, false), MOST_ROWS);
        answers.add(format!("{run}/table/{}", report.id), &page);
    }
    answers.add(format!("{run}/damage"), &damage(model));
    answers.add(format!("{run}/missing"), &missing(model));
    let advice = findings(model);
    answers.add(format!("{run}/advice"), &advice);
    answers.add(format!("{run}/verdict"), &verdict_data(model));
    answers.add(format!("{run}/curves"), &curves(model));
    answers.add(format!("{run}/memory"), &shortened(memory(model, None), MOST_ROWS));
    let calls = tree(model);
    answers.add(format!("{run}/flame"), &flame(&calls));
    for (function, sandwich) in sandwiches(&calls, SANDWICHES).enumerate() {
        answers.add(format!("{run}/sandwich/{function}"), &sandwich);
    }
    answers.add(format!("{run}/flame/time"), &in_time_order(model, None));
    // The first is shown when none is named.
    for thread in timed_threads(model).iter().take(THREADS).skip(1) {
        let id = thread.track.0;
        answers.add(format!("{run}/flame/time?thread={id}"), &in_time_order(model, Some(id)));
    }
    let timeline = Timeline::of(model);
    let info = timeline.info(model);
    let tracks: Vec<u32> = info.tracks.iter().map(|track| track.id).collect();
    let (level, bytes, is_exact) = timeline.picture(model, &tracks, MOST_BYTES);
    let drawn = Drawn { model, timeline: &timeline, flows: &FlowIndex::of(model) };
    answers.add(format!("{run}/held"), &held_spans(drawn, &info, is_exact, &advice));
    answers.add(format!("{run}/timeline"), &info);
    answers.add(format!("{run}/picture"), &Picture { level, data: BASE64_STANDARD.encode(&bytes) });
}

/// The files that have lines with numbers.
fn of_source(answers: &mut Answers, run: &str, model: &Model) {
    let lines = model.source_lines();
    let mut files: Vec<&str> = lines.keys().map(|line| line.file.as_str()).collect();
    files.dedup();
    for file in files {
        if let Ok(text) = source(model, file) {
            answers.add(format!("{run}/source?file={}", encoded(file)), &text);
        }
    }
}

/// A text as `encodeURIComponent` writes it, which is how the page asks.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'!'
            | b'~'
            | b'*'
            | b'\''
            | b'('
            | b')' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_policy_fits_an_attribute() {
        assert!(!super::POLICY.contains('"'));
    }

    #[test]
    fn questions_are_written_as_the_page_writes_them() {
        assert_eq!(super::encoded("/a b/ü.py"), "%2Fa%20b%2F%C3%BC.py");
    }
}
