//! Operators and annotations of each thread, so that device work finds who launched it.
//!
//! Filled while operators are converted, asked while device records are. A launch belongs to the innermost span that was
//! running on its thread when it was made.

use hashbrown::HashMap;
use hotspan_store::{StringId, TrackId};

/// An operator or annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostSpan {
    /// Nanoseconds on the clock of the trace.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Its number in the trace.
    pub(crate) external: i64,
    pub(crate) name: StringId,
    /// Whether a person marked it.
    pub(crate) is_annotation: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct HostSpans {
    threads: HashMap<TrackId, Vec<HostSpan>>,
    /// Numbers of the operating system by what the C library calls a thread.
    os_threads: HashMap<u32, i64>,
}

/// Who was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// The innermost operator or annotation.
    pub(crate) innermost: Option<HostSpan>,
    /// The innermost annotation.
    pub(crate) annotation: Option<HostSpan>,
}

impl HostSpans {
    /// Remembers what the operating system calls a thread.
    pub(crate) fn name_thread(&mut self, posix_thread: u32, os_thread: i64) {
        self.os_threads.insert(posix_thread, os_thread);
    }

    /// The operating system's number of a thread that recorded anything.
    pub(crate) fn os_thread(&self, posix_thread: u32) -> Option<i64> {
        self.os_threads.get(&posix_thread).copied()
    }

    /// Adds a span.
    pub(crate) fn push(&mut self, track: TrackId, span: HostSpan) {
        self.threads.entry(track).or_default().push(span);
    }

    /// Calls `found` with who was running at each of these moments of a thread, which are in order of time.
    pub(crate) fn at_each(
        &mut self,
        track: TrackId,
        times: impl Iterator<Item = i64>,
        mut found: impl FnMut(Around),
    ) {
        let Some(spans) = self.threads.get_mut(&track) else {
            times.for_each(|_| found(Around::default()));
            return;
        };
        // Outer spans first: they begin no later and end later.
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let mut coming = spans.iter().peekable();
        let mut open: Vec<HostSpan> = Vec::new();
        for time in times {
            while let Some(&span) = coming.next_if(|span| span.start <= time) {
                open.retain(|earlier| earlier.end >= span.start);
                open.push(span);
            }
            while open.last().is_some_and(|span| span.end < time) {
                open.pop();
            }
            // A range that ends before what it began around leaves ended ones further out.
            let running = || open.iter().rev().filter(|span| span.end >= time);
            found(Around {
                innermost: running().next().copied(),
                annotation: running().find(|span| span.is_annotation).copied(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64, external: i64, is_annotation: bool) -> HostSpan {
        HostSpan { start, end, external, name: StringId(0), is_annotation }
    }

    fn around(spans: &[HostSpan], times: &[i64]) -> Vec<(Option<i64>, Option<i64>)> {
        let mut all = HostSpans::default();
        spans.iter().for_each(|&span| all.push(TrackId(0), span));
        let mut found = Vec::new();
        all.at_each(TrackId(0), times.iter().copied(), |around| {
            let id = |span: Option<HostSpan>| span.map(|span| span.external);
            found.push((id(around.innermost), id(around.annotation)));
        });
        found
    }

    #[test]
    fn the_innermost_span_and_annotation_are_found() {
        let spans =
            [span(0, 100, 1, true), span(10, 50, 2, false), span(20, 30, 3, false), span(60, 70, 4, false)];
        assert_eq!(
            around(&spans, &[5, 25, 40, 55, 65, 150]),
            [
                (Some(1), Some(1)),
                (Some(3), Some(1)),
                (Some(2), Some(1)),
                (Some(1), Some(1)),
                (Some(4), Some(1)),
                (None, None)
            ]
        );
    }

    #[test]
    fn ranges_that_do_not_nest_are_found_as_long_as_they_run() {
        // 2 begins inside 1 and outlives it; 3 ends first.
        let spans = [span(0, 40, 1, true), span(10, 80, 2, true), span(20, 30, 3, false)];
        assert_eq!(
            around(&spans, &[25, 35, 60]),
            [(Some(3), Some(2)), (Some(2), Some(2)), (Some(2), Some(2))]
        );
    }

    #[test]
    fn a_thread_without_spans_launches_for_nobody() {
        let mut all = HostSpans::default();
        let mut calls = 0;
        all.at_each(TrackId(7), [1, 2].into_iter(), |around| {
            assert_eq!(around, Around::default());
            calls += 1;
        });
        assert_eq!(calls, 2);
    }
}
