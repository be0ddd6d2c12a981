//! An installed torch: where its headers and libraries are, its version and its C++ ABI.

use std::path::{Path, PathBuf};

use crate::torch::CollectError;

/// A torch that a shim can be built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchInstall {
    root: PathBuf,
    version: String,
    cxx11_abi: bool,
    is_debug: bool,
    architecture: &'static str,
    /// Bytes of the main library: tells two builds of one version apart.
    library_bytes: u64,
}

impl TorchInstall {
    /// The torch whose Python package is the folder `root`.
    ///
    /// # Errors
    /// When the folder is no torch, or has no headers.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self, CollectError> {
        let root = root.into();
        let missing = |reason: String| CollectError::NotTorch { path: root.clone(), reason };
        if !root.join("include/ATen/record_function.h").is_file() {
            return Err(missing("include/ATen/record_function.h is missing".into()));
        }
        let description = std::fs::read_to_string(root.join("version.py"))
            .map_err(|error| missing(format!("version.py: {error}")))?;
        let version =
            parse_version(&description).ok_or_else(|| missing("version.py names no version".into()))?;
        let is_debug = description.lines().any(|line| line.trim() == "debug = True");
        let library = root.join("lib/libtorch_cpu.so");
        let library_bytes = std::fs::metadata(&library)
            .map_err(|error| missing(format!("{}: {error}", library.display())))?
            .len();
        let symbols = root.join("lib/libc10.so");
        let symbols =
            std::fs::read(&symbols).map_err(|error| missing(format!("{}: {error}", symbols.display())))?;
        let cxx11_abi = uses_cxx11_strings(&symbols);
        let architecture =
            architecture(&symbols).ok_or_else(|| missing("lib/libc10.so is of another system".into()))?;
        Ok(Self { root, version, cxx11_abi, is_debug, architecture, library_bytes })
    }

    /// The folder of the package.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The version with its build, such as "2.15.0+cu132".
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The version of the release, such as "2.15.0": all its builds have the same headers.
    #[must_use]
    pub fn release(&self) -> &str {
        self.version.split('+').next().unwrap_or_default()
    }

    /// The processor that it was built for, as Rust names it.
    #[must_use]
    pub fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Whether it was built with the strings that C++11 requires (`_GLIBCXX_USE_CXX11_ABI`).
    #[must_use]
    pub fn cxx11_abi(&self) -> bool {
        self.cxx11_abi
    }

    /// The same release, built with the other strings or with these.
    #[must_use]
    pub fn with_cxx11_abi(self, cxx11_abi: bool) -> Self {
        Self { cxx11_abi, ..self }
    }

    /// Whether it was built with assertions, which change the layout of its objects.
    #[must_use]
    pub fn is_debug(&self) -> bool {
        self.is_debug
    }

    pub(crate) fn library_bytes(&self) -> u64 {
        self.library_bytes
    }

    pub(crate) fn include_folders(&self) -> [PathBuf; 2] {
        let include = self.root.join("include");
        let api = include.join("torch/csrc/api/include");
        [include, api]
    }
}

fn parse_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    let quoted = line.split(['\'', '"']).nth(1)?;
    (!quoted.is_empty()).then(|| quoted.to_owned())
}

/// The constructor of c10::Error takes a string, and its name says which kind.
fn uses_cxx11_strings(library: &[u8]) -> bool {
    let needle = b"SourceLocationENSt7__cxx11";
    library.windows(needle.len()).any(|window| window == needle)
}

/// The processor that a library in the format ELF is for.
fn architecture(library: &[u8]) -> Option<&'static str> {
    match library.get(..20)? {
        [0x7f, b'E', b'L', b'F', .., 62, 0] => Some("x86_64"),
        [0x7f, b'E', b'L', b'F', .., 183, 0] => Some("aarch64"),
        [0x7f, b'E', b'L', b'F', ..] => Some("another processor"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version() {
        let text = "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '2.15.0+cu132'\ndebug = False\n";
        assert_eq!(parse_version(text).as_deref(), Some("2.15.0+cu132"));
        assert_eq!(parse_version("__version__ = ''"), None);
    }

    #[test]
    fn tells_the_two_abis_apart() {
        assert!(uses_cxx11_strings(b"\0_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcE\0"));
        assert!(!uses_cxx11_strings(b"\0_ZN3c105ErrorC1ENS_14SourceLocationESs\0"));
    }

    #[test]
    fn a_folder_that_is_no_torch_is_refused_with_a_reason() {
        let error = TorchInstall::at("/nonexistent/torch").unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/torch is not an installed torch"), "{error}");
    }
}
