//! Reading a `.hotspan` file: whatever is whole becomes a trace, whatever is not is counted.

use std::io::Read;

use arrow_schema::SchemaRef;

use crate::builder::TraceBuilder;
use crate::file::accept::Accepted;
use crate::file::error::FileError;
use crate::file::message::{CONTINUATION, Messages, Next};
use crate::file::schema::{VERSION_KEY, decode};
use crate::losses::Loss;
use crate::trace::Trace;

/// Whether a file that begins like this is a `.hotspan` file. The first 8 KB are enough.
#[must_use]
pub fn is_hotspan(head: &[u8]) -> bool {
    head.starts_with(&CONTINUATION)
        && head.windows(VERSION_KEY.len()).any(|bytes| bytes == VERSION_KEY.as_bytes())
}

/// Reads a `.hotspan` file. `progress` is told how many bytes were read and answers whether to go on.
///
/// A file that is cut off or damaged gives everything before the damage, with [`Loss::TruncatedFile`] or
/// [`Loss::DamagedChunk`] counted.
///
/// # Errors
/// When nothing can be read: another kind of file, another major version, an error of the input; or when `progress`
/// asked to stop.
pub fn read(input: impl Read, progress: &mut dyn FnMut(u64) -> bool) -> Result<Trace, FileError> {
    Ok(read_builder(input, progress)?.finish())
}

/// Reads a `.hotspan` file into a builder, to which more can be added.
///
/// # Errors
/// As [`read`].
pub fn read_builder(
    input: impl Read,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<TraceBuilder, FileError> {
    let mut messages = Messages::new(input);
    let first = match messages.next()? {
        Next::Message(message) => message,
        Next::Cut | Next::EndOfFile => {
            return Err(FileError::NotHotspan {
                problem: "the end of the file instead of a schema",
                offset: messages.offset,
            });
        }
        Next::End | Next::Damaged => {
            return Err(FileError::NotHotspan { problem: "no readable Arrow schema", offset: 0 });
        }
    };
    let schema = first.schema().ok_or(FileError::NotHotspan { problem: "no Arrow schema", offset: 0 })?;
    let schema = decode(schema, 0)?;
    let mut accepted = Accepted::default();
    let loss = read_chunks(&mut messages, &schema, &mut accepted, progress)?;
    let Accepted { mut builder, losses, .. } = accepted;
    builder.losses = losses;
    if let Some((loss, offset)) = loss {
        builder.losses.add(loss, Some(offset));
    }
    Ok(builder)
}

/// Accepts chunks up to the end of the file or the first damage, and says what is wrong and where.
fn read_chunks<R: Read>(
    messages: &mut Messages<R>,
    schema: &SchemaRef,
    accepted: &mut Accepted,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<(Loss, u64)>, FileError> {
    loop {
        let offset = messages.offset;
        if !progress(offset) {
            return Err(FileError::Stopped { offset });
        }
        let next = messages.next()?;
        if accepted.complete {
            // Nothing but Arrow's end of the stream should follow, and it adds nothing.
            let rest = !matches!(next, Next::End | Next::EndOfFile) || messages.has_more()?;
            return Ok(rest.then_some((Loss::TrailingData, offset)));
        }
        let whole = match next {
            Next::Message(message) => message.batch(schema).and_then(|batch| accepted.accept(&batch)).is_ok(),
            Next::Damaged => false,
            Next::End | Next::EndOfFile | Next::Cut => return Ok(Some((Loss::TruncatedFile, offset))),
        };
        if !whole {
            return Ok(Some((Loss::DamagedChunk, offset)));
        }
    }
}
