//! Hooks that came with hotspan: compiled for each release of torch when the wheel was made.
//!
//! They are chosen by release, processor and C++ ABI, and verified: a list beside each names the headers that it was
//! compiled with, and the installed torch must have the same, byte for byte. Then compiling here would give the same.

use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::torch::build::{self, Purpose};
use crate::torch::{CollectError, TorchInstall};
use crate::torch::{cache, fingerprint, trust};

/// The folder of the hooks that came with this hotspan: beside its library in the wheel, or what HOTSPAN_HOOKS_DIR names.
pub(super) fn folder() -> Option<PathBuf> {
    match std::env::var_os("HOTSPAN_HOOKS_DIR").filter(|named| !named.is_empty()) {
        Some(named) => Some(PathBuf::from(named)),
        None => Some(own_file()?.parent()?.join("_hooks")),
    }
}

/// The hooks for this torch; otherwise why they do not do.
pub(super) fn find(folder: &Path, install: &TorchInstall) -> Result<PathBuf, String> {
    let library = folder.join(name(install));
    if !library.is_file() {
        return Err(format!("none for torch {} were made", install.release()));
    }
    let list = std::fs::read_to_string(library.with_extension("headers"));
    let list = list.map_err(|error| format!("{} has no list of headers: {error}", library.display()))?;
    let mut lines = list.lines();
    let mut number = || u64::from_str_radix(lines.next()?, 16).ok();
    let (Some(sources), Some(headers)) = (number(), number()) else {
        return Err(format!("the list of headers of {} is damaged", library.display()));
    };
    if sources != build::sources().number() {
        return Err(format!("those for torch {} are of another hotspan", install.release()));
    }
    match fingerprint::of_headers(&install.root().join("include"), lines) {
        Ok(found) if found == headers => Ok(library),
        _ => Err(format!("the headers of torch {} are not those of the release", install.version())),
    }
}

/// Whether a library may be loaded: it lies beside hotspan's own, or nobody else can have written it.
pub(super) fn check(library: &Path) -> io::Result<()> {
    let beside = |own: PathBuf| own.parent().map(|folder| folder.join("_hooks"));
    let folder = library.parent().and_then(|folder| folder.canonicalize().ok());
    let is_beside_us = folder.is_some() && folder == own_file().and_then(beside);
    if is_beside_us { Ok(()) } else { trust::check_file(library).map(drop) }
}

/// Compiles the hooks for this torch into a folder, to be carried; returns the library.
pub(super) fn make(install: &TorchInstall, folder: &Path) -> Result<PathBuf, CollectError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CollectError::Cache { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let work = cache::make_work_folder(folder).map_err(failed(folder))?;
    let result = make_in(&work, install).and_then(|(built, list)| {
        let library = folder.join(name(install));
        let listed = library.with_extension("headers");
        std::fs::write(&listed, list).map_err(failed(&listed))?;
        std::fs::rename(built, &library).map_err(failed(&library))?;
        Ok(library)
    });
    let _ = std::fs::remove_dir_all(&work); // of no consequence if it stays
    result
}

fn make_in(work: &Path, install: &TorchInstall) -> Result<(PathBuf, String), CollectError> {
    let built = build::compile(install, work, Purpose::Anywhere)?;
    let rules = work.join(build::HEADERS);
    let text = std::fs::read_to_string(&rules)
        .map_err(|source| CollectError::Cache { path: rules.clone(), source })?;
    let include = install.root().join("include");
    let headers = headers_of(&text, &include);
    if headers.is_empty() {
        let source = io::Error::other("it names no header of torch");
        return Err(CollectError::Cache { path: rules, source });
    }
    let fingerprint = fingerprint::of_headers(&include, headers.iter().map(String::as_str))?;
    let mut list = format!("{:016x}\n{fingerprint:016x}\n", build::sources().number());
    for header in headers {
        list.push_str(&header);
        list.push('\n');
    }
    Ok((built, list))
}

/// The headers below a folder that rules of `make` name, in order.
fn headers_of(rules: &str, include: &Path) -> Vec<String> {
    let words = rules.split_whitespace().filter(|word| *word != "\\");
    let mut headers: Vec<String> = words
        .filter_map(|word| Path::new(word).strip_prefix(include).ok())
        .map(|header| header.to_string_lossy().into_owned())
        .collect();
    headers.sort();
    headers.dedup();
    headers
}

fn name(install: &TorchInstall) -> String {
    let strings = if install.cxx11_abi() { "cxx11" } else { "old-strings" };
    let assertions = if install.is_debug() { "-debug" } else { "" };
    format!("torch-{}-{}-{strings}{assertions}.so", install.release(), install.architecture())
}

/// The file that this code was loaded from.
fn own_file() -> Option<PathBuf> {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is that of a function, and there is room for the answer.
    let found = unsafe { libc::dladdr(own_file as fn() -> _ as *const libc::c_void, facts.as_mut_ptr()) };
    // SAFETY: all zeros are a valid value, and the call wrote another or none.
    let name = unsafe { facts.assume_init() }.dli_fname;
    if found == 0 || name.is_null() {
        return None;
    }
    // SAFETY: not null, so it is the loader's name of the file, which ends in a zero and lives as long as the library.
    let name = unsafe { CStr::from_ptr(name) };
    std::fs::canonicalize(std::ffi::OsStr::from_bytes(name.to_bytes())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_torch_in_order() {
        let rules = "shim.so: /w/shim.cc /usr/include/c++/12/memory \\\n /t/include/b.h /t/include/ATen/a.h \\\n /t/include/b.h\n";
        assert_eq!(headers_of(rules, Path::new("/t/include")), ["ATen/a.h", "b.h"]);
    }

    #[test]
    fn a_test_program_knows_its_own_file() {
        assert!(own_file().is_some_and(|file| file.is_file()));
    }
}
