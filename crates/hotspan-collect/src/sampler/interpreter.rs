//! Finding the interpreter in a process: which Python it is, and where its state lies.

use std::fmt;
use std::path::PathBuf;

use super::error::SamplerError;
use super::maps::{LoadedFile, mapped_files, seen_from_here};
use super::memory::ProcessMemory;
use crate::cpython::{Address, Memory, Offsets};
use crate::elf::Elf;
use crate::mapped_file::map;
use crate::process_tree::ProcessNumber;

/// A version of Python 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PythonVersion {
    /// The second number.
    pub minor: u8,
    /// The third number, where the interpreter says it.
    pub patch: Option<u8>,
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            Some(patch) => write!(f, "3.{}.{patch}", self.minor),
            None => write!(f, "3.{}", self.minor),
        }
    }
}

/// A Python interpreter found in a process.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// Which Python it is.
    pub version: PythonVersion,
    /// The file it is in, as the process sees it.
    pub file: String,
    pub(super) runtime: Address,
    pub(super) offsets: Offsets,
    /// The type that every code object has, where the file tells.
    pub(super) code_type: Option<Address>,
}

impl Interpreter {
    /// Searches a process for Python.
    ///
    /// # Errors
    /// When there is no such process, no Python in it, a Python without a table of offsets, or no permission to look.
    pub fn find(process: ProcessNumber) -> Result<Self, SamplerError> {
        let memory = ProcessMemory { process };
        let mappings = mapped_files(process)?;
        if mappings.is_empty() {
            // A zombie, or a thread of the kernel.
            let reason = "it has no files mapped: it has ended, or is part of the kernel".to_owned();
            return Err(SamplerError::NotPython { process, reason });
        }
        Self::search(process, &memory, &mappings, |path| seen_from_here(process, path))
    }

    /// Searches the files that are mapped in some memory.
    pub(super) fn search<M: Memory<Error = SamplerError>>(
        process: ProcessNumber,
        memory: &M,
        mappings: &[LoadedFile],
        seen: impl Fn(&str) -> PathBuf,
    ) -> Result<Self, SamplerError> {
        for mapping in candidates(mappings) {
            let Some(content) = map(seen(&mapping.path)) else { continue };
            let Some(elf) = Elf::parse(&*content) else { continue };
            let names = ["_PyRuntime", "Py_Version", "PyCode_Type"];
            let [runtime, version, code_type] =
                elf.symbols_at(mapping.base.0, names).map(|found| found.map(Address));
            let Some(runtime) = runtime else { continue };
            let version = match version {
                Some(address) => Some(exact_version(memory.word(address)?)),
                None => named_version(mappings),
            };
            let Some(version) = version else { continue };
            let offsets = Offsets::of(version.minor, runtime, memory)?
                .ok_or_else(|| SamplerError::UnknownVersion { process, version: version.to_string() })?;
            return Ok(Self { version, file: mapping.path.clone(), runtime, offsets, code_type });
        }
        let reason = "no file mapped in it has the symbol _PyRuntime".to_owned();
        Err(SamplerError::NotPython { process, reason })
    }
}

/// The files that may hold the interpreter, likely ones first. A library comes before the program, which may be anything.
fn candidates(mappings: &[LoadedFile]) -> impl Iterator<Item = &LoadedFile> {
    let library = |mapping: &&LoadedFile| file_name(&mapping.path).starts_with("libpython3");
    let first = mappings.first();
    let program = move |mapping: &&LoadedFile| {
        !library(mapping)
            && (file_name(&mapping.path).contains("python")
                || first.is_some_and(|first| first.path == mapping.path))
    };
    mappings.iter().filter(library).chain(mappings.iter().filter(program))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `Py_Version`: 0x030b07f0 is 3.11.7.
fn exact_version(hex: u64) -> PythonVersion {
    PythonVersion { minor: (hex >> 16) as u8, patch: Some((hex >> 8) as u8) }
}

/// Before 3.11 only names tell the version: of the library, the program, or the folder of the standard library.
fn named_version(mappings: &[LoadedFile]) -> Option<PythonVersion> {
    mappings.iter().find_map(|mapping| {
        let (_, after) = mapping.path.split_once("python3.")?;
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        Some(PythonVersion { minor: after[..digits].parse().ok()?, patch: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_by_number_or_name() {
        assert_eq!(exact_version(0x030b_07f0).to_string(), "3.11.7");
        let mapping = |path: &str| LoadedFile { base: Address(0), path: path.to_owned() };
        let named = named_version(&[mapping("/bin/x"), mapping("/usr/lib/python3.10/lib-dynload/a.so")]);
        assert_eq!(named.map(|version| version.to_string()).as_deref(), Some("3.10"));
        assert_eq!(named_version(&[mapping("/bin/sh")]), None);
    }

    #[test]
    fn a_process_without_python_is_told_apart_from_no_process() {
        let own = ProcessNumber(std::process::id());
        assert!(matches!(Interpreter::find(own), Err(SamplerError::NotPython { .. })));
        assert!(matches!(Interpreter::find(ProcessNumber(0x7fff_fff0)), Err(SamplerError::NoProcess(_))));
    }
}
