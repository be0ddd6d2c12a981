//! Which rank this `hotspan run` is, where a launcher has started it once for each: `mpirun -n 2 hotspan run train.py`. Every rank
//! writes a file of its own, `train-rank0.hotspan` and so on, with `-o` too.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hotspan_analyze::job::RANK_VARIABLES;
use serde_json::{Map, Value};

/// Where launchers say the rank, and of how many. In a batch script Slurm sets a rank as well, but no tasks of a step.
const LAUNCHERS: [(&str, &str); 5] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];

/// One of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) number: u32,
    pub(super) count: u32,
}

impl Rank {
    /// That of this process; `None` where it is not one of several.
    pub(super) fn own() -> Option<Self> {
        Self::of(|name| env::var(name).ok())
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        LAUNCHERS.iter().find_map(|(rank, size)| {
            let [number, count] = [rank, size].map(|name| variable(name)?.parse().ok());
            let rank = Self { number: number?, count: count? };
            (rank.count > 1 && rank.number < rank.count).then_some(rank)
        })
    }

    /// A name for the recording of this rank.
    pub(super) fn name(self, program: &str) -> String {
        format!("{program}-rank{}", self.number)
    }

    /// A file of this rank alone. A name that ends in the number of the rank is already its own.
    pub(super) fn file(self, path: &Path) -> PathBuf {
        let stem = path.file_stem().unwrap_or_default();
        let text = stem.to_string_lossy();
        let start = text.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        if text[start..].parse() == Ok(self.number) {
            return path.to_owned();
        }
        let mut name = OsString::from(stem);
        name.push(format!("-rank{}", self.number));
        if let Some(ending) = path.extension() {
            name.push(".");
            name.push(ending);
        }
        path.with_file_name(name)
    }
}

/// The variables with a rank that this process has: its children inherit them.
pub(super) fn inherited() -> Value {
    let found =
        RANK_VARIABLES.iter().filter_map(|&name| Some((name.to_owned(), env::var(name).ok()?.into())));
    Value::Object(found.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(variables: &[(&str, &str)]) -> Option<(u32, u32)> {
        let found = |name: &str| {
            let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
            Some((*value).to_owned())
        };
        Rank::of(found).map(|rank| (rank.number, rank.count))
    }

    #[test]
    fn a_rank_is_one_of_several() {
        assert_eq!(rank(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")]), Some((1, 2)));
        assert_eq!(
            rank(&[("RANK", "0"), ("WORLD_SIZE", "1"), ("PMI_RANK", "3"), ("PMI_SIZE", "4")]),
            Some((3, 4))
        );
        // A batch script of Slurm, and a step of it.
        assert_eq!(rank(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]), None);
        assert_eq!(rank(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]), Some((0, 4)));
        for wrong in ["", "x", "-1", "2"] {
            assert_eq!(rank(&[("RANK", wrong), ("WORLD_SIZE", "2")]), None, "{wrong}");
        }
    }

    #[test]
    fn every_rank_has_a_file_of_its_own() {
        let file = |number: u32, path: &str| {
            let file = Rank { number, count: 20 }.file(Path::new(path));
            file.display().to_string()
        };
        assert_eq!(file(0, "a.b/out.hotspan"), "a.b/out-rank0.hotspan");
        assert_eq!(file(12, "out"), "out-rank12");
        assert_eq!(file(1, "out-1.hotspan"), "out-1.hotspan");
        assert_eq!(file(1, "out-01.hotspan"), "out-01.hotspan");
        assert_eq!(file(1, "2021.hotspan"), "2021-rank1.hotspan");
        for path in ["out", "out-0-1", "exp1.hotspan", "3"] {
            let mut files: Vec<String> = (0..20).map(|number| file(number, path)).collect();
            files.sort_unstable();
            files.dedup();
            assert_eq!(files.len(), 20, "{path}");
        }
    }
}
