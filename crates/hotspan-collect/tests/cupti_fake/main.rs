//! The device collector against a libcupti of our own, which a test drives: every branch, on machines without a GPU.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]

mod fake;
mod losses;
mod sessions;
mod work;
