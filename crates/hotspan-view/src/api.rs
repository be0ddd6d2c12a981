//! The shapes of the answers. The TypeScript the web app reads them with is made from this list: see [`typescript`].

use serde::Serialize;
use serde_json::Value;

/// Defines answers, and remembers their fields for [`typescript`].
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Serialize)]
            pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
        )*

        /// Their names and fields.
        pub(super) const ANSWERS: &[(&str, &[(&str, &str)])] = &[
            $((stringify!($name), &[$((stringify!($field), stringify!($kind)),)*]),)*
        ];
    };
}

mod things;
mod views;

pub use things::{BucketData, CallData, StackData, StepData, ThingData};
pub use views::{
    AdviceData, BarData, BarPart, CauseData, Curve, CurveLine, DotData, FindingData, FlameData, FlameNames,
    FlamePlace, FlameThread, GapData, SandwichData, SkippedData, SourceData, VerdictData, WaterfallData,
};

answers! {
    /// What went wrong.
    Problem {
        /// What.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    }
    /// Everything that can be opened.
    RunList {
        /// The traces, by folder and name.
        runs: Vec<Run>,
        /// What is worth saying about them.
        note: Option<String>,
    }
    /// A trace that can be opened.
    Run {
        /// What requests call it.
        id: u32,
        /// Its run: the folder it is in.
        run: String,
        /// Who wrote it: the beginning of its name.
        worker: String,
        /// Which of the worker's recordings it is, as its name tells.
        cycle: Option<String>,
        /// Its file name.
        file: String,
        /// Its size.
        bytes: u64,
        /// When it was last written, in seconds since 1970.
        modified: u64,
    }
    /// How far reading a trace has come, and what is being computed of it.
    ProgressData {
        /// Bytes of the file that have been read.
        bytes: u64,
        /// All bytes of the file; 0 where that is not known.
        total: u64,
        /// Events of the trace; nothing until it has been read.
        events: Option<u64>,
        /// What is being computed, in words.
        computing: Vec<String>,
    }
    /// What the clock of a trace says.
    ClockData {
        /// The trace.
        run: u32,
        /// What its rank is called.
        name: String,
        /// When it begins, in nanoseconds after the one that begins first; nothing where the trace does not say.
        offset: Option<i64>,
    }
    /// Whether a view has something to show.
    ViewContent {
        /// The view, as addresses call it.
        view: String,
        /// Whether it has.
        filled: bool,
        /// How to record what would fill it.
        record: String,
    }
    /// A view made of tables.
    Page {
        /// Its tables, with the name that programs call each by.
        sections: Vec<Section>,
        /// How to record what would fill it, where it is empty.
        record: String,
        /// What they say together, in sentences.
        words: Vec<String>,
    }
    /// A named table.
    Section {
        /// The name.
        key: String,
        /// The table.
        table: TableData,
    }
    /// A table.
    TableData {
        /// What it shows.
        title: String,
        /// Its columns.
        columns: Vec<ColumnData>,
        /// Its rows: bare numbers in the column's unit.
        rows: Vec<Vec<Cell>>,
        /// The unit of each row's numbers, where they stand in a column without one; empty where there is no such column.
        units: Vec<String>,
        /// What each row leads to, as the query of a request for a thing; empty for a row that leads nowhere.
        doors: Vec<String>,
    }
    /// A column.
    ColumnData {
        /// What programs call it.
        key: String,
        /// What people call it.
        title: String,
        /// `ns`, `bytes`, `percent`, `count`, `ordinal` (a number that names something), or empty.
        unit: String,
        /// What it means, in a sentence.
        help: String,
        /// Whether it stands on the right.
        numeric: bool,
    }
    /// What a timeline has.
    TimelineInfo {
        /// The first moment, in nanoseconds of the trace.
        begin: i64,
        /// The last.
        end: i64,
        /// Columns of a tile, as a power of two.
        columns: u32,
        /// Threads, streams and counters, in the order they are shown.
        tracks: Vec<TrackInfo>,
        /// Steps.
        steps: Vec<Band>,
        /// The kinds of spans, for colours.
        categories: Vec<String>,
        /// Spans nested too deeply to be drawn.
        hidden: u64,
        /// How to record what would fill it.
        record: String,
    }
    /// A thread or stream, what samples saw of one, or a counter.
    TrackInfo {
        /// What requests call it.
        id: u32,
        /// `spans`, `samples`, `idle` or `counter`.
        kind: String,
        /// The process it belongs to.
        process: String,
        /// Its name.
        name: String,
        /// Whether it is a row of a device.
        device: bool,
        /// How many rows of spans it needs.
        depth: u32,
        /// How many spans, calls or values it has; 0 for idle time, which is computed when it is first seen.
        spans: u64,
        /// The unit of a counter: `bytes`, `percent`, `count` or empty.
        unit: String,
        /// The smallest value of a counter, at most zero.
        least: f64,
        /// The largest value of a counter, at least zero.
        most: f64,
    }
    /// A stretch of time with a name.
    Band {
        /// Its name.
        name: String,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
    }
    /// What a tile of the timeline begins with; its columns follow as bytes.
    TileHead {
        /// Names and kinds that rectangles point to.
        looks: Vec<Look>,
        /// The tracks that were asked for.
        tracks: Vec<TileTrack>,
        /// The counters that were asked for.
        counters: Vec<TileCounter>,
    }
    /// The whole timeline in the form of one tile.
    Picture {
        /// Its level of detail.
        level: u32,
        /// The tile, in base 64.
        data: String,
    }
    /// The single spans of a page to share.
    HeldSpans {
        /// Whether every span and sampled call is there.
        all: bool,
        /// Those that are there, where not all of them are.
        spans: Vec<u32>,
        /// Answers about them by question, as JSON in gzip in base 64.
        data: String,
    }
    /// How a rectangle looks.
    Look {
        /// Its name; of several spans that of the longest.
        name: String,
        /// Its place among the kinds of spans.
        category: u32,
    }
    /// The rectangles of a track.
    TileTrack {
        /// Which.
        id: u32,
        /// How many there are in each lane.
        lanes: Vec<u32>,
    }
    /// The values of a counter.
    TileCounter {
        /// Which.
        id: u32,
        /// How many there are.
        count: u32,
    }
    /// Everything about a span.
    SpanDetails {
        /// The span; -1 for a call that samples saw.
        id: i64,
        /// Its name.
        name: String,
        /// Its kind, as the file spells it.
        category: String,
        /// Its process.
        process: String,
        /// Its thread or stream.
        track: String,
        /// The same, as requests call it.
        track_id: u32,
        /// Its lane.
        depth: u32,
        /// Its beginning.
        begin: i64,
        /// How long it took.
        duration: i64,
        /// What else was recorded, as text.
        args: Vec<ArgData>,
        /// What launched it, what it launched, its forward or backward operator.
        linked: Vec<Link>,
        /// The spans it is inside of, the outermost first; of device work those around its launch.
        stack: Vec<Caller>,
        /// The stack that samples saw at its beginning, the outermost frame first.
        sampled: Vec<Caller>,
        /// What it is one call of, as the query of a request for a thing; empty where there is no such thing.
        door: String,
    }
    /// What something was called from.
    Caller {
        /// The function or operator.
        name: String,
        /// File and line, where known.
        place: String,
        /// The span; -1 for a sampled frame.
        span: i64,
        /// Its track.
        track: u32,
        /// Its lane.
        depth: u32,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
    }
    /// Something recorded with a span.
    ArgData {
        /// What it is.
        key: String,
        /// Its value.
        value: String,
    }
    /// Another span that belongs to one.
    Link {
        /// How: `launched by`, `launched`, `forward`, `backward`, `arrow to`, `arrow from`; of idle time `behind it` or `ended by`.
        relation: String,
        /// The other.
        span: u32,
        /// Its name.
        name: String,
        /// Its thread or stream.
        track: u32,
        /// Its lane.
        depth: u32,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
        /// The call that launched it, where an arrow leaves from.
        launch: Option<Place>,
    }
    /// Where a span is drawn.
    Place {
        /// Its track.
        track: u32,
        /// Its lane.
        depth: u32,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
    }
    /// Spans that were searched for.
    Found {
        /// How many there are.
        total: u64,
        /// The number of the one that was asked for, in order of time.
        place: u64,
        /// That one.
        hit: Option<Hit>,
        /// The names of what was found, as tiles have them; at most 2000.
        names: Vec<String>,
        /// Whether all was looked at; a search ends after some seconds.
        complete: bool,
        /// What is wrong with the pattern, where something is.
        problem: Option<String>,
    }
    /// A span beside another one.
    Beside {
        /// The span, where there is one.
        hit: Option<Hit>,
    }
    /// A span that was searched for.
    Hit {
        /// The span; -1 for a call that samples saw.
        span: i64,
        /// Its name.
        name: String,
        /// Its track.
        track: u32,
        /// Its lane.
        depth: u32,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
    }
}

/// A cell of a table: words, a number, or nothing.
pub type Cell = Value;

/// The answers as TypeScript interfaces.
#[must_use]
pub fn typescript() -> String {
    let mut out = String::from(
        "// The shapes of the server's answers. Made from crates/hotspan-view/src/api.rs by\n\
         // `HOTSPAN_WRITE=1 cargo test -p hotspan-view --test api_types`; do not edit.\n\n\
         export type Cell = string | number | null;\n",
    );
    for (name, fields) in ANSWERS.iter().chain(views::ANSWERS).chain(things::ANSWERS) {
        out.push_str(&format!("\nexport interface {name} {{\n"));
        for (field, kind) in *fields {
            out.push_str(&format!("  {field}: {};\n", type_name(kind)));
        }
        out.push_str("}\n");
    }
    out
}

/// A Rust type in TypeScript.
fn type_name(rust: &str) -> String {
    let rust: String = rust.split_whitespace().collect();
    let inner = |prefix: &str| rust.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(item) = inner("Vec<") {
        return format!("{}[]", type_name(item));
    }
    if let Some(item) = inner("Option<") {
        return format!("{} | null", type_name(item));
    }
    match rust.as_str() {
        "String" => "string".to_owned(),
        "u32" | "u64" | "i64" | "f64" => "number".to_owned(),
        "bool" => "boolean".to_owned(),
        other => other.to_owned(),
    }
}
