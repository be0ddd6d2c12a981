//! Which address answers with what. Below the secret there are the files of the web app and `api/`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::StatusCode;
use hotspan_analyze::Report;
use hotspan_analyze::intervals::Interval;
use hotspan_analyze::ranks::RankSummary;
use hotspan_analyze::within::{within, within_table};
use hotspan_store::{SpanId, Timestamp};

use crate::assets;
use crate::curves::curves;
use crate::details::{details, sampled_call};
use crate::error::Refusal;
use crate::exports::export;
use crate::findings::findings;
use crate::flame::{compared, flame, in_time_order, sandwich};
use crate::memory::memory;
use crate::opened::{Answer, Opened, json};
use crate::reports::{report_page, table_data};
use crate::server::Shared;
use crate::several::{compare_page, ranks_page};
use crate::source::source;
use crate::timeline::{COARSEST, Which};

/// Traces compared as ranks at most; each is opened.
const MOST_RANKS: usize = 64;

/// What is sent.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Bytes,
}

type Parameters = HashMap<String, String>;

/// Answers a request for `path`, which is what follows the secret.
pub(crate) fn answer(shared: &Shared, path: &str, query: &str) -> Result<Content, Refusal> {
    let Some(call) = path.strip_prefix("api/") else {
        let (bytes, kind) =
            assets::file(path).ok_or_else(|| Refusal::not_found(format!("There is no page {path}.")))?;
        return Ok(Content { kind, bytes: Bytes::from_static(bytes) });
    };
    let uri = format!("/?{query}").parse().map_err(|_| bad("The address cannot be read."))?;
    let Query(parameters) =
        Query::<Parameters>::try_from_uri(&uri).map_err(|error| bad(error.to_string()))?;
    let parts: Vec<&str> = call.split('/').collect();
    let bytes = match parts.as_slice() {
        ["runs"] => json(&shared.catalogue.list()),
        ["compare"] => comparison(shared, &parameters),
        ["compare", "flame"] => compared_flame(shared, &parameters),
        ["ranks"] => ranks(shared, &parameters),
        ["run", id, rest @ ..] => {
            let id = id.parse().map_err(|_| bad("The number of a trace was expected."))?;
            let opened = shared.shelf.get(&shared.catalogue, id)?;
            if rest == ["tile"] {
                return tile(&opened, &parameters);
            }
            let opened = in_range(&opened, &parameters)?;
            if let ["export", format] = rest {
                return export(&opened.trace, format);
            }
            of_run(&opened, rest, &parameters)
        }
        _ => Err(Refusal::not_found(format!("There is nothing at api/{call}."))),
    }?;
    Ok(Content { kind: "application/json", bytes })
}

fn of_run(opened: &Opened, parts: &[&str], parameters: &Parameters) -> Answer {
    let trace = &opened.trace;
    match parts {
        ["table", name] => {
            let report = Report::named(name)
                .ok_or_else(|| Refusal::not_found(format!("There is no table {name}.")))?;
            opened.answer(name, || json(&report_page(report, trace)))
        }
        ["advice"] => opened.answer("advice", || json(&findings(trace))),
        ["curves"] => opened.answer("curves", || json(&curves(trace))),
        ["timeline"] => opened.answer("timeline", || json(&opened.timeline().info(trace))),
        ["span", id] => {
            let id = id.parse().map_err(|_| bad("The number of a span was expected."))?;
            let found = details(opened, SpanId(id));
            json(&found.ok_or_else(|| Refusal::not_found(format!("There is no span {id}.")))?)
        }
        ["call"] => {
            let [track, depth] = [number(parameters, "track")?, number(parameters, "depth")?];
            let place = u32::try_from(track).ok().zip(u32::try_from(depth).ok());
            let time = number(parameters, "at")?;
            let found = place.and_then(|(track, depth)| sampled_call(opened, track, depth, time));
            json(&found.ok_or_else(|| Refusal::not_found("No sample was taken there."))?)
        }
        ["search"] => {
            let text = parameters.get("text").map_or("", String::as_str);
            let which = match number(parameters, "number") {
                Ok(number) => Which::Number(number),
                Err(_) => Which::After(number(parameters, "after").unwrap_or(i64::MIN)),
            };
            json(&opened.timeline().find(trace, text, which))
        }
        ["within"] => {
            let (from, to) = (number(parameters, "from")?, number(parameters, "to")?);
            let rows = within(trace, Interval::new(Timestamp(from), Timestamp(to)));
            json(&table_data(&within_table(trace, &rows)))
        }
        _ => of_view(opened, parts, parameters),
    }
}

