//! Memory over time, for each device and for processes.

use hotspan_analyze::Model;

use crate::api::{Curve, CurveLine};

/// As many as a wide screen has pixels.
const POINTS: usize = 2000;

/// The curves of a trace.
pub(crate) fn curves(model: &Model) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for device in model.memory_timeline() {
        let series = device.series(POINTS);
        let lines = series.lines.into_iter();
        curves.push(Curve {
            title: series.title,
            unit: series.unit.name().to_owned(),
            times: series.times.iter().map(|time| time.0).collect(),
            lines: lines
                .map(|line| CurveLine { key: line.key, title: line.title, values: line.values })
                .collect(),
        });
    }
    for process in &model.process_memory().processes {
        let step = process.points.len().div_ceil(POINTS).max(1);
        // Of each stretch the most, so that the peak stays.
        let kept = process.points.chunks(step).filter_map(|part| part.iter().max_by_key(|point| point.1.0));
        let (times, values) = kept.map(|(time, bytes)| (time.0, bytes.0)).unzip();
        let title = format!("Memory of process {} {}", process.pid, process.name);
        let line = CurveLine { key: "resident".to_owned(), title: "Resident".to_owned(), values };
        curves.push(Curve { title, unit: "bytes".to_owned(), times, lines: vec![line] });
    }
    curves
}
