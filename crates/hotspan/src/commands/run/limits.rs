//! How large and how long a recording may get. Each process writes files of a limited size, and while the program runs the
//! oldest of them are deleted, so that the latest stretch is kept.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hotspan_formats::parse_size;
use serde_json::{Value, json};

use crate::run_folder::{recordings, segment_of};

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(1);
/// A limit is kept to one part in so many: the file that a process is writing is never deleted.
const PARTS: u32 = 32;
/// Files have at least this size, for each begins with all names, and at most that, for there may be many processes.
const SMALLEST: u64 = 256 << 10;
const LARGEST: u64 = 64 << 20;
const SHORTEST: Duration = Duration::from_secs(1);

/// What was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub(super) size: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// Keeps the limits while the program runs.
pub(super) struct Keeper {
    limits: Limits,
    /// Since when each file is not written any more, by a clock that nobody sets.
    ended: HashMap<PathBuf, Instant>,
    /// Not before this moment again.
    rests_until: Instant,
}

/// A file that is not written any more.
struct Ended {
    path: PathBuf,
    size: u64,
    age: Duration,
    /// How many files of the same recording came after it.
    followers: usize,
}

impl Limits {
    /// What the processes are told: when a file is full, in bytes and nanoseconds.
    pub(super) fn segment(&self) -> Value {
        let bytes = self.size.map(|size| (size / u64::from(PARTS)).clamp(SMALLEST, LARGEST));
        let time = self.time.map(|time| (time / PARTS).max(SHORTEST));
        json!([bytes, time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))])
    }
}

impl Keeper {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, ended: HashMap::new(), rests_until: Instant::now() + INTERVAL }
    }

    /// Looks at the folder now and then, and deletes what is too much.
    pub(super) fn look(&mut self, spool: &Path) {
        let now = Instant::now();
        if now >= self.rests_until {
            let ended = &mut self.ended;
            drop_oldest(spool, self.limits, |path| {
                now.saturating_duration_since(*ended.entry(path.to_owned()).or_insert(now))
            });
            self.rests_until = Instant::now() + INTERVAL;
        }
    }
}

/// Deletes the oldest files of all processes until the rest is within the limits. Of each recording the last file stays.
fn drop_oldest(spool: &Path, limits: Limits, mut age: impl FnMut(&Path) -> Duration) {
    let mut files: Vec<(String, u32, PathBuf)> = recordings(spool)
        .filter_map(|path| segment_of(&path).map(|(recording, number)| (recording, number, path)))
        .collect();
    files.sort();
    let mut total = 0;
    let mut ended: Vec<Ended> = Vec::new();
    for (index, (recording, _, path)) in files.iter().enumerate() {
        let Ok(about) = fs::metadata(path) else { continue };
        total += about.len();
        let followers = files.iter().skip(index + 1).take_while(|(next, ..)| next == recording).count();
        if followers > 0 {
            ended.push(Ended { path: path.clone(), size: about.len(), age: age(path), followers });
        }
    }
    // Of those that were found at the same time, no recording loses all before another loses some.
    ended.sort_by_key(|file| Reverse((file.age, file.followers)));
    for file in ended {
        let is_old = limits.time.is_some_and(|time| file.age >= time);
        let is_too_much = limits.size.is_some_and(|size| total > size);
        // Files of one recording are deleted in their order: one that stays keeps all that follow it.
        if !is_old && !is_too_much {
            return;
        }
        if fs::remove_file(&file.path).is_ok() {
            total -= file.size;
        }
    }
}

/// A number of bytes: `500MB`, `10GB`, `none` for no limit.
pub(super) fn size(text: &str) -> Result<Option<u64>, String> {
    if text == "none" {
        return Ok(None);
    }
    parse_size(text).map(Some)
}

/// A stretch of time: `90s`, `15min`, `2h`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time, such as 90s, 15min or 2h");
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let factor: f64 = match text[digits.len()..].trim() {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let seconds = number * factor;
    let is_long_enough = seconds >= 1.0;
    Duration::try_from_secs_f64(seconds).ok().filter(|_| is_long_enough).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            recordings(folder).map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_go_and_the_last_of_each_stays() {
        let folder = std::env::temp_dir().join(format!("hotspan-limits-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let files = [
            ("7-1.hotspan", 500),
            ("7-1.000002.hotspan", 400),
            ("7-1.000003.hotspan", 10),
            ("9-2.hotspan", 450),
            ("9-2.000002.hotspan", 5),
            ("9-3.hotspan", 800),
        ];
        for (name, _) in files {
            fs::write(folder.join(name), [0; 100]).unwrap();
        }
        let age = |path: &Path| {
            let (_, age) = files.iter().find(|(name, _)| path.ends_with(name)).unwrap();
            Duration::from_secs(*age)
        };
        let all = names(&folder);
        drop_oldest(&folder, Limits::default(), age);
        drop_oldest(&folder, Limits { size: Some(600), time: Some(Duration::from_secs(600)) }, age);
        assert_eq!(names(&folder), all, "all is within the limits");
        drop_oldest(&folder, Limits { size: Some(450), time: None }, age);
        assert_eq!(
            names(&folder),
            ["7-1.000002.hotspan", "7-1.000003.hotspan", "9-2.000002.hotspan", "9-3.hotspan"]
        );
        drop_oldest(&folder, Limits { size: None, time: Some(Duration::from_secs(300)) }, age);
        let last = ["7-1.000003.hotspan", "9-2.000002.hotspan", "9-3.hotspan"];
        assert_eq!(names(&folder), last);
        drop_oldest(&folder, Limits { size: Some(1), time: Some(Duration::from_secs(1)) }, age);
        assert_eq!(names(&folder), last, "whatever the limit is");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn sizes_and_times_in_words() {
        assert_eq!(size("10GB"), Ok(Some(10 << 30)));
        assert_eq!(size("none"), Ok(None));
        for wrong in ["", "GB", "-1GB", "10 apples", "0", "nan"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("2h"), Ok(Duration::from_secs(7_200)));
        assert_eq!(time("15min"), Ok(Duration::from_secs(900)));
        for wrong in ["", "h", "-1h", "0.5s", "nan", "1e300d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_are_a_part_of_the_limit() {
        let limits = |size, time| Limits { size, time };
        assert_eq!(limits(None, None).segment(), json!([null, null]));
        let hour = Some(Duration::from_secs(3_600));
        assert_eq!(limits(Some(100_000_000), hour).segment(), json!([3_125_000, 112_500_000_000_u64]));
        assert_eq!(limits(Some(1), Some(Duration::from_secs(1))).segment(), json!([SMALLEST, 1_000_000_000]));
    }
}
