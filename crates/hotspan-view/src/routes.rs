//! Which address answers with what. Below the secret there are the files of the web app and `api/`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use hotspan_analyze::call_tree::Shape;
use hotspan_analyze::intervals::Interval;
use hotspan_analyze::overview::{damage, missing};
use hotspan_analyze::ranks::{RankSummary, describe_among, is_of_ranks};
use hotspan_analyze::within::{within, within_table};
use hotspan_analyze::{Door, Report};
use hotspan_store::{SpanId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::api::Beside;
use crate::assets;
use crate::contents::{contents, step_bands};
use crate::curves::curves;
use crate::details::{details, idle_time, sampled_call};
use crate::error::Refusal;
use crate::exports::export;
use crate::findings::findings;
use crate::flame::{FlameOptions, compared, in_time_order, matching, sandwich, shaped_flame};
use crate::memory::memory;
use crate::opened::{Answer, Area, Opened, json};
use crate::reports::{report_page, table_data};
use crate::server::Shared;
use crate::several::{compare_page, on_one_clock, ranks_of, ranks_page, together, waterfall_data};
use crate::source::source;
use crate::things::{thing, thing_of_ranks};
use crate::timeline::{self, COARSEST, Towards, Which};
use crate::verdicts::verdict_data;

/// Traces compared as ranks at most; each is opened.
const MOST_RANKS: usize = 64;
/// Tracks of a selected area at most.
const MOST_TRACKS: usize = 1000;

/// What is sent.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) kind: &'static str,
    pub(crate) bytes: Bytes,
}

impl IntoResponse for Content {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, self.kind)], self.bytes).into_response()
    }
}

type Reply = Result<Content, Refusal>;
type Route = MethodRouter<Arc<Shared>>;

const JSON: &str = "application/json";
const BINARY: &str = "application/octet-stream";

/// All addresses. The server has compared the secret before a handler runs.
pub(crate) fn router() -> Router<Arc<Shared>> {
    let run = Router::new()
        .route("/table/{name}", of_run(JSON, table))
        .route(
            "/advice",
            of_run(JSON, |opened, ()| opened.answer("advice", || json(&findings(&opened.model)))),
        )
        .route("/curves", of_run(JSON, |opened, ()| opened.answer("curves", || json(&curves(&opened.model)))))
        .route(
            "/verdict",
            of_run(JSON, |opened, ()| opened.answer("verdict", || json(&verdict_data(&opened.model)))),
        )
        .route("/steps", of_run(JSON, |opened, ()| json(&step_bands(&opened.model))))
        .route("/timeline", of_run(JSON, timeline))
        .route("/tile", of_run(BINARY, tile))
        .route("/span/{name}", of_run(JSON, span))
        .route("/call", of_run(JSON, call))
        .route("/search", of_run(JSON, search))
        .route("/same", of_run(JSON, same))
        .route("/beside", of_run(JSON, beside))
        .route("/within", of_run(JSON, table_within))
        .route("/flame", of_run(JSON, flame_of))
        .route("/flame/time", of_run(JSON, flame_in_time))
        .route("/flame/names", of_run(JSON, flame_names))
        .route("/sandwich/{name}", of_run(JSON, sandwich_of))
        .route("/source", of_run(JSON, source_of))
        .route("/memory", of_run(JSON, memory_of))
        .route("/damage", of_run(JSON, |opened, ()| json(&damage(&opened.model))))
        .route("/missing", of_run(JSON, |opened, ()| json(&missing(&opened.model))))
        .route("/progress", get(progress_of))
        .route("/thing", get(thing_of))
        .route("/export/{name}", of_run(BINARY, download));
    let api = Router::new()
        .route("/runs", of_all(|shared, ()| json(&shared.catalogue.list())))
        .route("/compare", of_all(comparison))
        .route("/compare/flame", of_all(compared_flame))
        .route("/compare/waterfall", of_all(waterfall_of))
        .route("/ranks", of_all(ranks))
        .route("/clocks", of_all(clocks))
        .route("/dropped", post(dropped))
        .route("/contents", of_all(contents_of))
        .nest("/run/{id}", run);
    Router::new().nest("/{secret}/api", api).fallback(file)
}

/// The number of a trace.
#[derive(Deserialize)]
struct Run {
    id: u32,
}

/// The part of a trace that is looked at, where it is not the whole.
#[derive(Deserialize)]
struct Stretch {
    begin: Option<Whole>,
    end: Option<Whole>,
    /// Tracks of the timeline, with commas.
    tracks: Option<String>,
}

