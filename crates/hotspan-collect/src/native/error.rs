//! Why a program cannot be sampled from within, and what to do about it.

/// Why sampling did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The rate is not one.
    #[error(
        "{0} samples a second is not a rate. hint: choose between 1 and 10000; 100 is cheap and usually enough"
    )]
    Rate(u32),
    /// There is one recorder per process.
    #[error("hotspan is already sampling this process. hint: stop that recording first")]
    AlreadySampling,
    /// The system does not let a process read itself.
    #[error(
        "this system does not allow process_vm_readv, which keeps sampling safe. hint: in a container, add \
         --cap-add SYS_PTRACE or a seccomp profile that allows process_vm_readv"
    )]
    NoMemoryAccess,
    /// The interpreter is of a kind that is not supported.
    #[error(
        "Python {0} cannot be sampled from within: supported are release builds of CPython 3.10 to 3.14. hint: sample it from \
         outside, by its process id"
    )]
    UnknownPython(String),
    /// The system gave no memory or no thread, or the spool cannot be written.
    #[error("sampling could not start: {0}")]
    System(#[from] std::io::Error),
    /// The spool cannot be written.
    #[error("the recording cannot be written: {0}")]
    Spool(#[from] hotspan_store::file::FileError),
}
