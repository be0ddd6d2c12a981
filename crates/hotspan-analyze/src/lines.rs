//! Lines of Python: hits, time and memory of each.

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameId, LineRow, Trace};

/// One function and its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFunction {
    /// Its source file.
    pub file: String,
    /// The line it begins at.
    pub first_line: u32,
    /// Its name, with its class.
    pub name: String,
    /// The lines that were executed, in order; none when it never ran.
    pub lines: Vec<LineRow>,
}

impl LineFunction {
    /// Time of all lines.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.lines.iter().map(|row| row.time).sum()
    }

    /// Whether its memory was measured, rather than its time.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.lines.iter().any(|row| row.memory.0 != 0)
    }
}

/// The functions whose lines a trace knows, in the order of the trace.
#[must_use]
pub fn line_functions(trace: &Trace) -> Vec<LineFunction> {
    let profile = trace.profile();
    let mut indices: HashMap<FrameId, usize> = HashMap::new();
    let mut functions: Vec<LineFunction> = Vec::new();
    for row in profile.lines.rows() {
        let index = *indices.entry(row.function).or_insert_with(|| {
            let frame = profile.frames.row(row.function);
            functions.push(LineFunction {
                file: trace.str(frame.file).to_owned(),
                first_line: frame.first_line,
                name: trace.str(frame.name).to_owned(),
                lines: Vec::new(),
            });
            functions.len() - 1
        });
        // A row without hits says that there is such a function, no more.
        if row.hits > 0 {
            functions[index].lines.push(row);
        }
    }
    for function in &mut functions {
        function.lines.sort_by_key(|row| row.line);
    }
    functions
}
