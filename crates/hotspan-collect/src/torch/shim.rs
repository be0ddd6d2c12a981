//! The compiled shim, loaded into this process for good.

use std::path::Path;
use std::sync::OnceLock;

use crate::dynamic_library::{open_library, symbol};
use crate::torch::abi::{self, ABI, Functions};
use crate::torch::hooks::{Hooks, Origin};
use crate::torch::{CollectError, TorchInstall, handover, session};

/// torch's hooks, ready to record. A process has one torch, so all shims of a process are the same.
#[derive(Clone, Debug)]
pub struct Shim {
    functions: Functions,
    hooks: Hooks,
}

static LOADED: OnceLock<Shim> = OnceLock::new();

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
    // SAFETY: the function takes nothing, and the number of the interface says that it has this type.
    if unsafe { (functions.check)() } != abi::OK {
        return Err(failed(functions.last_error()));
    }
    Ok(functions)
}
