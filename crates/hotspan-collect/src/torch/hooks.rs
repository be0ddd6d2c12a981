//! Which hooks a torch gets: those that came with hotspan, those compiled here before, or those compiled now.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::torch::{CollectError, TorchInstall, build, carried};

/// Where hooks came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The wheel of hotspan.
    Carried,
    /// Compiled on this machine, before.
    Cached,
    /// Compiled on this machine, now, in this time.
    Compiled(Duration),
    /// `hotspan run` chose them before it started the program.
    Handed,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Carried => write!(formatter, "came with hotspan"),
            Self::Cached => write!(formatter, "compiled before"),
            Self::Compiled(time) => write!(formatter, "compiled now, in {:.1} s", time.as_secs_f64()),
            Self::Handed => write!(formatter, "chosen by hotspan run"),
        }
    }
}

/// The library of the hooks of a torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// The file.
    pub library: PathBuf,
    /// Where it came from.
    pub origin: Origin,
}

impl Hooks {
    /// The hooks of this torch that are there, in the order in which they should be tried, and why those that came with
    /// hotspan are not among them. `package`: the folder of hotspan's Python package, where it is not that of this library.
    #[must_use]
    pub fn ready(install: &TorchInstall, package: Option<&Path>) -> (Vec<Self>, Option<String>) {
        // Those of the package are as good as the package, of which code is run anyway.
        let (folder, is_package) = match (package, std::env::var_os("HOTSPAN_HOOKS_DIR")) {
            (Some(package), None) => (Some(package.join("_hooks")), true),
            _ => (carried::folder(), false),
        };
        let find = |folder: PathBuf| {
            let library = carried::find(&folder, install)?;
            match carried::check(&library) {
                Err(error) if !is_package => Err(format!("{} is not loaded: {error}", library.display())),
                _ => Ok(library),
            }
        };
        let (found, why_not) = match folder.map(find) {
            Some(Ok(library)) => (Some(library), None),
            Some(Err(reason)) => (None, Some(reason)),
            None => (None, Some("this hotspan carries none".to_owned())),
        };
        let found = found.map(|library| Self { library, origin: Origin::Carried });
        let cached = build::cached(install).map(|library| Self { library, origin: Origin::Cached });
        (found.into_iter().chain(cached).collect(), why_not)
    }

    /// Compiles the hooks of this torch into the cache; waits where another process does.
    ///
    /// # Errors
    /// When there is no compiler, or no folder for the result; the message says what to do.
    pub fn compile(install: &TorchInstall, why_not_carried: Option<&str>) -> Result<Self, CollectError> {
        let began = Instant::now();
        match build::compile_into_cache(install) {
            Ok(library) => Ok(Self { library, origin: Origin::Compiled(began.elapsed()) }),
            Err(CollectError::NoCompiler { tried, .. }) => {
                let carried = why_not_carried.map_or_else(String::new, |reason| {
                    format!(", and hotspan carries no hooks for this torch: {reason}")
                });
                Err(CollectError::NoCompiler { tried, carried })
            }
            Err(error) => Err(error),
        }
    }

    /// Compiles hooks to be carried by a wheel, into a folder; returns the library.
    ///
    /// # Errors
    /// When they do not compile.
    pub fn carry(install: &TorchInstall, folder: &Path) -> Result<PathBuf, CollectError> {
        carried::make(install, folder)
    }
}
