//! Numbers that tell texts and files apart: FNV-1a, which is the same in every version of Rust and on every machine.

use std::path::Path;

use crate::torch::CollectError;

/// A hash that is fed piece by piece; pieces do not run into each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    #[must_use]
    pub(super) fn with(self, piece: impl AsRef<[u8]>) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let piece = piece.as_ref().iter().copied();
        Self(piece.chain([0]).fold(self.0, step))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// The fingerprint of headers, in this order: of their names below `include` and of all they say.
pub(super) fn of_headers<'a>(
    include: &Path,
    headers: impl IntoIterator<Item = &'a str>,
) -> Result<u64, CollectError> {
    let mut fingerprint = Fingerprint::new();
    for header in headers {
        let path = include.join(header);
        let text = std::fs::read(&path).map_err(|source| CollectError::Cache { path, source })?;
        fingerprint = fingerprint.with(header).with(text);
    }
    Ok(fingerprint.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_run_into_each_other() {
        let of = |pieces: &[&str]| pieces.iter().fold(Fingerprint::new(), Fingerprint::with).number();
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
    }

    #[test]
    fn a_header_that_says_something_else_is_another_one() {
        let folder = std::env::temp_dir().join(format!("hotspan-headers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let of = |text: &str| {
            std::fs::write(folder.join("a.h"), text).unwrap();
            of_headers(&folder, ["a.h"]).unwrap()
        };
        assert_ne!(of("struct A { int x; };"), of("struct A { int y; };"));
        assert!(of_headers(&folder, ["missing.h"]).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
