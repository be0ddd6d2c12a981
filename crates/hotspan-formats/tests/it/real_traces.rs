//! Real traces of other people's programs, where a folder of them lies beside the checkout.

use std::path::{Path, PathBuf};

use hotspan_formats::ImportError;
use hotspan_store::{Severity, first_difference};

use crate::{chrome_json, read};

fn traces() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                walk(&path, found);
            } else if path.to_string_lossy().contains(".json") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"), &mut found);
    found.sort();
    found
}

#[test]
fn every_trace_survives_both_round_trips() {
    let traces = traces();
    let mut read_traces = 0;
    for path in &traces {
        let trace = match hotspan_formats::open(path) {
            Ok(trace) => trace,
            Err(error) => {
                let is_execution_trace = path.to_string_lossy().ends_with("_et.json.gz");
                assert!(is_execution_trace, "{error}");
                assert!(matches!(error.error, ImportError::NotATrace { .. }));
                continue;
            }
        };
        let lost: Vec<_> =
            trace.losses().counts().iter().filter(|loss| loss.loss.severity() == Severity::Loss).collect();
        assert!(lost.is_empty(), "{}: {lost:?}", path.display());
        let again = read(chrome_json(&trace)).unwrap();
        assert_eq!(first_difference(&trace, &again), None, "{}", path.display());
        let mut file = Vec::new();
        hotspan_store::file::write_trace(&trace, &mut file).unwrap();
        let again = read(file).unwrap();
        assert_eq!(first_difference(&trace, &again), None, "{}", path.display());
        let budget =
            if trace.arg("Input Dims").occurs() || trace.arg("Call stack").occurs() { 200 } else { 100 };
        if trace.spans().len() > 10_000 {
            let bytes = trace.heap_bytes() / trace.spans().len();
            assert!(bytes <= budget, "{}: {bytes} bytes a span", path.display());
        }
        read_traces += 1;
    }
    println!("{read_traces} of {} traces read and written", traces.len());
}
