//! The files a process has mapped, from `/proc/<pid>/maps`.

use std::path::PathBuf;

use super::error::SamplerError;
use crate::cpython::Address;
use crate::process_tree::ProcessNumber;

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
    Ok(loaded(&String::from_utf8_lossy(&text)))
}

/// Each file once: where it is loaded to run, or where it was first mapped. A profiler or a debugger in the process may have
/// mapped a library a second time, only to read it.
fn loaded(text: &str) -> Vec<Mapping> {
    let mut loads: Vec<(Mapping, bool)> = Vec::new();
    for (mapping, is_beginning, runs) in text.lines().filter_map(parse) {
        match loads.last_mut() {
            // The next segment of the same file, loaded once.
            Some((last, last_runs)) if last.path == mapping.path && !is_beginning => *last_runs |= runs,
            _ => loads.push((mapping, runs)),
        }
    }
    let mut mappings: Vec<(Mapping, bool)> = Vec::new();
    for (mapping, runs) in loads {
        match mappings.iter_mut().find(|(other, _)| other.path == mapping.path) {
            Some(other) if runs && !other.1 => *other = (mapping, runs),
            Some(_) => {}
            None => mappings.push((mapping, runs)),
        }
    }
    mappings.into_iter().map(|(mapping, _)| mapping).collect()
}

/// A file with whether this is its beginning and whether it may run: `7f00-7f01 r-xp 00001000 08:01 123   /usr/lib/x.so`
fn parse(line: &str) -> Option<(Mapping, bool, bool)> {
    let mut fields = line.splitn(6, ' ');
    let begin = u64::from_str_radix(fields.next()?.split('-').next()?, 16).ok()?;
    let runs = fields.next()?.contains('x');
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let path = fields.nth(2)?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let mapping = Mapping { base: Address(begin.wrapping_sub(offset)), path: path.to_owned() };
    path.starts_with('/').then_some((mapping, offset == 0, runs))
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
        let (mapping, is_beginning, runs) =
            parse("7f0000001000-7f0000002000 r-xp 00001000 08:01 12345    /usr/lib/a b.so (deleted)")
                .unwrap();
        assert_eq!((mapping.base, mapping.path.as_str()), (Address(0x7f00_0000_0000), "/usr/lib/a b.so"));
        assert!(!is_beginning && runs);
        assert!(parse("7f00-7f01 rw-p 00000000 00:00 0 ").is_none());
        assert!(parse("7f00-7f01 rw-p 00000000 00:00 0    [heap]").is_none());
    }
    #[test]
    fn a_library_is_where_it_runs() {
        let maps = "1000-2000 r--p 00000000 08:01 5 /lib/a.so
            5000-6000 r--p 00000000 08:01 5 /lib/a.so
            6000-7000 r-xp 00001000 08:01 5 /lib/a.so
            9000-a000 r--p 00000000 08:01 5 /lib/a.so
            b000-c000 r--p 00000000 08:01 6 /lib/data";
        let maps: Vec<&str> = maps.lines().map(str::trim).collect();
        let found = loaded(&maps.join("\n"));
        let found: Vec<_> = found.iter().map(|mapping| (mapping.base.0, mapping.path.as_str())).collect();
        assert_eq!(found, [(0x5000, "/lib/a.so"), (0xb000, "/lib/data")]);
    }
}