/// The views that are neither tables nor the timeline.
fn of_view(opened: &Opened, parts: &[&str], parameters: &Parameters) -> Answer {
    let trace = &opened.trace;
    let text = |name: &str| parameters.get(name).map_or("", String::as_str);
    match parts {
        ["flame"] => opened.answer("flame", || json(&flame(opened.tree()))),
        ["flame", "time"] => json(&in_time_order(trace, text("thread").parse().ok())),
        ["sandwich", place] => {
            let found = place.parse().ok().and_then(|place| sandwich(opened.tree(), place));
            json(&found.ok_or_else(|| Refusal::not_found(format!("There is no function {place}.")))?)
        }
        ["source"] => json(&source(trace, text("file"))?),
        ["memory"] => {
            let window = match (number(parameters, "from"), number(parameters, "to")) {
                (Ok(from), Ok(to)) => Some(Interval::new(Timestamp(from), Timestamp(to))),
                _ => None,
            };
            json(&memory(trace, window))
        }
        _ => Err(Refusal::not_found("There is nothing at this address.".to_owned())),
    }
}

/// The trace, or the stretch of it that was asked for with `begin` and `end`.
fn in_range(opened: &Arc<Opened>, parameters: &Parameters) -> Result<Arc<Opened>, Refusal> {
    if !parameters.contains_key("begin") {
        return Ok(Arc::clone(opened));
    }
    let (begin, end) = (number(parameters, "begin")?, number(parameters, "end")?);
    Ok(opened.part(begin, end))
}

fn tile(opened: &Opened, parameters: &Parameters) -> Result<Content, Refusal> {
    let level = number(parameters, "level")?.clamp(0, COARSEST.into()) as u32;
    let tracks = parameters.get("tracks").map_or("", String::as_str);
    let tracks: Vec<u32> = tracks.split(',').filter_map(|id| id.parse().ok()).collect();
    let bytes = opened.timeline().tile(&opened.trace, &tracks, level, number(parameters, "index")?);
    Ok(Content { kind: "application/octet-stream", bytes })
}

fn two_traces(shared: &Shared, parameters: &Parameters) -> Result<(Arc<Opened>, Arc<Opened>), Refusal> {
    let open = |name: &str| {
        let id = u32::try_from(number(parameters, name)?)
            .map_err(|_| bad("The number of a trace was expected."))?;
        shared.shelf.get(&shared.catalogue, id)
    };
    Ok((open("before")?, open("after")?))
}

fn compared_flame(shared: &Shared, parameters: &Parameters) -> Answer {
    let (before, after) = two_traces(shared, parameters)?;
    json(&compared(&before.trace, &after.trace))
}

fn comparison(shared: &Shared, parameters: &Parameters) -> Answer {
    let (before, after) = two_traces(shared, parameters)?;
    json(&compare_page(&before.trace, &after.trace, parameters.get("by").map_or("", String::as_str)))
}

fn ranks(shared: &Shared, parameters: &Parameters) -> Answer {
    let ids = parameters.get("runs").map_or("", String::as_str);
    let mut summaries = Vec::new();
    for id in ids.split(',').filter_map(|id| id.parse().ok()).take(MOST_RANKS) {
        summaries.push(RankSummary::of(&shared.shelf.get(&shared.catalogue, id)?.trace));
    }
    json(&ranks_page(&summaries))
}

fn number(parameters: &Parameters, name: &str) -> Result<i64, Refusal> {
    let value =
        parameters.get(name).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
    value.map(|value| value as i64).ok_or_else(|| bad(format!("The address needs {name}=<number>.")))
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}
