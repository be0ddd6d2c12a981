//! A process and its children, found again at every look: new ones join, those that ended leave.
//!
//! A process that was seen once stays in sight when its parent ends and it gets another. One that is born and loses its
//! parent between two looks is never seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;

use crate::process_tree::{ProcessNumber, resident_bytes};

/// The memory of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) resident: i64,
    pub(super) proportional: Option<i64>,
}

/// What tells a process from a later one with the same number, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    started: u64,
    name: String,
}

#[derive(Debug)]
pub(super) struct Tree {
    processes: BTreeMap<u32, Option<Identity>>,
    children: bool,
    proportional: bool,
}

impl Tree {
    pub(super) fn new(root: u32, children: bool, proportional: bool) -> Self {
        Self { processes: BTreeMap::from([(root, None)]), children, proportional }
    }

    /// Looks for new children, then reads every process that is still there.
    pub(super) fn read(&mut self) -> Vec<Reading> {
        if self.children {
            let mut waiting: Vec<u32> = self.processes.keys().copied().collect();
            while let Some(pid) = waiting.pop() {
                for ProcessNumber(child) in ProcessNumber(pid).children() {
                    if let Entry::Vacant(entry) = self.processes.entry(child) {
                        entry.insert(None);
                        waiting.push(child);
                    }
                }
            }
        }
        let mut readings = Vec::with_capacity(self.processes.len());
        let proportional = self.proportional;
        self.processes.retain(|&pid, earlier| {
            let Some(found) = identity(pid) else { return false };
            // The number went to another process, which is none of ours.
            if earlier.as_ref().is_some_and(|earlier| earlier.started != found.started) {
                return false;
            }
            let resident = resident_bytes(pid);
            // The name changes when the command replaces the shell or the copy of ourselves it was started by.
            let name = found.name.clone();
            *earlier = Some(found);
            // A process that has ended and waits to be noticed has no memory.
            if let Some(resident) = resident.filter(|&resident| resident > 0) {
                let proportional = proportional.then(|| proportional_share(pid)).flatten();
                readings.push(Reading { pid, name, resident, proportional });
            }
            true
        });
        readings
    }
}

fn identity(pid: u32) -> Option<Identity> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may contain anything, parentheses too.
    let (start, end) = (stat.find('(')?, stat.rfind(')')?);
    let started = stat.get(end + 1..)?.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(Identity { started, name: stat.get(start + 1..end)?.to_owned() })
}

fn proportional_share(pid: u32) -> Option<i64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_itself_and_a_child_and_notices_its_end() {
        let mut tree = Tree::new(std::process::id(), true, true);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let readings = tree.read();
        let own = readings.iter().find(|reading| reading.pid == std::process::id()).unwrap();
        assert!(own.resident > 1 << 20, "{own:?}");
        assert!(own.proportional.is_some_and(|share| share > 0 && share <= own.resident), "{own:?}");
        assert!(readings.iter().any(|reading| reading.pid == child.id()), "{readings:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!tree.read().iter().any(|reading| reading.pid == child.id()));
    }

    #[test]
    fn a_process_that_never_was_has_no_readings() {
        assert_eq!(Tree::new(u32::MAX - 1, true, false).read(), []);
    }
}
