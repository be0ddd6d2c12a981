//! The files a process has mapped, from `/proc/<pid>/maps`.

use std::path::PathBuf;

use super::error::SamplerError;
use crate::cpython::Address;
use crate::memory_map::MappedRange;
use crate::process_tree::ProcessNumber;

/// A file, loaded.
#[derive(Clone, Debug)]
pub(super) struct LoadedFile {
    /// Where its first byte is, or would be.
    pub(super) base: Address,
    /// The path as the process sees it.
    pub(super) path: String,
}

/// All mapped files, each once.
pub(super) fn mapped_files(process: ProcessNumber) -> Result<Vec<LoadedFile>, SamplerError> {
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
fn loaded(text: &str) -> Vec<LoadedFile> {
    let mut loads: Vec<(LoadedFile, bool)> = Vec::new();
    for mapped in text.lines().filter_map(MappedRange::parse).filter(MappedRange::is_file) {
        let path = mapped.path.strip_suffix(" (deleted)").unwrap_or(&mapped.path);
        match loads.last_mut() {
            // The next segment of the same load.
            Some((last, runs)) if last.path == path && mapped.offset != 0 => *runs |= mapped.is_code,
            _ => {
                let base = Address(mapped.range.start.wrapping_sub(mapped.offset));
                loads.push((LoadedFile { base, path: path.to_owned() }, mapped.is_code));
            }
        }
    }
    let mut mappings: Vec<(LoadedFile, bool)> = Vec::new();
    for (mapping, runs) in loads {
        match mappings.iter_mut().find(|(listed, _)| listed.path == mapping.path) {
            Some(listed) if runs && !listed.1 => *listed = (mapping, runs),
            Some(_) => {}
            None => mappings.push((mapping, runs)),
        }
    }
    mappings.into_iter().map(|(mapping, _)| mapping).collect()
}

/// Where a path of the process is for us: containers have a root of their own.
pub(super) fn seen_from_here(process: ProcessNumber, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/root{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
