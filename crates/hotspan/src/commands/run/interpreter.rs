//! Which programs are a Python, and which Python a script asks for in its first line.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Longer first lines are not read.
const LONGEST_LINE: u64 = 4_096;

/// Whether a program is Python by its name, such as `/usr/bin/python3.14t`.
pub(super) fn is_python(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version
        .is_some_and(|version| version.chars().all(|letter| letter.is_ascii_digit() || ".t".contains(letter)))
}

/// The Python that the first line of a script names.
pub(super) fn of_script(script: &Path) -> Option<OsString> {
    let mut line = Vec::new();
    BufReader::new(File::open(script).ok()?.take(LONGEST_LINE)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    // `#!/usr/bin/env python3` names it second; what follows a Python are its options.
    let words = line.strip_prefix("#!")?.split_whitespace();
    words.map(OsString::from).find(|word| is_python(Path::new(word)))
}
