//! Tests of the store from outside, in one binary: one module per topic.

#![expect(clippy::unwrap_used, reason = "what the tests share may fail like a test")]

mod corpus;
mod damage;
mod kill;
mod merge;
mod merge_files;
mod round_trip;
mod sample;
mod spool;
mod version_1;
