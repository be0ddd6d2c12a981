//! How much memory reading may take, so that a file that is larger inside than outside ends in an error and not in a machine
//! that kills processes.
//!
//! The limit is one for the process. What reading takes is what the process holds more than when it began, which the system
//! tells; memory of mapped files does not count, because the system takes it back when it needs it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ImportError;

/// 0: as much as [`default_limit`] says.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Sets how many bytes reading may take.
pub fn set_memory_limit(bytes: u64) {
    LIMIT.store(bytes.max(1), Ordering::Relaxed);
}

/// How many bytes reading may take: what was set or `HOTSPAN_MAX_MEMORY` says, or half of the memory of the machine or container.
#[must_use]
pub fn memory_limit() -> u64 {
    match LIMIT.load(Ordering::Relaxed) {
        0 => {
            let limit = default_limit();
            // Another thread may have set one meanwhile, which stays.
            let _ = LIMIT.compare_exchange(0, limit, Ordering::Relaxed, Ordering::Relaxed);
            LIMIT.load(Ordering::Relaxed)
        }
        limit => limit,
    }
}

/// What an event takes in memory once it is read and analysed, about: 32 bytes of columns, 20 of args, and what analyses note about
/// each.
const EVENT_BYTES: u64 = 220;

/// How many events fit into the memory that reading may take, beside what the process holds.
#[must_use]
pub fn most_events() -> u64 {
    memory_limit().saturating_sub(held_memory().unwrap_or(0)) / EVENT_BYTES
}

/// What the environment says, or half of the memory where the system tells how much there is.
fn default_limit() -> u64 {
    let told = std::env::var("HOTSPAN_MAX_MEMORY").ok().and_then(|text| parse_size(&text).ok());
    told.unwrap_or_else(half_of_memory)
}

fn half_of_memory() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes(&text, "MemTotal:"));
    let container = fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|groups| container_limit(&groups, Path::new("/sys/fs/cgroup")));
    machine.into_iter().chain(container).min().map_or(u64::MAX, |bytes| bytes / 2)
}

/// The smallest limit of the groups that the process is in, as `/proc/self/cgroup` names them.
fn container_limit(groups: &str, root: &Path) -> Option<u64> {
    let of_group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // A limit of an outer group holds for those inside. In a container the path may be one of outside: then only the
        // root is there.
        let inner = folder.join(group.trim_start_matches('/'));
        let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
        inner.ancestors().take_while(|outer| outer.starts_with(&folder)).filter_map(read).min()
    };
    groups.lines().filter_map(of_group).min()
}

/// A number of bytes as people write it: `8GB`, `1.5 GiB`, `500m`, `1000000`.
///
/// # Errors
/// When it is none, in words.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err("a number with a unit is needed, such as 8GB or 500MB".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "a number is needed, such as 8GB".to_owned())?;
    let bytes = number * factor as f64;
    if bytes < 1.0 { Err("it must be more than nothing".to_owned()) } else { Ok(bytes as u64) }
}

/// The number of bytes in a line such as `VmRSS:  1972 kB`.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory that the process holds, without files that are mapped; `None` where the system does not tell.
#[must_use]
pub fn held_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status, "RssAnon:").or_else(|| kilobytes(&status, "VmRSS:"))
}

/// A measure of what reading one file takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryWatch {
    /// What the process held before; 0 where nobody can tell.
    before: u64,
    limit: u64,
}

impl MemoryWatch {
    pub(crate) fn new() -> Self {
        Self { before: held_memory().unwrap_or(0), limit: memory_limit() }
    }

    /// # Errors
    /// When reading has taken more than it may.
    pub(crate) fn check(&self) -> Result<(), ImportError> {
        match held_memory() {
            Some(held) if held.saturating_sub(self.before) > self.limit => {
                Err(ImportError::TooMuchMemory { limit: self.limit })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_holds_is_known() {
        let before = held_memory().unwrap();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = held_memory().unwrap();
        assert!(after >= before + (60 << 20), "{before} to {after} with {} bytes", block.len());
    }

    #[test]
    fn the_limit_of_a_container_is_the_smallest_of_its_groups() {
        let root = std::env::temp_dir().join(format!("hotspan-cgroup-{}", std::process::id()));
        let inner = root.join("slice/job");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir_all(root.join("memory/old")).unwrap();
        fs::write(root.join("memory.max"), "max\n").unwrap();
        fs::write(root.join("slice/memory.max"), "4000000\n").unwrap();
        fs::write(inner.join("memory.max"), "9000000\n").unwrap();
        fs::write(root.join("memory/old/memory.limit_in_bytes"), "5000000\n").unwrap();
        assert_eq!(container_limit("0::/slice/job\n", &root), Some(4_000_000));
        assert_eq!(container_limit("0::/\n", &root), None);
        assert_eq!(container_limit("0::/not/here\n", &root), None);
        assert_eq!(container_limit("4:cpu,memory:/old\n3:cpu:/x\n", &root), Some(5_000_000));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("8GB"), Ok(8 << 30));
        assert_eq!(parse_size("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_size("500m"), Ok(500 << 20));
        assert_eq!(parse_size("1000000"), Ok(1_000_000));
        for wrong in ["", "GB", "0", "0.1", "8 apples", "-1", "1..5", "8GB?"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_of_the_system_are_read() {
        assert_eq!(kilobytes("VmPeak:\t 9 kB\nVmRSS:\t    1972 kB\n", "VmRSS:"), Some(1972 * 1024));
        assert_eq!(kilobytes("VmPeak:\t 9 kB\n", "VmRSS:"), None);
        assert!(half_of_memory() > 1 << 20);
    }
}
