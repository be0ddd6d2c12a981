//! What can go wrong while sampling, and what to do about it.

use crate::process_tree::ProcessNumber;

/// Why a process cannot be sampled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// There is no such process, or it has ended.
    #[error("there is no process {0}")]
    NoProcess(ProcessNumber),
    /// The process runs no Python that we could find.
    #[error("process {process} is not Python, as far as hotspan can see ({reason})")]
    NotPython {
        /// The process.
        process: ProcessNumber,
        /// What was looked for.
        reason: String,
    },
    /// A Python that this version does not know.
    #[error("process {process} runs Python {version}; hotspan samples 3.8 to 3.14")]
    UnknownVersion {
        /// The process.
        process: ProcessNumber,
        /// Its Python.
        version: String,
    },
    /// The system does not let us read the memory of the process.
    #[error("not permitted to read the memory of process {process}: {reason}")]
    NotPermitted {
        /// The process.
        process: ProcessNumber,
        /// What stands in the way, as far as it can be told.
        reason: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// Memory that should be there is not: the process changed while we looked.
    #[error("the memory of process {process} changed while it was read ({what})")]
    Unreadable {
        /// The process.
        process: ProcessNumber,
        /// What was being read.
        what: &'static str,
    },
    /// Memory that is neither in a core file nor in the files that were mapped.
    #[error("the core file of process {process} lacks memory ({what})")]
    NotInCore {
        /// The process.
        process: ProcessNumber,
        /// What was being read.
        what: &'static str,
    },
    /// The system refused something.
    #[error("process {process}: {source}")]
    System {
        /// The process.
        process: ProcessNumber,
        /// What it said.
        source: std::io::Error,
    },
}

impl SamplerError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoProcess(_) => Some("`ps aux | grep python` lists those that run"),
            Self::NotPython { .. } => {
                Some("give the process id of the interpreter itself, not of a shell or launcher around it")
            }
            Self::UnknownVersion { .. } => Some("a newer hotspan may know this Python"),
            Self::NotPermitted { hint, .. } => Some(hint),
            Self::NotInCore { .. } => {
                Some("look where the program ran, with the same Python; the file may also be cut off")
            }
            Self::Unreadable { .. } | Self::System { .. } => None,
        }
    }

    /// Whether the process is gone, rather than hard to read this once.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, Self::NoProcess(_))
    }
}

const SAME_USER: &str = "run hotspan as the same user as the process, or as root: `sudo hotspan …`; in a container add \
     `--cap-add SYS_PTRACE` (Docker, Podman) or `securityContext.capabilities.add: [SYS_PTRACE]` (Kubernetes)";
const SCOPE: &str = "either let hotspan start the program (`hotspan record -- python …`), run `sudo hotspan …`, or allow it until \
     the next boot: `echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope`; in a container add `--cap-add SYS_PTRACE`";
const FORBIDDEN: &str =
    "this machine forbids attaching to everyone until it is booted again (ptrace_scope 3)";
const CONTAINER: &str = "in a container, start it with `--cap-add SYS_PTRACE` (Docker, Podman) or \
     `securityContext.capabilities.add: [SYS_PTRACE]` (Kubernetes); old Dockers also need `--security-opt seccomp=unconfined`; \
     a process that made itself undumpable can be read by root only";

/// Finds out why the memory of a process may not be read.
pub(super) fn not_permitted(process: ProcessNumber) -> SamplerError {
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &str| std::fs::metadata(path).map(|metadata| metadata.uid()).ok();
    let (own, theirs) = (owner("/proc/self"), owner(&format!("/proc/{process}")));
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .unwrap_or(0);
    let (reason, hint) = match (own, theirs) {
        _ if scope >= 3 => (format!("kernel.yama.ptrace_scope is {scope}"), FORBIDDEN),
        (Some(own), Some(theirs)) if own != 0 && own != theirs => {
            (format!("it belongs to user {theirs}, hotspan runs as user {own}"), SAME_USER)
        }
        _ if scope >= 1 && own != Some(0) => {
            (format!("kernel.yama.ptrace_scope is {scope}, so only parents may look into a process"), SCOPE)
        }
        _ => ("the capability CAP_SYS_PTRACE is missing".to_owned(), CONTAINER),
    };
    SamplerError::NotPermitted { process, reason, hint }
}