/// Answers from a trace, or a stretch of it, and from what else the address says.
fn of_run<E>(kind: &'static str, work: fn(&Opened, E) -> Answer) -> Route
where
    E: FromRequestParts<Arc<Shared>> + Send + 'static,
{
    let handler = move |rest: E, State(shared): State<Arc<Shared>>, Path(run): Path<Run>, Query(stretch)| {
        blocking(kind, move || {
            let opened = shared.open(run.id)?;
            match stretch {
                Stretch { begin: None, .. } => work(&opened, rest),
                Stretch { begin: Some(begin), end: Some(end), tracks } => {
                    let tracks = tracks.map(|list| numbers(&list).take(MOST_TRACKS).collect());
                    work(&opened.part(&Area { from: begin.0, to: end.0, tracks }), rest)
                }
                Stretch { end: None, .. } => Err(bad("The address needs end=<number>.")),
            }
        })
    };
    get(handler)
}

/// What a row of a table stands for: the query is the row's door, and may name a stretch.
async fn thing_of(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<Run>,
    Query(query): Query<BTreeMap<String, String>>,
    Query(stretch): Query<Stretch>,
) -> Reply {
    blocking(JSON, move || {
        let mut door = Door { kind: String::new(), fields: query };
        door.kind = door.fields.remove("kind").unwrap_or_default();
        let range = match stretch {
            Stretch { begin: None, .. } => None,
            Stretch { begin: Some(begin), end: Some(end), .. } => Some((begin.0, end.0)),
            Stretch { end: None, .. } => return Err(bad("The address needs end=<number>.")),
        };
        for name in ["begin", "end"] {
            door.fields.remove(name);
        }
        if is_of_ranks(&door) {
            let found_among = describe_among(&summaries(&shared, run.id)?, &door);
            return found(found_among.map(thing_of_ranks), "There is no such thing among the ranks.");
        }
        let missing = match range {
            None => "There is no such thing in this trace.",
            Some(_) => "There is no such thing in the selected time.",
        };
        found(thing(&*shared.open(run.id)?, range, &door), missing)
    })
    .await
}

/// How far a trace is. It must not wait for the threads that read and compute.
async fn progress_of(State(shared): State<Arc<Shared>>, Path(run): Path<Run>) -> Reply {
    Ok(Content { kind: JSON, bytes: json(&shared.progress(run.id))? })
}

/// Takes a file that was dropped onto the page, and answers with the trace it is.
async fn dropped(
    State(shared): State<Arc<Shared>>,
    Query(Named { name }): Query<Named>,
    request: Request,
) -> Reply {
    let path = shared.catalogue.dropped.receive(&name, request.into_body()).await?;
    let name = shared.catalogue.dropped.name(&path).unwrap_or_default();
    Ok(Content { kind: JSON, bytes: json(&shared.catalogue.describe_dropped(&path, &name))? })
}

/// Answers from any number of traces.
fn of_all<E>(work: fn(&Shared, E) -> Answer) -> Route
where
    E: FromRequestParts<Arc<Shared>> + Send + 'static,
{
    get(move |rest: E, State(shared): State<Arc<Shared>>| blocking(JSON, move || work(&shared, rest)))
}

/// Opening and analysing take whole cores for a while; the listener goes on meanwhile.
async fn blocking(kind: &'static str, work: impl FnOnce() -> Answer + Send + 'static) -> Reply {
    let answer = tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        let message = "This analysis failed on this trace. Other views may work; please report it.";
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message))
    });
    Ok(Content { kind, bytes: answer? })
}

/// A number in an address. The page computes with fractions; what it means is whole.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Whole(i64);

impl TryFrom<f64> for Whole {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        if value.is_finite() { Ok(Self(value as i64)) } else { Err("the number is not finite") }
    }
}

/// The numbers in a list with commas.
fn numbers(list: &str) -> impl Iterator<Item = u32> {
    list.split(',').filter_map(|number| number.parse().ok())
}

fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}

/// A file of the web app.
async fn file(uri: Uri) -> Reply {
    let (_, path) = uri.path().trim_start_matches('/').split_once('/').unwrap_or_default();
    let (bytes, kind) =
        assets::file(path).ok_or_else(|| Refusal::not_found(format!("There is nothing at {path}.")))?;
    Ok(Content { kind, bytes: Bytes::from_static(bytes) })
}

fn found<T: Serialize>(value: Option<T>, otherwise: &str) -> Answer {
    json(&value.ok_or_else(|| Refusal::not_found(otherwise))?)
}

