//! line_profiler's files: real ones of all pickle protocols, hostile ones, and mutations of both.

use hotspan_analyze::ReportOptions;
use hotspan_analyze::lines::line_functions;
use hotspan_analyze::reports::lines::line_table;
use hotspan_formats::Exporter;
use hotspan_formats::export::lprof::Lprof;
use hotspan_store::Trace;

use crate::mutations::{corpus, for_each_mutation, named_corpus};
use crate::{check_hotspan, read};

fn written(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    Lprof.write(&trace.clone().into(), &mut bytes).unwrap();
    bytes
}

/// Reads content; what can be read can be shown, and survives an export.
fn exercise(content: &[u8]) -> bool {
    let Ok(trace) = read(content) else { return false };
    assert!(line_table(&trace.clone().into(), &ReportOptions::default()).is_ok());
    let first = written(&trace);
    let again = read(first.clone()).expect("the export is readable");
    assert_eq!(written(&again), first);
    true
}

#[test]
fn every_protocol_says_the_same() {
    for (name, content) in named_corpus("lprof").into_iter().filter(|(name, _)| name.starts_with("protocol_"))
    {
        let trace = check_hotspan(content);
        let functions = line_functions(&trace);
        assert_eq!(trace.source().format, "line_profiler", "{name}");
        let names: Vec<_> = functions
            .iter()
            .map(|function| (function.file.as_str(), function.first_line, function.name.as_str()))
            .collect();
        assert_eq!(names, [("a.py", 1, "f"), ("b é.py", 7, "C.g")], "{name}");
        let rows: Vec<_> = functions[0].lines.iter().map(|row| (row.line, row.hits, row.time.0)).collect();
        assert_eq!(rows, [(2, 3, 1_000_000), (3, 1, (1 << 40) * 1000)], "{name}");
        assert_eq!(functions[1].lines, [], "{name}");
    }
}

#[test]
fn some_are_readable_and_hostile_ones_are_refused() {
    let readable: Vec<_> = named_corpus("lprof")
        .into_iter()
        .filter(|(_, content)| exercise(content))
        .map(|(name, _)| name)
        .collect();
    let expected = [
        "float_times.lprof",
        "huge_line.lprof",
        "line_profiler_5.lprof",
        "protocol_2.lprof",
        "protocol_3.lprof",
        "protocol_4.lprof",
        "protocol_5.lprof",
    ];
    assert_eq!(readable, expected);
}

#[test]
fn mutations_of_the_corpus_are_read_without_a_panic() {
    // Opcodes of pickle that take something from the stack, the memo or the file, and lengths that are too large.
    const PIECES: [&[u8]; 8] = [b".", b"(", b"R", b"h\xff", b"\x8c\xff", b"X\xff\xff\xff\x7f", b"\x94", b"u"];
    for_each_mutation(&corpus("lprof"), 400, &PIECES, |content| {
        exercise(content);
    });
}
