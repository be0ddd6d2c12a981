//! Which programs are a Python, and which Python a script asks for in its first lines.
//!
//! Where the first line of a script cannot name its Python, because the path is long or has a space, or because the environment may be
//! moved, pip, uv and conda write a script that is Python and shell at once. Its second line has the shell start Python:
//!
//! ```text
//! #!/bin/sh
//! '''exec' "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@"
//! ' '''
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longer first lines are not read.
const LONGEST_LINE: u64 = 4_096;
/// The kernel reads so much of a script.
const KERNEL_READS: usize = 256;
/// What the second line begins with: a string to Python, `exec` to a shell.
const EXEC: &str = "'''exec' ";

/// Whether a program is Python by its name, such as `/usr/bin/python3.14t`.
pub(super) fn is_python(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version
        .is_some_and(|version| version.chars().all(|letter| letter.is_ascii_digit() || ".t".contains(letter)))
}

/// The Python that a script names.
pub(super) fn of_script(script: &Path) -> Option<OsString> {
    let mut reader = BufReader::new(File::open(script).ok()?.take(2 * LONGEST_LINE));
    let first = line(&mut reader)?;
    let first = first.strip_prefix("#!")?;
    // `#!/usr/bin/env python3` names it second; what follows a Python are its options.
    let python = first.split_whitespace().map(OsString::from).find(|word| is_python(Path::new(word)));
    python.or_else(|| Some(by_shell(line(&mut reader)?.strip_prefix(EXEC)?, script)?.into_os_string()))
}

/// The Python of a script whose first line is too long for the kernel: it would not start.
pub(super) fn too_long(script: &Path) -> Option<OsString> {
    let mut reader = BufReader::new(File::open(script).ok()?.take(LONGEST_LINE));
    let first = line(&mut reader)?;
    let path = first.strip_prefix("#!")?.split_whitespace().next()?;
    let is_long = 2 + path.len() >= KERNEL_READS && is_python(Path::new(path));
    (is_long && Path::new(path).exists()).then(|| path.into())
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).ok()?;
    String::from_utf8(line).ok()
}

/// The first word of a shell's command: a path, quoted or not, or one beside the script.
fn by_shell(command: &str, script: &Path) -> Option<PathBuf> {
    let (folder, name) = match command.strip_prefix("\"$(") {
        None => (None, command),
        Some(substitution) => {
            let (inner, name) = substitution.rsplit_once(")\"/")?;
            let script =
                if inner.contains("realpath") { script.canonicalize().ok()? } else { script.to_owned() };
            (Some(script.parent()?.to_owned()), name)
        }
    };
    let path = match name.chars().next()? {
        quote @ ('\'' | '"') => name[1..].split(quote).next()?,
        _ => name.split_whitespace().next()?,
    };
    let path = folder.unwrap_or_default().join(path);
    is_python(&path).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_python_behind_a_script_is_found() {
        let folder = std::env::temp_dir().join(format!("hotspan-interpreter-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        let folder = folder.canonicalize().unwrap();
        let (script, link) = (folder.join("bin/tool"), folder.join("tool"));
        symlink(&script, &link).unwrap();
        let of = |script: &Path, text: &str| {
            fs::write(script, text).unwrap();
            of_script(script).map(PathBuf::from)
        };
        let long = format!("/{}/bin/python3.12", "long/".repeat(100));
        let beside = folder.join("bin/python");
        let shell =
            |command: &str| format!("#!/bin/sh\n'''exec' {command} \"$0\" \"$@\"\n' '''\nimport sys\n");
        for (text, expected) in [
            (
                "#!/opt/env/bin/python3.12 -u\nimport sys\n".to_owned(),
                Some(PathBuf::from("/opt/env/bin/python3.12")),
            ),
            ("#!/usr/bin/env python3 -u\n".to_owned(), Some(PathBuf::from("python3"))),
            (format!("#!{long}\n"), Some(PathBuf::from(&long))),
            (shell(&long), Some(PathBuf::from(&long))),
            (shell("\"/with a space/python\""), Some(PathBuf::from("/with a space/python"))),
            (shell("'/with a space/python3'"), Some(PathBuf::from("/with a space/python3"))),
            (shell(r#""$(dirname -- "$(realpath -- "$0")")"/'python'"#), Some(beside.clone())),
            (
                shell(r#""$(CDPATH= cd -- "$(dirname -- "$0")" && echo "$PWD")"/'python'"#),
                Some(beside.clone()),
            ),
            (shell("/usr/bin/perl"), None),
            ("#!/bin/sh\npython train.py\n".to_owned(), None),
            ("#!/bin/sh".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(of(&script, &text), expected, "{text}");
        }
        // A link is followed where the script does so.
        assert_eq!(of(&link, &shell(r#""$(dirname -- "$(realpath -- "$0")")"/'python'"#)), Some(beside));
        fs::remove_dir_all(folder).unwrap();
    }
}
