//! Compiles the shim against an installed torch, once, and keeps it in the user's cache folder.
//!
//! The file's name holds the version of torch and a hash of everything the result depends on, so a new torch or a new
//! hotspan compiles anew. Several processes that start at once wait for the one that compiles.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::torch::{CollectError, TorchInstall};

/// Everything that is compiled: the first file includes the others.
const SOURCES: [(&str, &str); 6] = [
    ("hotspan_shim.cc", include_str!("../../../../shim/hotspan_shim.cc")),
    ("hotspan_shim.h", include_str!("../../../../shim/hotspan_shim.h")),
    ("inputs.h", include_str!("../../../../shim/inputs.h")),
    ("memory.h", include_str!("../../../../shim/memory.h")),
    ("names.h", include_str!("../../../../shim/names.h")),
    ("recorder.h", include_str!("../../../../shim/recorder.h")),
];
/// Newer torch needs C++20, older ones compile with either, old compilers only know the second.
const STANDARDS: [&str; 2] = ["-std=c++20", "-std=c++17"];
/// More of the compiler's output than this helps nobody.
const SHOWN_OUTPUT: usize = 4_000;

/// The compiled shim for this torch; compiles it when it is not there yet.
pub(crate) fn shim_for(install: &TorchInstall) -> Result<PathBuf, CollectError> {
    shim_in(&cache_folder(), install)
}

fn shim_in(folder: &Path, install: &TorchInstall) -> Result<PathBuf, CollectError> {
    let library = folder.join(format!("torch-{}-{:016x}.so", install.version(), key(install)));
    if library.is_file() {
        return Ok(library);
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CollectError::Cache { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let lock = library.with_extension("lock");
    let _lock = lock_file(&lock).map_err(failed(&lock))?;
    if library.is_file() {
        return Ok(library); // another process compiled it while this one waited
    }
    let work = folder.join(format!("build-{}", std::process::id()));
    std::fs::create_dir_all(&work).map_err(failed(&work))?;
    let result =
        compile(install, &work).and_then(|built| std::fs::rename(&built, &library).map_err(failed(&library)));
    let _ = std::fs::remove_dir_all(&work); // of no consequence if it stays
    result.map(|()| library)
}

fn compile(install: &TorchInstall, work: &Path) -> Result<PathBuf, CollectError> {
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
            let mut command = command(&compiler, standard, install, &work.join(SOURCES[0].0), &built);
            match command.output() {
                Ok(output) if output.status.success() => return Ok(built),
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
    Err(refused.unwrap_or_else(|| CollectError::NoCompiler { tried: tried.join(", ") }))
}

fn compilers() -> Vec<OsString> {
    let chosen = std::env::var_os("CXX").filter(|chosen| !chosen.is_empty());
    let usual = ["g++", "c++", "clang++"].map(OsString::from);
    chosen.into_iter().chain(usual).collect()
}

fn command(compiler: &OsStr, standard: &str, install: &TorchInstall, source: &Path, built: &Path) -> Command {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-w", standard]);
    command.arg(format!("-D_GLIBCXX_USE_CXX11_ABI={}", u8::from(install.cxx11_abi())));
    if !install.is_debug() {
        command.arg("-DNDEBUG"); // some objects of torch have one field more without it
    }
    for folder in install.include_folders() {
        command.arg("-I").arg(folder);
    }
    command.arg(source).arg("-o").arg(built);
    command.arg("-L").arg(install.root().join("lib")).args(["-lc10", "-ltorch_cpu"]);
    command
}

/// What the result depends on, as a number (FNV-1a: stable over versions of Rust, unlike the standard library's).
fn key(install: &TorchInstall) -> u64 {
    let install = format!(
        "{}|{}|{}|{}",
        install.version(),
        install.cxx11_abi(),
        install.is_debug(),
        install.library_bytes()
    );
    let parts = SOURCES.iter().map(|(_, text)| *text).chain([install.as_str(), std::env::consts::ARCH]);
    let bytes = parts.flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn cache_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("HOTSPAN_CACHE_DIR")
        .or_else(|| Some(variable("XDG_CACHE_HOME")?.join("hotspan")))
        .or_else(|| Some(variable("HOME")?.join(".cache/hotspan")))
        // SAFETY: takes nothing and cannot fail.
        .unwrap_or_else(|| std::env::temp_dir().join(format!("hotspan-{}", unsafe { libc::getuid() })))
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
