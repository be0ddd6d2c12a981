//! From a span to the line of the user's program behind it.
//!
//! Three things can tell: Python functions around the span (each knows from which line it was called), a recorded call
//! stack, and samples of the thread taken meanwhile. Frames of libraries are passed over: nobody can fix those.

use hotspan_store::{FrameKind, SpanId, Timestamp, Trace, TrackId};

use super::Model;
use super::events::Role;

/// Libraries as paths begin that torch has shortened.
const LIBRARIES: [&str; 12] = [
    "torch/",
    "numpy/",
    "torchvision/",
    "PIL/",
    "hotspan/",
    "accelerate/",
    "transformers/",
    "lightning/",
    "pandas/",
    "scipy/",
    "triton/",
    "sklearn/",
];
/// Modules of Python that call what the user wrote.
const PLUMBING: [&str; 7] = [
    "threading.py",
    "contextlib.py",
    "runpy.py",
    "functools.py",
    "multiprocessing/",
    "concurrent/",
    "asyncio/",
];

/// A file may nest without end.
const DEEPEST: usize = 300;

/// Whether a file is the user's own.
pub(crate) fn is_users(file: &str) -> bool {
    let file = file.trim();
    !(file.is_empty()
        // Functions of C have this file.
        || file == "~"
        || file.starts_with('<')
        || file.contains("site-packages/")
        || file.contains("dist-packages/")
        || file.contains("/lib/python3")
        || LIBRARIES.iter().chain(&PLUMBING).any(|library| file.starts_with(library)))
}

/// Finds source lines.
#[derive(Debug)]
pub(crate) struct Sources {
    /// For each thread its samples, in order of time.
    samples: Vec<Vec<(Timestamp, u32)>>,
}

impl Sources {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut samples = vec![Vec::new(); trace.tracks().len()];
        for (index, row) in trace.profile().samples.rows().enumerate() {
            samples[row.track.index()].push((row.time, index as u32));
        }
        for thread in &mut samples {
            thread.sort_unstable();
        }
        Self { samples }
    }

    /// The line behind a span, as `file:line`.
    pub(crate) fn line(&self, model: &Model, span: SpanId) -> Option<String> {
        from_functions(model, span)
            .or_else(|| from_call_stack(model, span))
            .or_else(|| self.sampled(model, span))
    }

    fn sampled(&self, trace: &Trace, span: SpanId) -> Option<String> {
        let spans = trace.spans();
        let (begin, end) = (spans.time(span), spans.end(span));
        self.between(spans.track(span), begin, end).find_map(|sample| users_line(trace, sample))
    }

    /// Whether a thread was sampled.
    pub(crate) fn has_samples(&self, track: TrackId) -> bool {
        !self.samples[track.index()].is_empty()
    }

    /// The samples of a thread within a time, by their rows.
    pub(crate) fn between(
        &self,
        track: TrackId,
        begin: Timestamp,
        end: Timestamp,
    ) -> impl Iterator<Item = usize> + '_ {
        let thread = &self.samples[track.index()];
        let first = thread.partition_point(|&(time, _)| time < begin);
        thread[first..].iter().take_while(move |&&(time, _)| time <= end).map(|&(_, row)| row as usize)
    }
}

/// The innermost line of the user's own in a sample.
pub(crate) fn users_line(trace: &Trace, sample: usize) -> Option<String> {
    let profile = trace.profile();
    let frames = profile.stacks.frames(profile.samples.row(sample).stack);
    let mut python =
        frames.map(|frame| profile.frames.row(frame)).filter(|frame| frame.kind == FrameKind::Python);
    let frame = python.find(|frame| is_users(trace.str(frame.file)))?;
    Some(format!("{}:{}", trace.str(frame.file), frame.line.max(frame.first_line)))
}

fn from_functions(model: &Model, span: SpanId) -> Option<String> {
    let (nesting, called_from) = (model.nesting(), model.called_from());
    let around = std::iter::successors(Some(span), |&inner| nesting.parent(inner)).take(DEEPEST);
    for function in around.filter(|&function| model.role(function) == Role::Python) {
        // A function of the user's own: the operator was called in it, on a line that nobody noted.
        if let Some((file, line)) = file_and_line(model.span_name(function))
            && is_users(file)
        {
            return Some(format!("{file}:{line}"));
        }
        if let Some(site) = called_from.of(function).filter(|site| is_users(site)) {
            return Some(site.to_owned());
        }
    }
    None
}

fn from_call_stack(model: &Model, span: SpanId) -> Option<String> {
    let mut lines = model.call_stack().of(span)?.split(';').filter_map(file_and_line);
    lines.find(|(file, _)| is_users(file)).map(|(file, line)| format!("{file}:{line}"))
}

/// The parts of `train.py(12): forward`.
pub(crate) fn file_and_line(entry: &str) -> Option<(&str, &str)> {
    let (location, _) = entry.split_once("): ")?;
    let (file, line) = location.rsplit_once('(')?;
    line.bytes().all(|byte| byte.is_ascii_digit()).then_some((file, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_not_the_users() {
        for file in ["train.py", "src/model.py", "/home/me/torch_things/a.py"] {
            assert!(is_users(file), "{file}");
        }
        for file in [
            "torch/nn/modules/linear.py",
            "<frozen runpy>",
            "/usr/lib/python3.11/json/x.py",
            "threading.py",
            "",
        ] {
            assert!(!is_users(file), "{file}");
        }
    }

    #[test]
    fn entries_of_stacks_have_a_file_and_a_line() {
        assert_eq!(file_and_line("train.py(12): forward"), Some(("train.py", "12")));
        assert_eq!(file_and_line("<built-in function linear>"), None);
    }
}
