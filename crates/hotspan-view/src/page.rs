//! A trace as one self-contained page: the web app with its answers in it, to be sent to somebody. It asks nobody for anything.
//!
//! What is asked for with numbers of its own (a span, a search, a range) cannot be answered in advance. The timeline has every span of a
//! small trace; of a large one as much detail as a page can carry, and the page says so.

use std::path::Path;

use hotspan_store::Trace;
use serde_json::{Map, Value, json};

use crate::api::{Picture, Run, RunList};
use crate::assets;
use crate::base64::base64;
use crate::curves::curves;
use crate::findings::findings;
use crate::flame::{flame, tree};
use crate::reports::REPORTS;
use crate::timeline::Timeline;

/// What the timeline of a page takes at most; it is as fine as that allows.
const MOST_BYTES: usize = 3_000_000;
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";

/// Makes the page of a trace; `None` when the program was built without the web app.
#[must_use]
pub fn static_page(trace: &Trace, path: &Path) -> Option<String> {
    let (script, style) = (assets::with_ending(".js")?, assets::with_ending(".css")?);
    let data = serde_json::to_string(&answers(trace, path)).ok()?;
    // In JSON `<` occurs in strings only; written as an escape it can end no element.
    let data = data.replace('<', "\\u003c");
    Some(format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>hotspan</title>\
         <style>{style}</style></head><body><div id=\"app\"></div>\
         <script type=\"application/json\" id=\"answers\">{data}</script>\
         <script type=\"module\">{}</script></body></html>\n",
        script.replace("</script", "<\\/script")
    ))
}

fn answers(trace: &Trace, path: &Path) -> Value {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let run = Run {
        id: 0,
        run: "report".to_owned(),
        worker: file.clone(),
        cycle: None,
        file,
        bytes: trace.source().bytes,
        modified: 0,
    };
    let note = "A page to share: of a large trace the timeline shows less detail, and single spans cannot be looked into. \
                `hotspan view` on the trace itself shows everything."
        .to_owned();
    let mut answers = Map::new();
    answers.insert("runs".to_owned(), json!(RunList { runs: vec![run], note: Some(note) }));
    for report in REPORTS {
        answers.insert(format!("run/0/table/{}", report.name), json!(report.page(trace)));
    }
    answers.insert("run/0/advice".to_owned(), json!(findings(trace)));
    answers.insert("run/0/flame".to_owned(), json!(flame(&tree(trace))));
    answers.insert("run/0/curves".to_owned(), json!(curves(trace)));
    let timeline = Timeline::of(trace);
    let info = timeline.info(trace);
    let tracks: Vec<u32> = info.tracks.iter().map(|track| track.id).collect();
    let (level, bytes) = timeline.picture(trace, &tracks, MOST_BYTES);
    let picture = Picture { level, data: base64(&bytes) };
    answers.insert("run/0/timeline".to_owned(), json!(info));
    answers.insert("run/0/picture".to_owned(), json!(picture));
    Value::Object(answers)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_policy_fits_an_attribute() {
        assert!(!super::POLICY.contains('"'));
    }
}
