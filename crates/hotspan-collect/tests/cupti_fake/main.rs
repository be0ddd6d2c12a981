//! The device collector against a libcupti of our own, which a test drives: every branch, on machines without a GPU.

#![expect(unsafe_code, reason = "the fake library is loaded and driven through its C functions")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what fails here fails the test")]

mod fake;
mod losses;
mod sessions;
mod work;
