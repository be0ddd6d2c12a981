//! `.prof` files of cProfile and pstats: calls added up by function and caller.
//!
//! The file is one dict in Python's marshal format. It is parsed, never loaded: nothing in it can run, and only what such a file
//! consists of is understood (dicts, tuples, texts, numbers). [`marshal`] reads values, the rest makes rows of them.

mod marshal;

use std::io::Read;

use hotspan_store::{CallRow, Duration, FrameId, FrameKind, FrameRow, Loss, TraceBuilder};

use crate::error::ImportError;
use crate::import::{Importer, Sniff};
use crate::input::Input;
use marshal::{MarshalReader, Value};

/// The importer of `.prof` files.
pub struct Prof;

/// Files of programs with a million functions have some hundred megabytes.
const LARGEST: u64 = 1 << 30;
/// A caller and its numbers take more bytes than this: more of them than the file has room for were made by references.
const BYTES_OF_CALLER: usize = 16;

impl Importer for Prof {
    fn name(&self) -> &'static str {
        "Python profile (.prof)"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        // A dict, whose first key is a tuple; with or without the mark of something that is referred to. JSON has a quote,
        // a space or a line end in the second place.
        match head {
            [first, second, ..] if first & 0x7f == b'{' && matches!(second & 0x7f, b'(' | b')') => Sniff::Yes,
            [first, b'0'] if first & 0x7f == b'{' => Sniff::Yes,
            _ => Sniff::No,
        }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        input.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(damaged("it is larger than 1 GB", LARGEST));
        }
        builder.source.bytes = bytes.len() as u64;
        let mut reader = MarshalReader::new(&bytes, input.memory());
        let content = reader.read()?;
        if reader.position() < bytes.len() {
            builder.losses.add(Loss::TrailingData, Some(reader.position() as u64));
        }
        let Value::Dict(functions) = &content else {
            return Err(damaged("the content is not a dict", 0));
        };
        let mut rows = Rows { builder, budget: bytes.len() / BYTES_OF_CALLER };
        functions.iter().try_for_each(|(function, sums)| rows.add(function, sums))
    }
}

fn damaged(reason: &str, offset: u64) -> ImportError {
    ImportError::Damaged { reason: reason.to_owned(), offset }
}

fn unknown(what: &str) -> ImportError {
    damaged(&format!("{what} is not what cProfile writes"), 0)
}

struct Rows<'a> {
    builder: &'a mut TraceBuilder,
    /// How many callers the file can have.
    budget: usize,
}

impl Rows<'_> {
    fn add(&mut self, function: &Value, sums: &Value) -> Result<(), ImportError> {
        // Python 3.15 marks sampled profiles with an entry that is no function.
        if let Value::Tuple(mark) = function
            && let [Value::Text(_)] = mark.as_slice()
        {
            return Ok(());
        }
        let callee = self.frame(function)?;
        let Value::Tuple(sums) = sums else { return Err(unknown("an entry")) };
        let [primitive, calls, own, total, callers] = sums.as_slice() else {
            return Err(unknown("an entry"));
        };
        self.push(FrameId::NONE, callee, [calls, primitive, own, total])?;
        let Value::Dict(callers) = callers else { return Err(unknown("a list of callers")) };
        let Some(left) = self.budget.checked_sub(callers.len()) else {
            return Err(damaged("it refers to the same callers again and again", 0));
        };
        self.budget = left;
        for (caller, sums) in callers.iter() {
            let caller = self.frame(caller)?;
            match sums {
                // Here calls come first, in the entry above the primitive ones.
                Value::Tuple(sums) => {
                    let [calls, primitive, own, total] = sums.as_slice() else {
                        return Err(unknown("a caller"));
                    };
                    self.push(caller, callee, [calls, primitive, own, total])?;
                }
                // The `profile` module only counts.
                Value::Int(_) => {
                    let no_time = Value::Int(0);
                    self.push(caller, callee, [sums, sums, &no_time, &no_time])?;
                }
                _ => return Err(unknown("a caller")),
            }
        }
        Ok(())
    }

    fn frame(&mut self, function: &Value) -> Result<FrameId, ImportError> {
        let Value::Tuple(function) = function else { return Err(unknown("a function")) };
        let [Value::Text(file), Value::Int(line), Value::Text(name)] = function.as_slice() else {
            return Err(unknown("a function"));
        };
        let is_builtin = &**file == "~" && *line == 0;
        let first_line = u32::try_from(*line).unwrap_or(0);
        let (name, file) = (self.builder.intern(name), self.builder.intern(file));
        let kind = if is_builtin { FrameKind::Builtin } else { FrameKind::Python };
        Ok(self.builder.frame(FrameRow { name, file, line: 0, first_line, kind }))
    }

    fn push(&mut self, caller: FrameId, callee: FrameId, numbers: [&Value; 4]) -> Result<(), ImportError> {
        let [calls, primitive, own, total] = numbers;
        let (Value::Int(calls), Value::Int(primitive_calls)) = (calls, primitive) else {
            return Err(unknown("a count"));
        };
        let (self_time, total_time) = (self.time(own)?, self.time(total)?);
        let (calls, primitive_calls) = (*calls, *primitive_calls);
        self.builder.push_calls(CallRow { caller, callee, calls, primitive_calls, self_time, total_time });
        Ok(())
    }

    /// Seconds as nanoseconds.
    fn time(&mut self, value: &Value) -> Result<Duration, ImportError> {
        let seconds = match value {
            Value::Float(seconds) => *seconds,
            Value::Int(seconds) => *seconds as f64,
            _ => return Err(unknown("a time")),
        };
        if !seconds.is_finite() {
            self.builder.losses.add(Loss::NotANumber, None);
            return Ok(Duration(0));
        }
        Ok(Duration((seconds * 1e9).round() as i64))
    }
}
