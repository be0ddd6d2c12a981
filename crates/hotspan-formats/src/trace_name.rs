//! Names of traces. Formats are told by content; names only choose among the files of a folder, and say how output is compressed.

const ENDINGS: [&str; 4] = [".json", ".hotspan", ".prof", ".lprof"];
const COMPRESSIONS: [&str; 2] = [".gz", ".zst"];

/// The endings of traces, for people.
pub const TRACE_ENDINGS: &str =
    "traces end in .json, .hotspan, .prof or .lprof, with .gz or .zst after it where compressed";

/// A name without the ending of a compression.
#[must_use]
pub fn uncompressed(name: &str) -> &str {
    COMPRESSIONS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The name of a trace without its endings; `None` for names of other files, and of hidden ones.
#[must_use]
pub fn trace_stem(name: &str) -> Option<&str> {
    let name = Some(name).filter(|name| !name.starts_with('.')).map(uncompressed)?;
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

/// Worker and cycle of a name as `tensorboard_trace_handler` makes them: `worker.1700000000000.pt.trace.json`.
#[must_use]
pub fn worker(file: &str) -> (&str, Option<&str>) {
    let whole = trace_stem(file).unwrap_or(file);
    let Some(name) = whole.strip_suffix(".pt.trace") else { return (whole, None) };
    match name.rsplit_once('.') {
        Some((worker, time)) if !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()) => {
            (worker, Some(time))
        }
        _ => (name, None),
    }
}

/// Of recordings, each by its worker and cycle, one of each worker: two recordings of one worker are no two ranks. The one at
/// `shown` is taken, and of the other workers the recordings nearest to its cycle; where none is shown, the last of each.
pub fn one_of_each_worker<W: PartialEq>(
    recordings: &[(W, Option<&str>)],
    shown: Option<usize>,
) -> Vec<usize> {
    let cycle = |place: usize| recordings[place].1.and_then(|cycle| cycle.parse::<i64>().ok()).unwrap_or(0);
    let wanted = shown.map_or(i64::MAX, cycle);
    let distance =
        |place: usize| (Some(place) != shown, wanted.saturating_sub(cycle(place)).saturating_abs());
    let mut chosen: Vec<usize> = Vec::new();
    for place in 0..recordings.len() {
        match chosen.iter_mut().find(|known| recordings[**known].0 == recordings[place].0) {
            Some(known) if distance(place) < distance(*known) => *known = place,
            Some(_) => {}
            None => chosen.push(place),
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_told_by_their_endings() {
        for name in ["a.json", "w.123.pt.trace.json.gz", "a.json.zst", "run.hotspan", "run.hotspan.gz"] {
            assert!(trace_stem(name).is_some(), "{name}");
        }
        for name in ["a.txt", "json", ".a.json.17.tmp", ".hidden.json", "a.gz"] {
            assert!(trace_stem(name).is_none(), "{name}");
        }
        assert_eq!(trace_stem("w.123.pt.trace.json.gz"), Some("w.123.pt.trace"));
    }

    #[test]
    fn workers_are_named_as_tensorboard_named_them() {
        assert_eq!(worker("host_42.1700000000000.pt.trace.json.gz"), ("host_42", Some("1700000000000")));
        assert_eq!(worker("host.local_42.pt.trace.json"), ("host.local_42", None));
        assert_eq!(worker("run.hotspan"), ("run", None));
    }

    #[test]
    fn recordings_of_one_worker_are_one_rank() {
        let recordings = [("a", Some("100")), ("a", Some("200")), ("b", Some("110")), ("b", Some("210"))];
        assert_eq!(one_of_each_worker(&recordings, Some(0)), [0, 2]);
        assert_eq!(one_of_each_worker(&recordings, Some(3)), [1, 3]);
        assert_eq!(one_of_each_worker(&recordings, None), [1, 3]);
        assert_eq!(one_of_each_worker(&[("a", None), ("b", None)], Some(0)), [0, 1]);
        assert!(one_of_each_worker::<&str>(&[], None).is_empty());
    }

    #[test]
    fn people_are_told_of_every_ending() {
        for ending in ENDINGS.iter().chain(&COMPRESSIONS) {
            assert!(TRACE_ENDINGS.contains(ending), "{ending}");
        }
    }
}
