//! The tree shape: rows in the order a reader meets them, each with its depth, so that a stack of any depth is no trouble.

use hotspan_store::Duration;

/// One row of a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeRow {
    /// How many rows are around it.
    pub depth: usize,
    /// What it is.
    pub label: String,
    /// Where it is: a file and line, or empty.
    pub location: String,
    /// Its own time and that of all below it.
    pub total: Duration,
    /// Its own time.
    pub own: Duration,
    /// The share of the whole that `total` is, in percent.
    pub share: f64,
    /// How many rows were left out below it because they are of libraries.
    pub hidden: usize,
}

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// What it shows.
    pub title: String,
    /// Its rows, each before those below it.
    pub rows: Vec<TreeRow>,
}

impl Tree {
    /// Whether each row is the last among its sisters, which says how its branch is drawn.
    #[must_use]
    pub fn last_among_sisters(&self) -> Vec<bool> {
        let mut last = vec![false; self.rows.len()];
        // For each depth, whether a row of that depth follows under the same parent.
        let mut follows: Vec<bool> = Vec::new();
        for (index, row) in self.rows.iter().enumerate().rev() {
            follows.resize(row.depth + 1, false);
            last[index] = !follows[row.depth];
            follows[row.depth] = true;
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_sisters_is_known() {
        let row = |depth| TreeRow {
            depth,
            label: String::new(),
            location: String::new(),
            total: Duration(0),
            own: Duration(0),
            share: 0.0,
            hidden: 0,
        };
        let tree = Tree { title: String::new(), rows: [0, 1, 2, 1, 0].map(row).to_vec() };
        assert_eq!(tree.last_among_sisters(), [false, false, true, true, true]);
    }
}
