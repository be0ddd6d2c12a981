//! Why device work cannot be recorded, and what to do about it. The program and the recording of operators go on.

/// Why CUPTI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CuptiError {
    /// No libcupti is loaded in this process, and none could be loaded.
    #[error(
        "libcupti is not loaded in this process: {reason}. hint: install a torch built for CUDA, or set HOTSPAN_CUPTI to a libcupti.so"
    )]
    NoLibrary {
        /// What was tried.
        reason: String,
    },
    /// The library lacks a function.
    #[error("{path} has no function {function}: it is no libcupti of CUDA 11.8 or newer")]
    NotCupti {
        /// The library.
        path: String,
        /// What it lacks.
        function: String,
    },
    /// The library is too old.
    #[error(
        "CUPTI version {version} is older than that of CUDA 11.8 (18). hint: use a torch built for CUDA 12 or 13"
    )]
    TooOld {
        /// What cuptiGetVersion says.
        version: u32,
    },
    /// Another tool has it.
    #[error(
        "CUPTI is held by {holder} ({code}): one tool at a time can record the device. hint: run without {holder}"
    )]
    Held {
        /// Who, as far as can be told.
        holder: String,
        /// What CUPTI said.
        code: String,
    },
    /// The system does not allow it.
    #[error(
        "the driver does not let this user record device work ({code}). hint: run as root, or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0"
    )]
    NotAllowed {
        /// What CUPTI said.
        code: String,
    },
    /// Any other refusal.
    #[error("CUPTI refused {what} ({code})")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What CUPTI said.
        code: String,
    },
    /// Device work is being recorded already.
    #[error("hotspan is already recording device work in this process. hint: stop that profile first")]
    AlreadyRecording,
    /// There is no memory or thread to record with.
    #[error("no thread could be started to read the device's records: {0}")]
    NoThread(String),
}
