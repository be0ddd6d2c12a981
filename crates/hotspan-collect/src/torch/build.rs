//! Compiles the shim against the headers of a torch: once on a machine, into its cache, or to be carried by a wheel.
//!
//! The name of a cached file holds the version of torch and a hash of everything the result depends on, so a new torch or a
//! new hotspan compiles anew. Several processes that start at once wait for the one that compiles.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::torch::fingerprint::Fingerprint;
use crate::torch::{CollectError, TorchInstall};
use crate::torch::{cache, trust};

/// Everything that is compiled: the first file includes the others.
const SOURCES: [(&str, &str); 10] = [
    ("hotspan_shim.cc", include_str!("../../../../shim/hotspan_shim.cc")),
    ("hotspan_shim.h", include_str!("../../../../shim/hotspan_shim.h")),
    ("baseline.h", include_str!("../../../../shim/baseline.h")),
    ("check.h", include_str!("../../../../shim/check.h")),
    ("inputs.h", include_str!("../../../../shim/inputs.h")),
    ("memory.h", include_str!("../../../../shim/memory.h")),
    ("names.h", include_str!("../../../../shim/names.h")),
    ("recorder.h", include_str!("../../../../shim/recorder.h")),
    ("script.h", include_str!("../../../../shim/script.h")),
    ("tensors.h", include_str!("../../../../shim/tensors.h")),
];
/// Newer torch needs C++20, older ones compile with either, old compilers only know the second.
const STANDARDS: [&str; 2] = ["-std=c++20", "-std=c++17"];
/// More of the compiler's output than this helps nobody.
const SHOWN_OUTPUT: usize = 4_000;

/// Whom the result is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// This machine.
    Here,
    /// Machines with older systems too: it brings what those lack, and lists the headers it was made with.
    Anywhere,
}

/// Where [`compile`] lists the headers, as rules of `make`.
pub(super) const HEADERS: &str = "headers.d";

/// The compiled shim of this torch in the cache, if it is there.
pub(super) fn cached(install: &TorchInstall) -> Option<PathBuf> {
    cache::find(&cached_name(install))
}

/// Compiles the shim of this torch into the first cache that can hold it.
pub(super) fn compile_into_cache(install: &TorchInstall) -> Result<PathBuf, CollectError> {
    let mut refused = None;
    for folder in cache::folders() {
        match cache::make(&folder) {
            Ok(()) => return compile_in(&folder, install),
            Err(source) => {
                refused.get_or_insert(CollectError::Cache { path: folder, source });
            }
        }
    }
    Err(refused.unwrap_or_else(|| CollectError::Cache {
        path: PathBuf::from("the cache"),
        source: io::Error::other("there is no folder for it"),
    }))
}

fn cached_name(install: &TorchInstall) -> String {
    format!("torch-{}-{:016x}.so", install.version(), key(install))
}

fn compile_in(folder: &Path, install: &TorchInstall) -> Result<PathBuf, CollectError> {
    let library = folder.join(cached_name(install));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CollectError::Cache { path, source }
    };
    let lock = library.with_extension("lock");
    let _lock = lock_file(&lock).map_err(failed(&lock))?;
    if let Ok(library) = trust::check_file(&library) {
        return Ok(library); // another process compiled it while this one waited
    }
    let work = cache::make_work_folder(folder).map_err(failed(folder))?;
    let result = compile(install, &work, Purpose::Here)
        .and_then(|built| std::fs::rename(&built, &library).map_err(failed(&library)));
    let _ = std::fs::remove_dir_all(&work); // of no consequence if it stays
    result?;
    trust::check_file(&library).map_err(failed(&library))
}