/// The name or number of something in a trace.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Whose code is wanted: `1` for the user's alone.
#[derive(Deserialize)]
struct Whose {
    #[serde(default)]
    mine: u8,
}

fn table(
    opened: &Opened,
    (Path(Named { name }), Query(Whose { mine })): (Path<Named>, Query<Whose>),
) -> Answer {
    let report =
        Report::named(&name).ok_or_else(|| Refusal::not_found(format!("There is no table {name}.")))?;
    let my_code = mine == 1;
    let key = if my_code { format!("{name} mine") } else { name };
    opened.answer(&key, || json(&report_page(report, &opened.model, my_code)))
}

fn timeline(opened: &Opened, (): ()) -> Answer {
    opened.answer("timeline", || json(&opened.timeline().info(&opened.model)))
}

#[derive(Deserialize)]
struct Tile {
    level: Whole,
    index: Whole,
    #[serde(default)]
    tracks: String,
}

fn tile(opened: &Opened, Query(tile): Query<Tile>) -> Answer {
    let level = tile.level.0.clamp(0, COARSEST.into()) as u32;
    let tracks: Vec<u32> = numbers(&tile.tracks).collect();
    Ok(opened.timeline().tile(&opened.model, &tracks, level, tile.index.0))
}

fn download(opened: &Opened, Path(Named { name }): Path<Named>) -> Answer {
    export(&opened.model, &name).map(|content| content.bytes)
}

fn span(opened: &Opened, Path(Named { name }): Path<Named>) -> Answer {
    let id = name.parse().map_err(|_| bad("The number of a span was expected."))?;
    found(details(opened.drawn(), SpanId(id)), &format!("There is no span {id}."))
}

#[derive(Deserialize)]
struct SampledCall {
    track: u32,
    depth: u32,
    at: Whole,
}

fn call(opened: &Opened, Query(call): Query<SampledCall>) -> Answer {
    let details = idle_time(opened.drawn(), call.track, call.at.0);
    let details = details.or_else(|| sampled_call(opened.drawn(), call.track, call.depth, call.at.0));
    found(details, "No sample was taken there.")
}

#[derive(Deserialize)]
struct SpanAt {
    track: u32,
    depth: u16,
    at: Whole,
}

#[derive(Deserialize)]
struct Steps {
    step: Whole,
}

/// The next or the previous span of the same name.
fn same(opened: &Opened, (Query(span), Query(Steps { step })): (Query<SpanAt>, Query<Steps>)) -> Answer {
    let timeline = opened.timeline();
    let lane = timeline.lanes(span.track).and_then(|lanes| lanes.lanes.get(usize::from(span.depth)));
    let piece = lane.and_then(|lane| lane.at(span.at.0));
    let piece = piece.ok_or_else(|| Refusal::not_found("There is no span there."))?;
    let which = Which::Beside(piece.begin, span.track, span.depth, step.0);
    let query = timeline::Query::Name(piece.name);
    json(&timeline.find(&opened.model, query, which))
}

#[derive(Deserialize)]
struct Direction {
    to: Towards,
}

/// The span to the left or right of another, around it or within it.
fn beside(
    opened: &Opened,
    (Query(span), Query(Direction { to })): (Query<SpanAt>, Query<Direction>),
) -> Answer {
    let hit = opened.timeline().beside(&opened.model, span.track, span.depth.into(), span.at.0, to);
    json(&Beside { hit })
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    text: String,
    number: Option<Whole>,
    after: Option<Whole>,
    /// Whether the text is a regular expression, and whether args are searched: `1` for yes.
    #[serde(default)]
    pattern: u8,
    #[serde(default)]
    args: u8,
}

fn search(opened: &Opened, Query(search): Query<Search>) -> Answer {
    let after = search.after.map_or(i64::MIN, |after| after.0);
    let which = search.number.map_or(Which::After(after), |number| Which::Number(number.0));
    let (is_pattern, in_args) = (search.pattern == 1, search.args == 1);
    let query = timeline::Query::Text { text: search.text, is_pattern, in_args };
    json(&opened.timeline().find(&opened.model, query, which))
}

#[derive(Deserialize)]
struct Window {
    from: Option<Whole>,
    to: Option<Whole>,
}

impl Window {
    fn interval(&self) -> Option<Interval> {
        Some(Interval::new(Timestamp(self.from?.0), Timestamp(self.to?.0)))
    }
}

