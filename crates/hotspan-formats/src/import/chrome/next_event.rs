//! The search for the next event after one that cannot be read, which remembers what it found.
//!
//! Without its memory, each of a million broken events would search the whole window anew for the same place.

use memchr::memmem;

/// Where the next event begins: the brace that opens the object with the next `"ph"` key. `Err(keep)` when there is
/// none here: only the last `keep` bytes can still belong to one.
fn next_event(bytes: &[u8]) -> Result<usize, usize> {
    let mut from = 0;
    while let Some(found) = memmem::find(&bytes[from..], b"\"ph\"") {
        let key = from + found;
        if let Some(brace) = memchr::memrchr(b'{', &bytes[from..key]) {
            return Ok(from + brace);
        }
        from = key + 4;
    }
    // An event's brace and its "ph" key may be split by the end of the slice.
    Err(memchr::memrchr(b'{', &bytes[from..]).map_or(0, |brace| bytes.len() - from - brace))
}

/// The last search: from where, to where, and what it found. Offsets are of the content, not of the window.
#[derive(Debug, Default)]
pub(super) struct NextEvent {
    from: u64,
    to: u64,
    found: Option<u64>,
    /// Bytes searched so far, so that tests see that they grow with the content and no faster.
    #[cfg(test)]
    searched: u64,
}

impl NextEvent {
    /// Where in `bytes`, which begin at `offset`, the next event begins.
    pub(super) fn find(&mut self, bytes: &[u8], offset: u64) -> Option<usize> {
        let to = offset + bytes.len() as u64;
        // The brace that was found is the first also for a search that begins later, as long as it begins before it.
        let known = self.from <= offset && self.found.map_or(self.to == to, |found| offset <= found);
        if !known {
            (self.from, self.to) = (offset, to);
            self.found = self.search(bytes).ok().map(|at| offset + at as u64);
        }
        self.found.map(|found| (found - offset) as usize)
    }

    /// As [`Self::find`]; `Err(keep)` when only the last `keep` bytes can belong to an event.
    pub(super) fn find_or_keep(&mut self, bytes: &[u8], offset: u64) -> Result<usize, usize> {
        match self.found {
            Some(found) if self.from <= offset && offset <= found => Ok((found - offset) as usize),
            _ => self.search(bytes),
        }
    }

    fn search(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let found = next_event(bytes);
        #[cfg(test)]
        {
            self.searched += found.unwrap_or(bytes.len()) as u64;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use hotspan_store::{Loss, TraceBuilder};

    use super::super::event::EventReader;
    use super::super::top_level::TopLevel;
    use super::super::window::Window;
    use super::*;

    #[test]
    fn the_next_event_is_found_by_its_phase() {
        let text = br#""ph": "X", "name": broken }}, {"name": "next", "ph": "X"}"#;
        assert_eq!(next_event(text), Ok(30));
        assert_eq!(next_event(b" broken } , { \"nam"), Err(6));
        assert_eq!(next_event(b"broken"), Err(0));
    }

    #[test]
    fn a_search_from_later_finds_what_a_new_one_would() {
        let text = br#"{"a":1},{"ph" {{"b": "ph"} "ph" {"ph"},{"x"},{"y":"ph"} {"#;
        for first in 0..text.len() {
            let mut search = NextEvent::default();
            search.find(&text[first..], first as u64);
            for later in first..text.len() {
                let found = search.find(&text[later..], later as u64);
                assert_eq!(found, next_event(&text[later..]).ok(), "from {first}, then {later}");
            }
        }
    }

    /// Bytes searched while reading `count` broken events after a value that makes the window large, and the length of it all.
    fn searched(broken: &str, count: usize) -> (u64, u64) {
        let content = format!(
            r#"[{{"ph": "X", "name": "{}", "ts": 1, "dur": 1}},{}{{"ph": "X", "name": "b", "ts": 2, "dur": 1}}]"#,
            "n".repeat(1 << 20),
            broken.repeat(count)
        );
        let mut builder = TraceBuilder::new();
        let mut reader = TopLevel::new(Window::new(content.as_bytes(), 64), EventReader::new(&mut builder));
        reader.read().unwrap();
        let searched = reader.next_event.searched;
        assert_eq!(builder.event_count(), 2);
        assert_ne!(builder.losses.count(Loss::MissingField) + builder.losses.count(Loss::BadEvent), 0);
        (searched, content.len() as u64)
    }

    #[test]
    fn broken_events_are_searched_in_linear_time() {
        // Those that can be repaired, those that cannot, and those that are no events at all.
        for broken in [r#"{"a":nan},"#, r#"{"a":!},"#, "{\"a\":\"\n\"},", r#"{"a":[{},nan]},"#] {
            for count in [1_000, 4_000, 40_000] {
                let (searched, length) = searched(broken, count);
                assert!(searched <= 3 * length, "{searched} bytes searched of {length}: {count} of {broken}");
            }
        }
    }
}
