//! A process and its descendants, as they come and go.

use super::memory::ProcessNumber;

/// Finds the descendants of a process.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTree {
    root: ProcessNumber,
}

impl ProcessTree {
    /// The tree below a process.
    #[must_use]
    pub fn below(root: ProcessNumber) -> Self {
        Self { root }
    }

    /// All descendants that live now, parents before children.
    #[must_use]
    pub fn descendants(&self) -> Vec<ProcessNumber> {
        let parents = parents();
        let mut found = vec![self.root];
        let mut next = 0;
        while let Some(&parent) = found.get(next) {
            next += 1;
            let children = parents.iter().filter(|&&(_, of)| of == parent).map(|&(child, _)| child);
            let new: Vec<_> = children.filter(|child| !found.contains(child)).collect();
            found.extend(new);
        }
        found.remove(0);
        found
    }
}

/// Every process with its parent.
fn parents() -> Vec<(ProcessNumber, ProcessNumber)> {
    let Ok(folder) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut pairs: Vec<_> = folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let (_, after_name) = stat.rsplit_once(") ")?;
            let parent = after_name.split(' ').nth(1)?.parse().ok()?;
            Some((ProcessNumber(process), ProcessNumber(parent)))
        })
        .collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_and_forgotten() {
        let tree = ProcessTree::below(ProcessNumber(std::process::id()));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let number = ProcessNumber(child.id());
        assert!(tree.descendants().contains(&number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!tree.descendants().contains(&number));
    }
}
