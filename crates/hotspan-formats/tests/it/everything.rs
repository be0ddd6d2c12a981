//! The fuzzers' corpora through all analyses and exporters, as an ordinary test: the same code that the fuzzers run.

use crate::mutations::{corpus, named_corpus};
use crate::read;

#[path = "../../../../fuzz/fuzz_targets/everything.rs"]
mod all;
#[path = "../../../../fuzz/fuzz_targets/generate.rs"]
mod generate;

#[test]
fn every_corpus_goes_through_all_analyses_and_exporters() {
    for name in ["chrome", "collapsed", "hotspan_file", "lprof", "prof", "speedscope"] {
        for (file, content) in named_corpus(name) {
            for choice in 0..8 {
                if let Ok(trace) = read(content.clone()) {
                    eprintln!("{name}/{file}, part {choice}");
                    all::everything(trace, choice);
                }
            }
        }
    }
}

#[test]
fn plausible_traces_go_through_all_analyses_and_exporters() {
    for choices in corpus("plausible") {
        let json = generate::trace(&choices);
        for choice in 0..8 {
            let trace = read(json.clone()).expect("what is generated is a trace");
            assert!(trace.spans().len() > 5, "{json}");
            all::everything(trace, choice);
        }
    }
}
