//! What can go wrong before or while recording, and what to do about it.

use std::path::PathBuf;

/// Why torch operators cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The folder is not an installed torch.
    #[error("{} is not an installed torch with headers: {reason}. hint: reinstall torch from its wheel", path.display())]
    NotTorch {
        /// The folder.
        path: PathBuf,
        /// What is missing there.
        reason: String,
    },
    /// There is no C++ compiler.
    #[error(
        "no C++ compiler was found (tried {tried}){carried}. hint: install g++ or clang++, or set CXX; until then hotspan can \
         record through torch.profiler"
    )]
    NoCompiler {
        /// The commands that were tried.
        tried: String,
        /// Why the hooks that came with hotspan do not do, or nothing.
        carried: String,
    },
    /// `hotspan run` tried already, before it started the program.
    #[error("{0}")]
    Unprepared(String),
    /// The compiler refused the shim.
    #[error(
        "the torch hooks did not compile against torch {version}:\n{output}\nhint: the full command was: {command}"
    )]
    Compile {
        /// The version of torch.
        version: String,
        /// What the compiler said, shortened.
        output: String,
        /// What was run.
        command: String,
    },
    /// A file could not be written or read.
    #[error("{}: {source}. hint: set HOTSPAN_CACHE_DIR to a folder that can be written", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The compiled shim could not be loaded.
    #[error("{} could not be loaded: {reason}. hint: import torch first; then delete that file and try again", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        reason: String,
    },
    /// torch.profiler is recording.
    #[error(
        "torch.profiler is already recording in this process. hint: stop it before starting hotspan, or use one of the two"
    )]
    TorchProfilerActive,
    /// hotspan is recording.
    #[error("hotspan is already recording torch operators in this process. hint: stop that profile first")]
    AlreadyRecording,
    /// Another thread held one of torch's locks when this process was forked off.
    #[error(
        "torch was in use by another thread when this process was forked, and is locked since. hint: start such processes \
         with the method \"spawn\" or \"forkserver\""
    )]
    LockedByFork,
    /// torch threw.
    #[error("torch refused the recording: {0}")]
    Torch(String),
}
