//! Broken, hostile and absurd files: a clear error or a trace with named losses, never a panic or a hang.

use std::io::{self, Read};

use hotspan_formats::{ImportError, Input};
use hotspan_store::{Duration, Loss, Trace};

use crate::{check, read};

const EVENT: &str =
    r#"{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5, "dur": 1}"#;

/// A trace with one bad entry between two good ones.
#[track_caller]
fn between(bad: &str) -> Trace {
    let trace = check(format!(r#"{{"traceEvents": [{EVENT}, {bad}, {EVENT}]}}"#));
    let good = trace.spans().ids().filter(|&span| trace.span_name(span) == "aten::add").count();
    assert_eq!(good, 2, "both neighbours of {bad}");
    trace
}

#[track_caller]
fn error(content: impl Into<Vec<u8>>) -> String {
    read(content).expect_err("must be refused").to_string()
}

#[test]
fn no_trace_is_said_to_be_one() {
    assert_eq!(error(""), "the file is empty");
    assert_eq!(
        error("hello world"),
        r#"the content is not a trace that hotspan knows (it begins with "hello world")"#
    );
    assert_eq!(
        error(b"PK\x03\x04...".as_slice()),
        "the content is not a trace that hotspan knows (it looks like a zip archive)"
    );
    assert_eq!(error("   \n "), r#"the content is not a trace that hotspan knows (it begins with "   \n ")"#);
    assert_eq!(
        error(r#"{"a": 1, "b": [2]}"#),
        r#"the JSON is not a trace: it has no "traceEvents" list but the keys a, b (at byte 18)"#
    );
    assert_eq!(
        error(r#"{"schema": "1.0", "nodes": []}"#),
        "the JSON is not a trace: it has the keys schema, nodes: a PyTorch execution trace (Chakra), which holds no times (at byte 30)"
    );
    assert_eq!(
        error("[1, 2, 3]"),
        "the JSON is not a trace: the list holds no event that could be read (at byte 9)"
    );
    assert!(error(r#"{"a"#).contains("breaks off before its events"));
}

#[test]
fn endless_brackets_end_at_once() {
    struct Brackets(u64);
    impl Read for Brackets {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = (buffer.len() as u64).min((1 << 30) - self.0) as usize;
            buffer[..length].fill(b'[');
            self.0 += length as u64;
            Ok(length)
        }
    }
    let mut progress = ();
    let input = Input::new(Brackets(0), None, None, &mut progress).unwrap();
    let error = hotspan_formats::read(input).unwrap_err();
    assert!(matches!(error, ImportError::NotATrace { .. }), "{error}");
}

#[test]
fn a_broken_event_costs_only_itself() {
    let bad = |trace: &Trace| trace.losses().count(Loss::BadEvent);
    assert_eq!(bad(&between(r#"{"ph": "X", "name": oops, "ts": 1}"#)), 1);
    assert_eq!(bad(&between(r#"{"ph": "X", "name" "a"}"#)), 1);
    assert_eq!(bad(&between(r#"{"ph": "X", "args": {"a": [1, 2}, "name": "a"}"#)), 1);
    assert_eq!(bad(&between(r#"{"ph": "X""#)), 1);
    assert_eq!(between("17").losses().count(Loss::NotAnEvent), 1);
    assert_eq!(between("[[1], {}]").losses().count(Loss::NotAnEvent), 1);
    assert_eq!(between("{}").losses().count(Loss::MissingField), 1);
}

#[test]
fn unescaped_quotes_and_backslashes_are_read_as_meant() {
    let trace =
        between(r#"{"ph": "X", "name": "operator "" _x", "ts": 1, "dur": 1, "args": {"path": "C:\dir\q"}}"#);
    assert_eq!(trace.span_name(1.into()), r#"operator "" _x"#);
    assert_eq!(trace.arg("path").json(trace.spans().args(1.into())).unwrap(), r"C:\dir\q");
    assert_eq!(trace.losses().count(Loss::RepairedString), 2);
    assert_eq!(trace.losses().count(Loss::BadEvent), 0);

    let trace = between("{\"ph\": \"X\", \"name\": \"two\nlines\", \"ts\": 1, \"dur\": 1}");
    assert_eq!(trace.span_name(1.into()), "two\nlines");
}

#[test]
fn what_is_not_a_number_becomes_null() {
    let trace =
        between(r#"{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {"bw": NaN, "x": [Infinity, 1]}}"#);
    let args = trace.spans().args(1.into());
    assert_eq!(trace.arg("bw").json(args), Some(serde_json::Value::Null));
    assert_eq!(trace.arg("x").json(args), Some(serde_json::json!([null, 1])));
    assert_eq!(trace.losses().count(Loss::NotANumber), 2);
}

#[test]
fn a_missing_bracket_is_a_cut_off_file() {
    for content in [format!(r#"{{"traceEvents": [{EVENT}, {EVENT}"#), format!("[{EVENT},\n{EVENT},")] {
        let trace = check_cut(&content);
        assert_eq!(trace.spans().len(), 2);
    }
    let trace = check_cut(&format!(r#"[{EVENT}, {{"ph": "X", "name": "cut o"#));
    assert_eq!(trace.spans().len(), 1);
}

#[track_caller]
fn check_cut(content: &str) -> Trace {
    let trace = read(content).unwrap();
    assert_eq!(trace.losses().count(Loss::TruncatedFile), 1);
    assert_eq!(trace.losses().count(Loss::BadEvent), 0);
    trace
}

#[test]
fn deep_nesting_is_refused_by_name() {
    let deep = format!(
        r#"{{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {{"x": {}1{}}}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    assert_eq!(between(&deep).losses().count(Loss::OversizedEvent), 1);
    let fine = format!(
        r#"{{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {{"x": {}1{}}}}}"#,
        "[".repeat(90),
        "]".repeat(90)
    );
    assert_eq!(between(&fine).spans().len(), 3);
}

#[test]
fn absurd_times_are_counted() {
    let trace = between(r#"{"ph": "X", "name": "a", "ts": 1e300, "dur": 1}"#);
    assert_eq!(trace.losses().count(Loss::BadTimestamp), 1);
    let trace = between(r#"{"ph": "X", "name": "a", "ts": "soon", "dur": 1}"#);
    assert_eq!(trace.losses().count(Loss::BadTimestamp), 1);
    let trace = between(r#"{"ph": "X", "name": "a", "ts": 5, "dur": -2}"#);
    assert_eq!(trace.losses().count(Loss::NegativeDuration), 1);
    assert_eq!(trace.spans().duration(1.into()), Duration(-2_000));
    let trace = between(r#"{"ph": "X", "name": "a", "ts": 5}"#);
    assert_eq!(trace.losses().count(Loss::MissingDuration), 1);
    let trace = between(r#"{"ph": "X", "name": "a", "ts": -9223372036854775.8, "dur": 1}"#);
    assert_eq!(trace.losses().count(Loss::BadTimestamp), 1);
    let trace = between(r#"{"ph": "X", "name": "a", "ts": -4611686018427387, "dur": 4611686018427387}"#);
    assert_eq!(trace.spans().len(), 3);
    assert_eq!(trace.window().0.0, 0);
    assert_eq!(trace.spans().time(0.into()).0, 4_611_686_018_427_392_000);
}

#[test]
fn bytes_that_are_not_text_are_shown_as_such() {
    let mut content = format!(r#"[{EVENT}, {{"ph": "X", "name": "bad "#).into_bytes();
    content.extend_from_slice(b"\xff\xfe\", \"ts\": 1, \"dur\": 1}]");
    let trace = check(content);
    assert_eq!(trace.span_name(1.into()), "bad \u{FFFD}\u{FFFD}");
    assert_eq!(trace.losses().count(Loss::InvalidUtf8), 1);
}

#[test]
fn repeated_ids_and_keys_do_no_harm() {
    let trace = check(format!(
        r#"[{EVENT}, {EVENT}, {{"ph": "X", "name": "a", "ts": 1, "dur": 1, "args": {{"x": 1, "x": 2, "": 3}}}},
            {{"ph": "s", "id": 1, "name": "f", "ts": 1}}, {{"ph": "s", "id": 1, "name": "f", "ts": 1}}]"#
    ));
    assert_eq!(trace.arg("x").int(trace.spans().args(2.into())), Some(2));
    assert_eq!(trace.flows().len(), 2);
}

#[test]
fn a_file_of_new_keys_stays_small() {
    let event = |number: u32| {
        format!(
            r#"{{"ph": "X", "name": "a", "ts": {number}, "dur": 1, "args": {{"key {number}": {number}, "b": "x"}}}}"#
        )
    };
    let events: Vec<_> = (0..20_000).map(event).collect();
    let trace = check(format!("[{}]", events.join(",\n")));
    assert_eq!(trace.spans().len(), 20_000);
    assert!(trace.arg_schemas().len() <= 4_097, "{}", trace.arg_schemas().len());
    assert!((10_000..20_000).contains(&trace.losses().count(Loss::PackedArgs)), "{:?}", trace.losses());
    assert_eq!(trace.arg("key 19999").int(trace.spans().args(19_999.into())), Some(19_999));
}

#[test]
fn one_huge_event_is_skipped() {
    struct Huge(u64);
    impl Read for Huge {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let start = format!("[{EVENT}, {{\"ph\": \"X\", \"ts\": 1, \"name\": \"");
            let end = format!("\"}}, {EVENT}]");
            let size = 100 << 20;
            let total = start.len() as u64 + size + end.len() as u64;
            let mut length = 0;
            while length < buffer.len() && self.0 < total {
                let at = self.0 as usize;
                buffer[length] = match at {
                    _ if at < start.len() => start.as_bytes()[at],
                    _ if at < start.len() + size as usize => b'x',
                    _ => end.as_bytes()[at - start.len() - size as usize],
                };
                self.0 += 1;
                length += 1;
            }
            Ok(length)
        }
    }
    let trace = hotspan_formats::read(Input::new(Huge(0), None, None, &mut ()).unwrap()).unwrap();
    assert_eq!(trace.spans().len(), 2);
    assert_eq!(trace.losses().count(Loss::OversizedEvent), 1);
}

#[test]
fn an_error_names_the_file_and_says_what_to_do() {
    let error = hotspan_formats::open("does/not/exist.json".as_ref()).unwrap_err();
    assert!(error.to_string().starts_with("failed to open does/not/exist.json: "), "{error}");
    assert_eq!(error.hint(), Some("check the path"));
    let error = hotspan_formats::open(std::env::temp_dir().as_path()).unwrap_err();
    assert!(error.to_string().ends_with("it is a folder"), "{error}");
}
