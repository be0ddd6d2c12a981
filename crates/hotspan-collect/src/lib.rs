//! Collectors: what records a running program, one folder per source.
//!
//! [`torch`] records operators, autograd nodes, user ranges and allocations, [`cupti`] what devices do; [`calls`] every
//! call of a Python function, [`lines`] lines of Python, [`native`] samples the process it lives in, `sampler` looks into
//! other Python processes, both with what `cpython` has of the interpreter's structures and `syscalls` of waits;
//! [`process_memory`] follows the memory of a command and its children. [`clock`] relates the
//! cheap counter of the processor to wall time; [`buffer`] is the memory that running threads write to without waiting for
//! anyone; [`launch`] starts a program, and [`agent`] writes what is recorded in it to a file as it goes. What was recorded
//! becomes a [`hotspan_store::TraceBuilder`]; nothing is analysed here.
//!
//! All unsafe code of the collectors is in this crate.

#![expect(unsafe_code, reason = "collectors share memory with other threads, C++, CUPTI and Python")]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "programs are recorded on Linux only. hint: build hotspan with --no-default-features to read traces"
);

pub mod agent;
pub mod buffer;
pub mod calls;
pub mod clock;
mod cpython;
pub mod cupti;
mod dynamic_library;
mod elf;
mod host_spans;
mod interpreter;
pub mod launch;
pub mod lines;
mod locks;
mod mapped_file;
mod memory_map;
pub mod native;
mod own_file;
mod own_threads;
pub mod process_memory;
pub mod process_tree;
pub mod sampler;
pub mod segments;
mod spool;
mod syscalls;
pub mod terminal;
mod thread_number;
pub mod torch;
