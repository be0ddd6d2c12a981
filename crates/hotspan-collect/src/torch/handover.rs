//! What `hotspan run` found out about hooks before it started the program, told to the program's processes.
//!
//! So no process of the program looks for them again, let alone compiles.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The variable of the environment.
pub const VARIABLE: &str = "HOTSPAN_HOOKS";

/// The hooks of the torch in a folder, or why there are none.
#[must_use]
pub fn tell(torch: &Path, found: Result<&Path, &str>) -> String {
    let torch = torch.display().to_string();
    match found {
        Ok(library) => json!({"torch": torch, "library": library.display().to_string()}),
        Err(reason) => json!({"torch": torch, "reason": reason}),
    }
    .to_string()
}

/// What was told about the torch in a folder.
pub(super) fn told(torch: &Path) -> Option<Result<PathBuf, String>> {
    read(&std::env::var(VARIABLE).ok()?, torch)
}

fn read(text: &str, torch: &Path) -> Option<Result<PathBuf, String>> {
    let told: Value = serde_json::from_str(text).ok()?;
    let about = Path::new(told["torch"].as_str()?);
    let is_same = about == torch || about.canonicalize().ok()? == torch.canonicalize().ok()?;
    if !is_same {
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
        let torch = Path::new("/a/torch");
        let text = tell(torch, Ok(Path::new("/cache/hooks.so")));
        assert_eq!(read(&text, torch), Some(Ok(PathBuf::from("/cache/hooks.so"))));
        assert_eq!(read(&text, Path::new("/b/torch")), None);
        assert_eq!(read(&tell(torch, Err("no compiler")), torch), Some(Err("no compiler".to_owned())));
        assert_eq!(read("{", torch), None);
    }
}