/// Compiles in a folder; returns the library there.
pub(super) fn compile(
    install: &TorchInstall,
    work: &Path,
    purpose: Purpose,
) -> Result<PathBuf, CollectError> {
    for (name, text) in SOURCES {
        let path = work.join(name);
        std::fs::write(&path, text).map_err(|source| CollectError::Cache { path, source })?;
    }
    let built = work.join("shim.so");
    let mut tried = Vec::new();
    let mut refused = None;
    for compiler in compilers() {
        tried.push(compiler.to_string_lossy().into_owned());
        for standard in STANDARDS {
            let mut command = command(&compiler, standard, install, work, &built);
            if purpose == Purpose::Anywhere {
                command.args(["-s", "-DHOTSPAN_CARRIED", "-MD", "-MF"]).arg(work.join(HEADERS));
            }
            match command.output() {
                Ok(output) if output.status.success() => {
                    // Whatever the umask says, others must not be able to write what is loaded later.
                    let closed = std::fs::set_permissions(&built, Permissions::from_mode(0o755));
                    return closed
                        .map(|()| built.clone())
                        .map_err(|source| CollectError::Cache { path: built, source });
                }
                Ok(output) => {
                    // What the first attempt says is about the standard that this torch most likely needs.
                    refused.get_or_insert_with(|| CollectError::Compile {
                        version: install.version().to_owned(),
                        output: shorten(&String::from_utf8_lossy(&output.stderr)),
                        command: format!("{command:?}"),
                    });
                }
                Err(_) => break, // no such compiler
            }
        }
    }
    Err(refused
        .unwrap_or_else(|| CollectError::NoCompiler { tried: tried.join(", "), carried: String::new() }))
}

fn compilers() -> Vec<OsString> {
    let chosen = std::env::var_os("CXX").filter(|chosen| !chosen.is_empty());
    let usual = ["g++", "c++", "clang++"].map(OsString::from);
    chosen.into_iter().chain(usual).collect()
}

fn command(compiler: &OsStr, standard: &str, install: &TorchInstall, work: &Path, built: &Path) -> Command {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-w", standard]);
    command.arg(format!("-D_GLIBCXX_USE_CXX11_ABI={}", u8::from(install.cxx11_abi())));
    if !install.is_debug() {
        command.arg("-DNDEBUG"); // some objects of torch have one field more without it
    }
    for folder in install.include_folders() {
        command.arg("-I").arg(folder);
    }
    command.arg(work.join(SOURCES[0].0)).arg("-o").arg(built);
    // Both are named in the result whether or not the linker sees a use: they are found again among the loaded ones.
    command.arg("-L").arg(install.root().join("lib")).args(["-Wl,--no-as-needed", "-lc10", "-ltorch_cpu"]);
    command
}

/// What all of our side of the result depends on.
pub(super) fn sources() -> Fingerprint {
    SOURCES.iter().fold(Fingerprint::new(), |hash, (_, text)| hash.with(text))
}

/// What the result depends on, as a number.
fn key(install: &TorchInstall) -> u64 {
    let install = format!(
        "{}|{}|{}|{}",
        install.version(),
        install.cxx11_abi(),
        install.is_debug(),
        install.library_bytes()
    );
    sources().with(install).with(std::env::consts::ARCH).number()
}

/// Waits for the lock; it is released when the file is closed, also by a crash.
fn lock_file(path: &Path) -> io::Result<File> {
    let file = File::create(path)?;
    // SAFETY: the descriptor is open for as long as `file` lives.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
        0 => Ok(file),
        // Some network file systems have no locks: then two processes may both compile, and one result wins.
        _ if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => Ok(file),
        _ => lock_file(path),
    }
}

fn shorten(output: &str) -> String {
    let errors: Vec<&str> = output.lines().filter(|line| line.contains("error")).collect();
    let text = if errors.is_empty() { output.to_owned() } else { errors.join("\n") };
    match text.char_indices().nth(SHOWN_OUTPUT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_compiler_are_shown() {
        let output = "In file included from a.h:1:\na.cc:3:5: error: no member named 'x'\n   3 | x\n";
        assert_eq!(shorten(output), "a.cc:3:5: error: no member named 'x'");
        assert_eq!(shorten("ld: cannot find -lc10"), "ld: cannot find -lc10");
        assert_eq!(shorten(&"x".repeat(5_000)).chars().count(), SHOWN_OUTPUT + 1);
    }
}
