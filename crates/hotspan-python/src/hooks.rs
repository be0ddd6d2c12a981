//! The hooks of torch as Python sees them: which there are, loading them, making those that a wheel carries.

use std::path::PathBuf;

use hotspan_collect::torch::{Hooks, Shim, TorchInstall};
use pyo3::prelude::*;

use crate::error::from_collect;

/// Loads the hooks of the torch whose Python package is that folder, which is imported already, compiling them where there are
/// none; returns their file and where they came from.
#[pyfunction]
pub(crate) fn load_torch_hooks(py: Python<'_>, torch_root: PathBuf) -> PyResult<(PathBuf, String)> {
    let shim = py.detach(|| Shim::load(&torch_root)).map_err(|error| from_collect(&error))?;
    Ok((shim.hooks().library.clone(), shim.hooks().origin.to_string()))
}

/// Files of hooks, with where each came from.
type Found = Vec<(PathBuf, String)>;

/// The hooks that are there for the torch in that folder, the best first: their files and where they came from; and why
/// those that came with hotspan are not among them.
#[pyfunction]
pub(crate) fn find_torch_hooks(py: Python<'_>, torch_root: PathBuf) -> PyResult<(Found, Option<String>)> {
    let found = py.detach(|| TorchInstall::at(torch_root).map(|install| Hooks::ready(&install, None)));
    let (ready, why_not) = found.map_err(|error| from_collect(&error))?;
    let ready = ready.into_iter().map(|hooks| (hooks.library, hooks.origin.to_string())).collect();
    Ok((ready, why_not))
}

/// Compiles the hooks for the torch in that folder, to be carried by a wheel, into another folder; returns their file.
/// `cxx11_abi`: for a build of this torch with those strings, or without.
#[pyfunction]
#[pyo3(signature = (torch_root, folder, cxx11_abi=None))]
pub(crate) fn carry_torch_hooks(
    py: Python<'_>,
    torch_root: PathBuf,
    folder: PathBuf,
    cxx11_abi: Option<bool>,
) -> PyResult<PathBuf> {
    let carry = || {
        let install = TorchInstall::at(torch_root)?;
        let install = cxx11_abi.map_or(install.clone(), |strings| install.with_cxx11_abi(strings));
        Hooks::carry(&install, &folder)
    };
    py.detach(carry).map_err(|error| from_collect(&error))
}
