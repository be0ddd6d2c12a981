//! Names of traces. Formats are told by content; names only choose among the files of a folder, and say how output is compressed.

const ENDINGS: [&str; 4] = [".json", ".hotspan", ".prof", ".lprof"];
const COMPRESSIONS: [&str; 2] = [".gz", ".zst"];

/// The endings of traces, for people.
pub const TRACE_ENDINGS: &str =
    "traces end in .json, .hotspan, .prof or .lprof, with .gz or .zst after it where compressed";

/// A name without the ending of a compression.
#[must_use]
pub fn uncompressed(name: &str) -> &str {
    COMPRESSIONS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The name of a trace without its endings; `None` for names of other files, and of hidden ones.
#[must_use]
pub fn trace_stem(name: &str) -> Option<&str> {
    let name = Some(name).filter(|name| !name.starts_with('.')).map(uncompressed)?;
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_told_by_their_endings() {
        for name in ["a.json", "w.123.pt.trace.json.gz", "a.json.zst", "run.hotspan", "run.hotspan.gz"] {
            assert!(trace_stem(name).is_some(), "{name}");
        }
        for name in ["a.txt", "json", ".a.json.17.tmp", ".hidden.json", "a.gz"] {
            assert!(trace_stem(name).is_none(), "{name}");
        }
        assert_eq!(trace_stem("w.123.pt.trace.json.gz"), Some("w.123.pt.trace"));
    }

    #[test]
    fn people_are_told_of_every_ending() {
        for ending in ENDINGS.iter().chain(&COMPRESSIONS) {
            assert!(TRACE_ENDINGS.contains(ending), "{ending}");
        }
    }
}
