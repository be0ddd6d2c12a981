//! Collectors: what records a running program, one folder per source.
//!
//! [`torch`] records operators, autograd nodes, user ranges and allocations, [`cupti`] what devices do. [`clock`] relates the cheap counter of
//! the processor to wall time; [`buffer`] is the memory that running threads write to without waiting for anyone. What
//! was recorded becomes a [`hotspan_store::TraceBuilder`]; nothing is analysed here.
//!
//! All unsafe code of the collectors is in this crate.

pub mod buffer;
pub mod clock;
pub mod cupti;
mod host_spans;
pub mod torch;
