//! Source files as text, for reports that show them.

/// The text of a source file; `None` when it cannot be read. Bytes that are not UTF-8 are replaced.
#[must_use]
pub fn read_source(file: &str) -> Option<String> {
    std::fs::read(file).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
