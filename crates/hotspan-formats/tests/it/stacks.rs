//! Files of stacks: collapsed and speedscope, read, written, and their fuzzers' corpora.

use hotspan_formats::export::collapsed::COLLAPSED;
use hotspan_formats::export::speedscope::SPEEDSCOPE;
use hotspan_formats::{EXPORTERS, Exporter};
use hotspan_store::{Loss, Trace, first_difference};

use crate::mutations::{corpus, for_each_mutation};
use crate::read;

fn written(trace: &Trace, exporter: &dyn Exporter) -> Vec<u8> {
    let mut bytes = Vec::new();
    exporter.write(&trace.clone().into(), &mut bytes).unwrap();
    bytes
}

/// Stacks outermost first, with their weights in nanoseconds.
fn stacks(trace: &Trace) -> Vec<(Vec<String>, i64)> {
    let profile = trace.profile();
    let name = |frame| trace.str(profile.frames.row(frame).name).to_owned();
    profile
        .samples
        .rows()
        .map(|sample| {
            let mut names: Vec<String> = profile.stacks.frames(sample.stack).map(name).collect();
            names.reverse();
            (names, sample.weight.0)
        })
        .collect()
}

fn named(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn collapsed_stacks_go_in_and_out() {
    let text = "main (a.py:1);work (a.py:12) 42\nmain (a.py:1);rest (b.py:7) 7\n";
    let trace = read(text).unwrap();
    assert_eq!(trace.source().format, "collapsed stacks");
    let expected = [(named(&["main", "work"]), 420_000_000), (named(&["main", "rest"]), 70_000_000)];
    assert_eq!(stacks(&trace), expected);
    assert_eq!(trace.losses().count(Loss::AssumedPeriod), 1);
    assert_eq!(String::from_utf8(written(&trace, &COLLAPSED)).unwrap(), text);
}

#[test]
fn bad_lines_are_counted_not_fatal() {
    let trace =
        read("main;work 3\nmain;work 5\nwork without a count\n").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(stacks(&trace).len(), 2);
    assert_eq!(trace.losses().count(Loss::BadEvent), 1);
}

#[test]
fn speedscope_files_go_in_and_out() {
    let sampled = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"main","file":"a.py","line":3},{"name":"work"}]},
        "profiles":[{"type":"sampled","name":"t","unit":"milliseconds","startValue":0,"endValue":3,
        "samples":[[0],[0,1]],"weights":[1,2]}]}"#;
    let trace = read(sampled).unwrap();
    let expected = [(named(&["main"]), 1_000_000), (named(&["main", "work"]), 2_000_000)];
    assert_eq!(stacks(&trace), expected);
    let again = read(written(&trace, &SPEEDSCOPE)).unwrap();
    assert_eq!(stacks(&again), expected);
}

#[test]
fn evented_profiles_become_samples() {
    let evented = r#"{"shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","unit":"microseconds",
        "events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":10},{"type":"C","frame":1,"at":30},
        {"type":"C","frame":0,"at":35},{"type":"C","frame":1,"at":36}]}]}"#;
    let trace = read(evented).unwrap();
    let expected = [(named(&["a"]), 10_000), (named(&["a", "b"]), 20_000), (named(&["a"]), 5_000)];
    assert_eq!(stacks(&trace), expected);
    assert_eq!(trace.losses().count(Loss::UnmatchedEnd), 1);
}

/// Reads content; what can be read survives our own file, and every exporter takes it.
fn exercise(content: &[u8]) {
    let Ok(trace) = read(content) else { return };
    let mut file = Vec::new();
    hotspan_store::file::write_trace(&trace, &mut file).unwrap();
    let again = read(file).expect("our own file is readable");
    assert_eq!(first_difference(&trace, &again), None, "{}", String::from_utf8_lossy(content));
    for exporter in EXPORTERS {
        let result = exporter.write(&trace.clone().into(), &mut Vec::new());
        // Some write only what a trace of stacks does not have, and say so.
        let refused = result.is_err_and(|error| error.kind() != std::io::ErrorKind::InvalidInput);
        assert!(!refused, "{}", exporter.name());
    }
}

#[test]
fn the_corpora_and_their_mutations_are_read_without_a_panic() {
    const PIECES: [&[u8]; 14] = [
        b";",
        b" ",
        b"\n",
        b"(",
        b":9)",
        b"\"",
        b"{",
        b"]",
        b",",
        b"-1",
        b"1e99",
        b"\xff",
        b"null",
        b"99999999999",
    ];
    for name in ["collapsed", "speedscope"] {
        let contents = corpus(name);
        contents.iter().for_each(|content| exercise(content));
        for_each_mutation(&contents, 100, &PIECES, exercise);
    }
}

#[test]
fn what_lies_too_deep_in_a_stack_is_counted() {
    let line = (0..1_200).map(|number| format!("f{number}")).collect::<Vec<_>>().join(";");
    let trace = read(format!("{line} 2\n")).unwrap();
    assert_eq!(trace.losses().count(Loss::DeepStack), 200);
    assert_eq!(stacks(&trace)[0].0.len(), 1_000);

    let open = |number: i64| format!(r#"{{"type":"O","frame":0,"at":{number}}}"#);
    let events = (0..1_200).map(open).collect::<Vec<_>>().join(",");
    let deep = format!(
        r#"{{"shared":{{"frames":[{{"name":"a"}}]}},"profiles":[{{"type":"evented","unit":"nanoseconds","events":[{events},
        {{"type":"C","frame":0,"at":1300}}]}}]}}"#
    );
    let trace = read(deep).unwrap();
    assert_eq!(trace.losses().count(Loss::DeepStack), 200);
    assert_eq!(stacks(&trace).last().unwrap(), &(vec!["a".to_owned(); 1_000], 101));
}

#[test]
fn deep_calls_make_no_large_files() {
    let depth = 5_000;
    let event = |number: i64| {
        let (begin, length) = (number * 10, (2 * depth - 2 * number) * 10);
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"f{number}","pid":1,"tid":1,"ts":{begin},"dur":{length}}}"#
        )
    };
    let json = format!("[{}]", (0..depth).map(event).collect::<Vec<_>>().join(","));
    let trace = read(json.clone()).unwrap();
    let speedscope = written(&trace, &SPEEDSCOPE);
    assert!(speedscope.len() < 2 * json.len(), "{} bytes of {}", speedscope.len(), json.len());
    let again = read(speedscope).unwrap();
    let total: i64 = stacks(&again).iter().map(|(_, weight)| weight).sum();
    assert_eq!(total, 2 * depth * 10 * 1_000, "no time is lost");
    let collapsed = String::from_utf8(written(&trace, &COLLAPSED)).unwrap();
    assert!(collapsed.lines().count() <= 2_001, "{} lines", collapsed.lines().count());
    let counts = collapsed.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap());
    assert_eq!(counts.sum::<i64>(), 2 * depth * 10, "no time is lost");
    assert!(collapsed.contains(";(deeper calls) "));
}
