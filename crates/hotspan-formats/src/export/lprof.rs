//! line_profiler's `.lprof` files, for `python -m line_profiler` and what else reads them.

use std::io::{self, Write};

use hashbrown::HashMap;
use hotspan_analyze::Model;
use hotspan_store::{FrameId, LineRow};

use super::Exporter;

/// The exporter of `.lprof` files.
pub struct Lprof;

impl Exporter for Lprof {
    fn name(&self) -> &'static str {
        "lprof"
    }

    fn help(&self) -> &'static str {
        "hits and times of Python lines, for python -m line_profiler"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        // The class that every version of line_profiler has, old and new; protocol 2 is read by all Pythons.
        output.write_all(b"\x80\x02cline_profiler._line_profiler\nLineStats\n)\x81}(")?;
        text(output, "timings")?;
        output.write_all(b"}(")?;
        let profile = model.profile();
        for (function, rows) in by_function(model) {
            let frame = profile.frames.row(function);
            text(output, model.str(frame.file))?;
            integer(output, i64::from(frame.first_line))?;
            text(output, model.str(frame.name))?;
            output.write_all(b"\x87](")?;
            for row in rows.iter().filter(|row| row.hits > 0) {
                integer(output, i64::from(row.line))?;
                integer(output, row.hits)?;
                integer(output, row.time.0)?;
                output.write_all(b"\x87")?;
            }
            output.write_all(b"e")?;
        }
        output.write_all(b"u")?;
        text(output, "unit")?;
        output.write_all(b"G")?;
        output.write_all(&1e-9_f64.to_be_bytes())?;
        output.write_all(b"ub.")
    }
}

/// Functions in the order of the trace, each with its lines in order.
fn by_function(model: &Model) -> Vec<(FrameId, Vec<LineRow>)> {
    let mut indices: HashMap<FrameId, usize> = HashMap::new();
    let mut functions: Vec<(FrameId, Vec<LineRow>)> = Vec::new();
    for row in model.profile().lines.rows() {
        let index = *indices.entry(row.function).or_insert_with(|| {
            functions.push((row.function, Vec::new()));
            functions.len() - 1
        });
        functions[index].1.push(row);
    }
    for (_, rows) in &mut functions {
        rows.sort_by_key(|row| row.line);
    }
    functions
}

fn text(output: &mut dyn Write, text: &str) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    output.write_all(b"X")?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(text.as_bytes())
}

fn integer(output: &mut dyn Write, number: i64) -> io::Result<()> {
    match i32::try_from(number) {
        Ok(small) => {
            output.write_all(b"J")?;
            output.write_all(&small.to_le_bytes())
        }
        Err(_) => {
            output.write_all(b"\x8a\x08")?;
            output.write_all(&number.to_le_bytes())
        }
    }
}
