//! The libcupti of this process: found among the loaded libraries, checked, and never unloaded.
//!
//! torch's wheel brings a libcupti and loads it. A second copy would fight with it over the driver, so the loaded one is
//! taken; only where none is loaded is one looked for by name. `HOTSPAN_CUPTI` names one outright.

use std::path::Path;
use std::sync::OnceLock;

use crate::cupti::CuptiError;
use crate::cupti::abi::{CuptiResult, Functions};
use crate::dynamic_library::{open_library, symbol};
use crate::memory_map::{MappedRange, own_memory_map};

/// CUPTI of CUDA 11.8, the oldest whose records begin like today's.
const OLDEST_VERSION: u32 = 18;

/// A usable libcupti.
#[derive(Clone, Debug)]
pub struct Library {
    functions: Functions,
    path: String,
    version: u32,
}

impl Library {
    /// The libcupti of this process.
    ///
    /// # Errors
    /// When there is none, or it is too old.
    pub fn load() -> Result<Self, CuptiError> {
        static LOADED: OnceLock<Result<Library, CuptiError>> = OnceLock::new();
        if let Some(named) = std::env::var_os("HOTSPAN_CUPTI").filter(|named| !named.is_empty()) {
            return Self::at(Path::new(&named));
        }
        // What failed once may work after torch was imported; what worked stays.
        match LOADED.get() {
            Some(loaded) => loaded.clone(),
            None => {
                let found = Self::find();
                if found.is_ok() { LOADED.get_or_init(|| found).clone() } else { found }
            }
        }
    }

    /// The libcupti in a file.
    ///
    /// # Errors
    /// When it cannot be loaded, is no libcupti, or is too old.
    pub fn at(path: &Path) -> Result<Self, CuptiError> {
        Self::open(&path.to_string_lossy(), 0)
    }

    fn find() -> Result<Self, CuptiError> {
        let loaded = loaded_libraries("libcupti.so");
        for path in &loaded {
            if let Ok(library) = Self::open(path, libc::RTLD_NOLOAD) {
                return Ok(library);
            }
        }
        let names = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
        let mut reason = format!("tried {}", names.join(", "));
        for name in names {
            match Self::open(name, 0) {
                Ok(library) => return Ok(library),
                Err(CuptiError::NoLibrary { .. }) => {}
                Err(other) => reason = other.to_string(),
            }
        }
        Err(CuptiError::NoLibrary { reason })
    }

    fn open(path: &str, flags: i32) -> Result<Self, CuptiError> {
        let library = open_library(path, flags).map_err(|reason| CuptiError::NoLibrary { reason })?;
        // SAFETY: the library is CUPTI by its name, and is never closed.
        let functions = unsafe { Functions::find(|name| symbol(library, name)) }.map_err(|function| {
            CuptiError::NotCupti { path: path.to_owned(), function: function.to_owned() }
        })?;
        let mut version = 0;
        // SAFETY: CUPTI fills the local.
        let result = unsafe { (functions.get_version)(&raw mut version) };
        if result != CuptiResult::SUCCESS {
            let code = functions.result_name(result);
            return Err(CuptiError::Refused { what: "to tell its version", code });
        }
        if version < OLDEST_VERSION {
            return Err(CuptiError::TooOld { version });
        }
        Ok(Self { functions, path: path.to_owned(), version })
    }

    /// Where it was loaded from.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What cuptiGetVersion says: 18 to 28 for CUDA 11.8 to 12.9, 130000 and up from CUDA 13.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// A refusal in words, naming the tool that holds CUPTI where it can be told.
    pub(crate) fn refusal(&self, what: &'static str, result: CuptiResult) -> CuptiError {
        let code = self.functions.result_name(result);
        match result {
            CuptiResult::MULTIPLE_SUBSCRIBERS | CuptiResult::OLD_PROFILER_API_INITIALIZED => {
                CuptiError::Held { holder: holder().unwrap_or("another profiler").to_owned(), code }
            }
            CuptiResult::INSUFFICIENT_PRIVILEGES | CuptiResult::VIRTUALIZED_DEVICE => {
                CuptiError::NotAllowed { code }
            }
            _ => match holder() {
                Some(holder) => CuptiError::Held { holder: holder.to_owned(), code },
                None => CuptiError::Refused { what, code },
            },
        }
    }
}

/// The tool that runs this process under its own CUPTI, told by what it loads or sets.
fn holder() -> Option<&'static str> {
    let signs = [
        ("Nsight Systems (nsys)", ["NSYS_PROFILING_SESSION_ID", "libToolsInjection"]),
        ("Nsight Compute (ncu)", ["NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "libcuda-injection"]),
        ("Compute Sanitizer", ["NV_SANITIZER_INJECTION_PORT_BASE", "libsanitizer-public"]),
    ];
    signs.iter().find_map(|(name, [variable, library])| {
        let is_set = std::env::var_os(variable).is_some();
        (is_set || !loaded_libraries(library).is_empty()).then_some(*name)
    })
}

/// The files of loaded libraries whose names begin like this.
pub(crate) fn loaded_libraries(prefix: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for MappedRange { path, .. } in own_memory_map().into_iter().filter(MappedRange::is_file) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.starts_with(prefix) && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}
