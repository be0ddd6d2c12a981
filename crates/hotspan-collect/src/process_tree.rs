//! A process and its descendants, as the kernel tells them, and a cheap way to notice that there may be new ones.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::lines::page_size;

/// A process of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessNumber(pub u32);

impl fmt::Display for ProcessNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of memory that a process has in RAM, by its number or as `self`.
pub(crate) fn resident_bytes(process: impl fmt::Display) -> Option<i64> {
    let statm = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: i64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(page_size()))
}

impl ProcessNumber {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        Self(std::process::id())
    }

    /// Its children, or those of one of its threads.
    #[must_use]
    pub fn children(self) -> Vec<Self> {
        let Ok(threads) = fs::read_dir(format!("/proc/{self}/task")) else { return Vec::new() };
        let mut found = Vec::new();
        for thread in threads.flatten() {
            let path = thread.path().join("children");
            match fs::read_to_string(&path) {
                Ok(list) => {
                    let numbers = list.split_ascii_whitespace().filter_map(|number| number.parse().ok());
                    found.extend(numbers.map(Self));
                }
                // Some kernels have no such lists; a thread that ended has none either.
                Err(_) if !Path::new("/proc/thread-self/children").exists() => {
                    return self.children_by_parent();
                }
                Err(_) => {}
            }
        }
        found
    }

    /// Its children, by asking every process for its parent.
    fn children_by_parent(self) -> Vec<Self> {
        let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Self);
        numbers.filter(|process| process.parent() == Some(self)).collect()
    }

    fn parent(self) -> Option<Self> {
        // The name stands in parentheses and may contain anything, parentheses too.
        let stat = fs::read_to_string(format!("/proc/{self}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(") ")?;
        after_name.split(' ').nth(1)?.parse().ok().map(Self)
    }

    /// All descendants that live now, parents before children.
    #[must_use]
    pub fn descendants(self) -> Vec<Self> {
        let mut found = self.children();
        let mut next = 0;
        while let Some(&parent) = found.get(next) {
            next += 1;
            let new: Vec<_> = parent.children().into_iter().filter(|child| !found.contains(child)).collect();
            found.extend(new);
        }
        found
    }

    /// Whether it lives; one that waits to be collected by its parent does not.
    #[must_use]
    pub fn is_alive(self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{self}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
    }

    /// Whether there is such a process, also where `/proc` cannot be seen: after `chroot`, for one.
    #[must_use]
    pub fn exists(self) -> bool {
        let Ok(number) = i32::try_from(self.0) else { return false };
        // SAFETY: sends nothing; asks whether a signal could be sent.
        let sent = unsafe { libc::kill(number, 0) } == 0;
        sent || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }
}

/// Notices that the system has made a process or thread since the last time, for the price of one read.
#[derive(Debug)]
pub struct BirthWatch {
    file: Option<File>,
    last: Vec<u8>,
}

impl Default for BirthWatch {
    fn default() -> Self {
        Self { file: File::open("/proc/loadavg").ok(), last: Vec::new() }
    }
}

impl BirthWatch {
    /// Whether anything was born since the last call; `true` where that cannot be told.
    pub fn is_changed(&mut self) -> bool {
        let mut bytes = [0; 128];
        let Some(length) = self.file.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok()) else {
            return true;
        };
        // `0.20 0.18 0.12 1/80 11206`: the last number is that of the youngest process.
        let text = bytes[..length].trim_ascii_end();
        let youngest = text.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
        if youngest == self.last {
            return false;
        }
        self.last = youngest.to_vec();
        true
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_found_and_forgotten() {
        let own = ProcessNumber::own();
        let mut births = BirthWatch::default();
        births.is_changed();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = ProcessNumber(child.id());
        assert!(births.is_changed());
        assert!(own.descendants().contains(&number));
        assert!(own.children_by_parent().contains(&number));
        assert!(number.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!own.descendants().contains(&number));
        assert!(!number.is_alive());
    }

    #[test]
    fn grandchildren_belong_to_the_tree() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & echo; wait"]).spawn().unwrap();
        let number = ProcessNumber(shell.id());
        let sleeps = |process: &ProcessNumber| {
            fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim_end() == "sleep")
        };
        let find = || {
            ProcessNumber::own()
                .descendants()
                .into_iter()
                .find(|one| one.parent() == Some(number) && sleeps(one))
        };
        let grandchild = (0..2_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            find()
        });
        let grandchild = grandchild.unwrap();
        // SAFETY: a process of this test.
        unsafe { libc::kill(grandchild.0 as libc::pid_t, libc::SIGKILL) };
        shell.wait().unwrap();
    }
}