fn table_within(opened: &Opened, Query(window): Query<Window>) -> Answer {
    let interval =
        window.interval().ok_or_else(|| bad("The address needs from=<number> and to=<number>."))?;
    json(&table_data(&within_table(&opened.model, &within(&opened.model, interval))))
}

fn memory_of(opened: &Opened, Query(window): Query<Window>) -> Answer {
    json(&memory(&opened.model, window.interval()))
}

#[derive(Deserialize)]
struct Thread {
    thread: Option<u32>,
}

/// What of a flame graph is left out, and whether it is turned: `1` for yes.
#[derive(Deserialize)]
struct FlameShape {
    #[serde(default)]
    inverted: u8,
    #[serde(default)]
    mine: u8,
    #[serde(default)]
    recorder: u8,
    #[serde(default)]
    imports: u8,
    #[serde(default)]
    busy: u8,
}

fn flame_of(opened: &Opened, Query(wanted): Query<FlameShape>) -> Answer {
    let options = FlameOptions {
        shape: Shape {
            inverted: wanted.inverted == 1,
            my_code: wanted.mine == 1,
            without_recorder: wanted.recorder == 1,
            collapsed_imports: wanted.imports == 1,
        },
        busy_only: wanted.busy == 1,
    };
    opened
        .answer(&format!("flame {options:?}"), || json(&shaped_flame(&opened.model, opened.tree(), &options)))
}

#[derive(Deserialize)]
struct Pattern {
    #[serde(default)]
    text: String,
}

fn flame_names(opened: &Opened, Query(Pattern { text }): Query<Pattern>) -> Answer {
    json(&matching(opened.tree(), &text))
}

fn flame_in_time(opened: &Opened, Query(Thread { thread }): Query<Thread>) -> Answer {
    json(&in_time_order(&opened.model, thread))
}

fn sandwich_of(opened: &Opened, Path(Named { name }): Path<Named>) -> Answer {
    let sandwich = name.parse().ok().and_then(|function| sandwich(opened.tree(), function));
    found(sandwich, &format!("There is no function {name}."))
}

#[derive(Deserialize)]
struct SourceFile {
    #[serde(default)]
    file: String,
}

fn source_of(opened: &Opened, Query(SourceFile { file }): Query<SourceFile>) -> Answer {
    json(&source(&opened.model, &file)?)
}

#[derive(Deserialize)]
struct TwoTraces {
    before: u32,
    after: u32,
    #[serde(default)]
    by: String,
}

fn comparison(shared: &Shared, Query(two): Query<TwoTraces>) -> Answer {
    json(&compare_page(&shared.open(two.before)?.model, &shared.open(two.after)?.model, &two.by))
}

fn compared_flame(shared: &Shared, Query(two): Query<TwoTraces>) -> Answer {
    json(&compared(&shared.open(two.before)?.model, &shared.open(two.after)?.model))
}

fn waterfall_of(shared: &Shared, Query(two): Query<TwoTraces>) -> Answer {
    json(&waterfall_data(&shared.open(two.before)?.model, &shared.open(two.after)?.model))
}

#[derive(Deserialize)]
struct RanksWith {
    run: u32,
}

fn contents_of(shared: &Shared, Query(RanksWith { run }): Query<RanksWith>) -> Answer {
    let runs = shared.catalogue.list().runs;
    let model = &shared.open(run)?.model;
    json(&contents(model, runs.len(), together(&runs, run).len()))
}

fn ranks(shared: &Shared, Query(RanksWith { run }): Query<RanksWith>) -> Answer {
    json(&ranks_page(&summaries(shared, run)?))
}

/// The traces of the job that a trace belongs to, on one clock.
fn clocks(shared: &Shared, Query(RanksWith { run }): Query<RanksWith>) -> Answer {
    let runs = shared.catalogue.list().runs;
    let mut traces = Vec::new();
    for id in together(&runs, run).into_iter().take(MOST_RANKS) {
        traces.push((id, shared.open(id)?));
    }
    json(&on_one_clock(&runs, traces.iter().map(|(id, opened)| (*id, &opened.model))))
}

/// The ranks of the job that a trace belongs to.
fn summaries(shared: &Shared, run: u32) -> Result<Vec<RankSummary>, Refusal> {
    let mut summaries = Vec::new();
    for id in together(&shared.catalogue.list().runs, run).into_iter().take(MOST_RANKS) {
        summaries.extend(ranks_of(&shared.open(id)?.model));
    }
    Ok(summaries)
}

#[cfg(test)]
mod tests {
    #[test]
    fn routes_do_not_contradict_each_other() {
        // It panics where they do.
        let _router = super::router();
    }
}
