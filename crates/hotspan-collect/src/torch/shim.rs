//! The compiled shim, loaded into this process for good.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use crate::dynamic_library::{open_library, symbol};
use crate::own_threads;
use crate::torch::abi::{self, ABI, Functions};
use crate::torch::hooks::{Hooks, Origin};
use crate::torch::{CollectError, TorchInstall, carried, handover, session};

/// torch's hooks, ready to record. A process has one torch, so all shims of a process are the same.
#[derive(Clone, Debug)]
pub struct Shim {
    functions: Functions,
    hooks: Hooks,
}

static LOADED: OnceLock<Shim> = OnceLock::new();

/// The process that had no torch when hotspan began there: no lock of torch's can be older.
static BEGAN_WITHOUT_TORCH: AtomicU32 = AtomicU32::new(0);

/// To be called where hotspan begins in a process: looks whether torch is there already.
pub fn look_for_torch() {
    if open_library("libtorch_cpu.so", libc::RTLD_NOLOAD).is_err() {
        BEGAN_WITHOUT_TORCH.store(std::process::id(), Ordering::Release);
    }
}

/// How long torch may take to answer, where it takes some microseconds, before it counts as locked for ever.
const PATIENCE: Duration = Duration::from_secs(3);

impl Shim {
    /// Loads the shim of the torch in this folder, which must be imported already: the one that `hotspan run` chose, or the
    /// first that is there and fits; otherwise compiles it.
    ///
    /// # Errors
    /// When there is none and it cannot be compiled; the message says what to do.
    pub fn load(torch: &Path) -> Result<Self, CollectError> {
        if let Some(shim) = LOADED.get() {
            return Ok(shim.clone());
        }
        match handover::told(torch) {
            Some(Ok(library)) => {
                carried::check(&library)
                    .map_err(|source| CollectError::Cache { path: library.clone(), source })?;
                if let Ok(shim) = Self::keep(Hooks { library, origin: Origin::Handed }) {
                    return Ok(shim);
                }
            }
            Some(Err(reason)) => return Err(CollectError::Unprepared(reason)),
            None => {}
        }
        let install = TorchInstall::at(torch)?;
        let (ready, why_not_carried) = Hooks::ready(&install, None);
        for hooks in ready {
            if let Ok(shim) = Self::keep(hooks) {
                return Ok(shim);
            }
        }
        Self::keep(Hooks::compile(&install, why_not_carried.as_deref())?)
    }

    /// Where it was loaded from.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The shim of this process, if one is loaded.
    pub(crate) fn loaded() -> Option<&'static Self> {
        LOADED.get()
    }

    fn keep(hooks: Hooks) -> Result<Self, CollectError> {
        let functions = open(&hooks.library)?;
        let shim = LOADED.get_or_init(|| {
            session::forget_recording_after_fork();
            Self { functions, hooks }
        });
        Ok(shim.clone())
    }
}

fn open(path: &Path) -> Result<Functions, CollectError> {
    let failed = |reason: String| CollectError::Load { path: path.to_owned(), reason };
    // All symbols are looked up now, so that a torch without one of them is noticed here.
    let library = open_library(path, 0).map_err(failed)?;
    // SAFETY: the library was compiled from the header that `Functions` mirrors, and it is never closed.
    let (abi, functions) = unsafe { Functions::find(|name| symbol(library, name)) }
        .map_err(|missing| failed(format!("it has no function {missing}")))?;
    if abi != ABI {
        return Err(failed(format!("it speaks version {abi} of the interface, not {ABI}")));
    }
    check(functions).map_err(|error| match error {
        CollectError::Torch(reason) => failed(reason),
        other => other,
    })?;
    Ok(functions)
}

/// Looks whether torch is what its headers say, and not locked for ever. That may never return in a forked child, so a thread
/// does it there that nobody needs.
pub(crate) fn check(functions: Functions) -> Result<(), CollectError> {
    let check = move || {
        // SAFETY: the function takes nothing, and the number of the interface says that it has this type.
        let is_right = unsafe { (functions.check)() } == abi::OK;
        if is_right { Ok(()) } else { Err(CollectError::Torch(functions.last_error())) }
    };
    if BEGAN_WITHOUT_TORCH.load(Ordering::Acquire) == std::process::id() {
        return check();
    }
    let (answer, answered) = mpsc::channel();
    let thread = own_threads::spawn("hotspan-check", move || {
        // Where nobody waits any more, the answer is not needed.
        let _ = answer.send(check());
        own_threads::number()
    })
    .map_err(|error| CollectError::Torch(format!("no thread could be started: {error}")))?;
    let result = answered.recv_timeout(PATIENCE).map_err(|_| CollectError::LockedByFork)?;
    if let Ok(number) = thread.join() {
        own_threads::wait_until_gone(number);
    }
    result
}
