//! out
