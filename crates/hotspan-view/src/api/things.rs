//! The answers about one thing: a row of a table with all that is known about it.

use serde::Serialize;

use super::TableData;

answers! {
    /// A thing that a row of a table stands for.
    ThingData {
        /// What it is, in a word or two.
        kind: String,
        /// Its name.
        name: String,
        /// Its row, as its table has it.
        row: TableData,
        /// The line it is at.
        source: Option<String>,
        /// When it began, where it is a stretch of time.
        begin: Option<i64>,
        /// When that was over.
        end: Option<i64>,
        /// Spans that have to do with it.
        related: Vec<CallData>,
        /// How many calls have a time of their own.
        count: u64,
        /// Their time.
        total: i64,
        /// How long they took: from the bucket of the shortest to that of the longest.
        histogram: Vec<BucketData>,
        /// The slowest calls, longest first.
        slowest: Vec<CallData>,
        /// Its calls by step, in order of time; empty where the program has no steps.
        steps: Vec<StepData>,
        /// The part of all steps' time in which a call ran, in percent.
        step_share: Option<f64>,
        /// The Python stacks it was called from, most time first.
        stacks: Vec<StackData>,
        /// What else there is to say.
        tables: Vec<TableData>,
    }
    /// Calls that took about as long as each other.
    BucketData {
        /// The shortest that are counted.
        from: i64,
        /// Those that take so long are in the next one.
        to: i64,
        /// How many.
        count: u64,
        /// Their time.
        time: i64,
    }
    /// One call.
    CallData {
        /// What it has to do with the thing; empty for its own calls.
        what: String,
        /// Its name.
        name: String,
        /// Its span, in the whole trace; none for a time that has none.
        span: Option<u32>,
        /// The process it ran in.
        process: String,
        /// Its thread or stream.
        track: String,
        /// When it began.
        begin: i64,
        /// How long it took.
        duration: i64,
        /// The step that it belongs to.
        step: Option<i64>,
        /// The line of the program behind it.
        source: Option<String>,
    }
    /// The calls of one step, or of several that follow each other.
    StepData {
        /// The number of the first step.
        first: i64,
        /// The number of the last.
        last: i64,
        /// When the first began.
        begin: i64,
        /// When the last was over.
        end: i64,
        /// How many calls belong to them.
        calls: u64,
        /// The time of these calls.
        time: i64,
        /// The part of the steps' time in which a call ran, in percent.
        share: Option<f64>,
    }
    /// A Python stack that calls came from.
    StackData {
        /// The line of the program behind the longest of the calls.
        source: Option<String>,
        /// How many calls.
        calls: u64,
        /// Their time.
        total: i64,
        /// The functions, innermost first.
        entries: Vec<String>,
    }
}
