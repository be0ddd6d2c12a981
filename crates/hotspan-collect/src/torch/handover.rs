//! What `hotspan run` found out about hooks before it started the program, told to the program's processes.
//!
//! So no process of the program looks for them again, let alone compiles. A program may install another torch before it
//! imports it: what was said holds for the torch that was there.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The variable of the environment.
pub const VARIABLE: &str = "HOTSPAN_HOOKS";

/// The hooks of the torch in a folder, or why there are none.
#[must_use]
pub fn tell(torch: &Path, found: Result<&Path, &str>) -> String {
    let (torch, stamp) = (torch.display().to_string(), stamp(torch));
    match found {
        Ok(library) => json!({"torch": torch, "stamp": stamp, "library": library.display().to_string()}),
        Err(reason) => json!({"torch": torch, "stamp": stamp, "reason": reason}),
    }
    .to_string()
}

/// What changes when another torch is installed in the same folder.
fn stamp(torch: &Path) -> Option<String> {
    let version = std::fs::metadata(torch.join("version.py")).ok()?;
    let library = std::fs::metadata(torch.join("lib/libtorch_cpu.so")).ok()?;
    Some(format!("{}.{} {}", version.mtime(), version.mtime_nsec(), library.len()))
}

/// What was told about the torch in a folder.
pub(super) fn told(torch: &Path) -> Option<Result<PathBuf, String>> {
    read(&std::env::var(VARIABLE).ok()?, torch)
}

fn read(text: &str, torch: &Path) -> Option<Result<PathBuf, String>> {
    let told: Value = serde_json::from_str(text).ok()?;
    let about = Path::new(told["torch"].as_str()?);
    let is_same = about == torch || about.canonicalize().ok()? == torch.canonicalize().ok()?;
    if !is_same || told["stamp"].as_str() != stamp(torch).as_deref() {
        return None;
    }
    match (told["library"].as_str(), told["reason"].as_str()) {
        (Some(library), _) => Some(Ok(PathBuf::from(library))),
        (None, Some(reason)) => Some(Err(reason.to_owned())),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_for_that_torch_only() {
        let torch = std::env::temp_dir().join(format!("hotspan-handover-{}", std::process::id()));
        std::fs::create_dir_all(torch.join("lib")).unwrap();
        std::fs::write(torch.join("version.py"), "__version__ = '2.15.0'").unwrap();
        std::fs::write(torch.join("lib/libtorch_cpu.so"), "one").unwrap();
        let text = tell(&torch, Ok(Path::new("/cache/hooks.so")));
        assert_eq!(read(&text, &torch), Some(Ok(PathBuf::from("/cache/hooks.so"))));
        assert_eq!(read(&text, Path::new("/b/torch")), None);
        let failed = tell(&torch, Err("no compiler"));
        assert_eq!(read(&failed, &torch), Some(Err("no compiler".to_owned())));
        assert_eq!(read("{", &torch), None);
        std::fs::write(torch.join("lib/libtorch_cpu.so"), "another").unwrap();
        assert_eq!(read(&text, &torch), None);
        assert_eq!(read(&failed, &torch), None);
        std::fs::remove_dir_all(&torch).unwrap();
    }
}
