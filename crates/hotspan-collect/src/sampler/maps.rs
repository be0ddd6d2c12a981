//! The files a process has mapped, from `/proc/<pid>/maps`.

use std::path::PathBuf;

use super::error::SamplerError;
use super::memory::{Address, ProcessNumber};

/// A file, mapped.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    /// Where its first byte is, or would be.
    pub(super) base: Address,
    /// The path as the process sees it.
    pub(super) path: String,
}

/// All mapped files, each once.
pub(super) fn mapped_files(process: ProcessNumber) -> Result<Vec<Mapping>, SamplerError> {
    let path = format!("/proc/{process}/maps");
    let text = std::fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => SamplerError::NoProcess(process),
        std::io::ErrorKind::PermissionDenied => super::error::not_permitted(process),
        _ if error.raw_os_error() == Some(libc::ESRCH) => SamplerError::NoProcess(process),
        _ => SamplerError::System { process, source: error },
    })?;
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in String::from_utf8_lossy(&text).lines() {
        if let Some(mapping) = parse(line)
            && mappings.iter().all(|known| known.path != mapping.path)
        {
            mappings.push(mapping);
        }
    }
    Ok(mappings)
}

/// `7f00-7f01 r-xp 00001000 08:01 123   /usr/lib/x.so`
fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let begin = u64::from_str_radix(fields.next()?.split('-').next()?, 16).ok()?;
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    let path = fields.nth(2)?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.starts_with('/')
        .then(|| Mapping { base: Address(begin.wrapping_sub(offset)), path: path.to_owned() })
}

/// Where a path of the process is for us: containers have a root of their own.
pub(super) fn seen_from_here(process: ProcessNumber, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/root{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let mapping =
            parse("7f0000001000-7f0000002000 r-xp 00001000 08:01 12345    /usr/lib/a b.so (deleted)")
                .unwrap();
        assert_eq!((mapping.base, mapping.path.as_str()), (Address(0x7f00_0000_0000), "/usr/lib/a b.so"));
        assert!(parse("7f00-7f01 rw-p 00000000 00:00 0 ").is_none());
        assert!(parse("7f00-7f01 rw-p 00000000 00:00 0    [heap]").is_none());
    }
}
