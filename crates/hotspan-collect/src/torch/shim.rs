//! The compiled shim, loaded into this process for good.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::dynamic_library::{open_library, symbol};
use crate::torch::abi::{ABI, Functions};
use crate::torch::{CollectError, TorchInstall, build, session};

/// torch's hooks, ready to record. A process has one torch, so all shims of a process are the same.
#[derive(Clone, Debug)]
pub struct Shim {
    functions: Functions,
    path: PathBuf,
}

static LOADED: OnceLock<Shim> = OnceLock::new();

impl Shim {
    /// Loads the shim of this torch, which must be imported already; compiles it on first use.
    ///
    /// # Errors
    /// When it cannot be compiled or loaded; the message says what to do.
    pub fn load(install: &TorchInstall) -> Result<Self, CollectError> {
        if let Some(shim) = LOADED.get() {
            return Ok(shim.clone());
        }
        let path = build::shim_for(install)?;
        let functions = open(&path)?;
        let shim = LOADED.get_or_init(|| {
            session::forget_recording_after_fork();
            Self { functions, path }
        });
        Ok(shim.clone())
    }

    /// The file it was loaded from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The shim of this process, if one is loaded.
    pub(crate) fn loaded() -> Option<&'static Self> {
        LOADED.get()
    }
}

fn open(path: &Path) -> Result<Functions, CollectError> {
    let failed = |reason: String| CollectError::Load { path: path.to_owned(), reason };
    let library = open_library(path, 0).map_err(failed)?;
    // SAFETY: the library was compiled from the header that `Functions` mirrors, and it is never closed.
    let (abi, functions) = unsafe { Functions::find(|name| symbol(library, name)) }
        .map_err(|missing| failed(format!("it has no function {missing}")))?;
    if abi != ABI {
        return Err(failed(format!("it speaks version {abi} of the interface, not {ABI}")));
    }
    Ok(functions)
}
