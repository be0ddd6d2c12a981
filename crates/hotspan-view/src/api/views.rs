//! The answers of views that are neither tables nor the timeline: advice, curves, flame graphs, source.

use serde::Serialize;

use super::TableData;

answers! {
    /// Advice.
    AdviceData {
        /// What was found, most gain first.
        findings: Vec<FindingData>,
        /// What could not be looked for.
        skipped: Vec<SkippedData>,
        /// What gains are a share of.
        basis: String,
        /// Which process it is about, where that is not the one that was started.
        about: Option<String>,
    }
    /// One finding.
    FindingData {
        /// The rule.
        rule: String,
        /// What the rule is about.
        title: String,
        /// What is wrong.
        message: String,
        /// What to do.
        fix: String,
        /// Where in the source.
        source: Option<String>,
        /// What it would gain, in nanoseconds.
        gain: Option<i64>,
        /// The same in percent.
        gain_percent: Option<f64>,
        /// The same in nanoseconds of a step, where there are steps.
        gain_per_step: Option<i64>,
        /// How sure it is.
        confidence: String,
        /// The rows that prove it.
        evidence: TableData,
        /// Times in which devices had nothing to do, of rows that are about those.
        gaps: Vec<GapData>,
    }
    /// Where the time goes.
    VerdictData {
        /// In a sentence; empty where nothing is known.
        sentence: String,
        /// The line it names.
        source: Option<String>,
        /// The view that shows more.
        view: String,
        /// The number of a typical step; none where the recording has no steps.
        step: Option<i64>,
        /// When that step began.
        begin: i64,
        /// When it was over.
        end: i64,
        /// What the host and each device did in it.
        bars: Vec<BarData>,
    }
    /// What one side did in a step.
    BarData {
        /// Whose it is.
        title: String,
        /// How long the step took there.
        time: i64,
        /// What it did; the parts add up to the time.
        parts: Vec<BarPart>,
    }
    /// One activity of a step.
    BarPart {
        /// What programs call it.
        key: String,
        /// What people call it.
        title: String,
        /// How long.
        time: i64,
        /// The same in percent of the step.
        share: f64,
        /// Whether a device had nothing to do meanwhile, and this is why.
        idle: bool,
    }
    /// What lies between two traces.
    WaterfallData {
        /// What changed, in sentences.
        words: Vec<String>,
        /// What the times are; empty where they cannot be compared.
        measure: String,
        /// All of it before.
        before: i64,
        /// All of it after.
        after: i64,
        /// What each activity adds or takes away, largest change first.
        causes: Vec<CauseData>,
        /// The steps of the first.
        steps_before: Vec<DotData>,
        /// The steps of the second.
        steps_after: Vec<DotData>,
    }
    /// One activity of both.
    CauseData {
        /// What programs call it.
        key: String,
        /// What people call it.
        title: String,
        /// Its time before.
        before: i64,
        /// Its time after.
        after: i64,
        /// By how much it changed.
        change: i64,
        /// Whether a device had nothing to do meanwhile, and this is why.
        idle: bool,
    }
    /// A step.
    DotData {
        /// Its number.
        number: i64,
        /// How long it took.
        time: i64,
        /// Whether it is warm-up, which nothing is judged by.
        warm_up: bool,
    }
    /// A time in which a device had nothing to do.
    GapData {
        /// The row of the evidence.
        row: u32,
        /// Its beginning.
        begin: i64,
        /// Its end.
        end: i64,
    }
    /// Rules that could not look.
    SkippedData {
        /// What they lack.
        need: String,
        /// How to record it.
        record: String,
        /// The rules.
        rules: Vec<String>,
    }
    /// Lines over time.
    Curve {
        /// What it shows.
        title: String,
        /// `bytes`, `percent`, `count` or empty.
        unit: String,
        /// When values changed.
        times: Vec<i64>,
        /// The lines.
        lines: Vec<CurveLine>,
    }
    /// A line.
    CurveLine {
        /// What programs call it.
        key: String,
        /// What people call it.
        title: String,
        /// A value for each time.
        values: Vec<i64>,
    }
    /// Calls as a flame graph draws them; parents come before their children. Columns that do not apply are empty.
    FlameData {
        /// What it is made of: `samples`, `calls` or `nothing`.
        source: String,
        /// The time of all of it.
        total: i64,
        /// How many nodes were too small to be sent.
        hidden: u64,
        /// The names and places nodes point to.
        places: Vec<FlamePlace>,
        /// The place of each node.
        place: Vec<u32>,
        /// The parent of each node; -1 for none.
        parent: Vec<i64>,
        /// The time of each node and all below it.
        total_time: Vec<i64>,
        /// Its own time.
        own_time: Vec<i64>,
        /// How many samples or calls ended there.
        count: Vec<u64>,
        /// When each began, in order of time.
        begin: Vec<i64>,
        /// The time of each in the trace it is compared with.
        before: Vec<i64>,
        /// The threads to choose from, in order of time.
        threads: Vec<FlameThread>,
        /// How to record what would fill it.
        record: String,
    }
    /// What a node of a call tree is.
    FlamePlace {
        /// The function or operator.
        name: String,
        /// Its file.
        file: String,
        /// The line it begins at; 0 where unknown.
        line: u32,
        /// Its own time in the whole tree.
        own: i64,
        /// Its time with all it called.
        total: i64,
        /// Whose code it is: `yours`, `library`, `native` or `other`.
        origin: String,
        /// The library it is in; empty where it is in none.
        library: String,
    }
    /// The functions whose name and file match a pattern.
    FlameNames {
        /// Each as its name, a space and its file.
        names: Vec<String>,
        /// What is wrong with the pattern, where something is.
        problem: Option<String>,
    }
    /// A thread whose calls can be shown in order of time.
    FlameThread {
        /// What requests call it.
        id: u32,
        /// Its name.
        name: String,
        /// How many samples or calls it has.
        count: u64,
    }
    /// All that called a function, and all that it called.
    SandwichData {
        /// Upside down: what is below called what is above.
        callers: FlameData,
        /// What it called.
        callees: FlameData,
    }
    /// A source file that the trace names.
    SourceData {
        /// Its path.
        file: String,
        /// Its lines.
        lines: Vec<String>,
        /// Whether it was written after the recording: numbers may stand at other lines.
        changed: bool,
    }
}
