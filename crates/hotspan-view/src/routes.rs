//! Which address answers with what. Below the secret there are the files of the web app and `api/`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::StatusCode;
use hotspan_analyze::diff::{By, diff};
use hotspan_analyze::intervals::Interval;
use hotspan_analyze::ranks::{RankSummary, compare};
use hotspan_analyze::within::{within, within_table};
use hotspan_store::{SpanId, Timestamp};

use crate::api::{Page, Section};
use crate::assets;
use crate::curves::curves;
use crate::details::{details, sampled_call};
use crate::error::Refusal;
use crate::findings::findings;
use crate::flame::flame;
use crate::opened::{Answer, Opened, json};
use crate::reports::{Report, table_data};
use crate::server::Shared;
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
        ["ranks"] => ranks(shared, &parameters),
        ["run", id, rest @ ..] => {
            let id = id.parse().map_err(|_| bad("The number of a trace was expected."))?;
            let opened = shared.shelf.get(&shared.catalogue, id)?;
            if rest == ["tile"] {
                return tile(&opened, &parameters);
            }
            of_run(&*in_range(&opened, &parameters)?, rest, &parameters)
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
            opened.answer(name, || json(&report.page(trace)))
        }
        ["advice"] => opened.answer("advice", || json(&findings(trace))),
        ["flame"] => opened.answer("flame", || json(&flame(trace))),
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

fn comparison(shared: &Shared, parameters: &Parameters) -> Answer {
    let open = |name: &str| {
        let id = u32::try_from(number(parameters, name)?)
            .map_err(|_| bad("The number of a trace was expected."))?;
        shared.shelf.get(&shared.catalogue, id)
    };
    let (before, after) = (open("before")?, open("after")?);
    let by = match parameters.get("by").map(String::as_str) {
        Some("kernel") => By::Kernel,
        Some("function") => By::Function,
        Some("module") => By::Module,
        Some("shape") => By::Shape,
        _ => By::Operator,
    };
    let table = diff(&before.trace, &after.trace, by).report(0, true);
    let section = Section { key: "rows".to_owned(), table: table_data(&table) };
    json(&Page { sections: vec![section], record: String::new() })
}

fn ranks(shared: &Shared, parameters: &Parameters) -> Answer {
    let ids = parameters.get("runs").map_or("", String::as_str);
    let mut summaries = Vec::new();
    for id in ids.split(',').filter_map(|id| id.parse().ok()).take(MOST_RANKS) {
        summaries.push(RankSummary::of(&shared.shelf.get(&shared.catalogue, id)?.trace));
    }
    let tables = compare(&summaries).report();
    let filled = tables.iter().filter(|(_, table)| !table.rows.is_empty());
    let sections = filled.map(|(key, table)| Section { key: (*key).to_owned(), table: table_data(table) });
    let record = "one trace for each rank of a job, in one folder";
    json(&Page { sections: sections.collect(), record: record.to_owned() })
}

fn number(parameters: &Parameters, name: &str) -> Result<i64, Refusal> {
    let value =
        parameters.get(name).and_then(|text| text.parse::<f64>().ok()).filter(|value| value.is_finite());
    value.map(|value| value as i64).ok_or_else(|| bad(format!("The address needs {name}=<number>.")))
}

fn bad(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}
