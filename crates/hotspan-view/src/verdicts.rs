//! The verdict as the page shows it.

use hotspan_analyze::Model;
use hotspan_analyze::verdict::{Bar, Part, TypicalStep};

use crate::api::{BarData, BarPart, VerdictData};

/// Where the time of a trace goes.
pub(crate) fn verdict_data(model: &Model) -> VerdictData {
    let found = model.verdict();
    let typical = found.as_ref().and_then(|found| found.typical.as_ref());
    VerdictData {
        sentence: found.as_ref().map(|found| found.sentence.clone()).unwrap_or_default(),
        source: found.as_ref().and_then(|found| found.source.clone()),
        view: found.as_ref().map_or("overview", |found| found.view).to_owned(),
        step: typical.and_then(|step| step.number),
        begin: typical.map_or(0, |step| step.begin.0),
        end: typical.map_or(0, |step| step.end.0),
        bars: typical.map(bars).unwrap_or_default(),
    }
}

fn bars(step: &TypicalStep) -> Vec<BarData> {
    let part = |bar: &Bar, part: &Part| BarPart {
        key: part.key.to_string(),
        title: part.title.to_string(),
        time: part.time.0,
        share: part.time.0 as f64 * 100.0 / bar.time.0.max(1) as f64,
        idle: part.is_idle,
    };
    let bar = |bar: &Bar| BarData {
        title: bar.title.clone(),
        time: bar.time.0,
        parts: bar.parts.iter().map(|known| part(bar, known)).collect(),
    };
    step.bars.iter().map(bar).collect()
}
