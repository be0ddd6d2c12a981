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
    let mut chunks = Chunks::open(input)?;
    loop {
        let offset = chunks.offset();
        if !progress(offset) {
            return Err(FileError::Stopped { offset });
        }
        if !chunks.next()? {
            return Ok(chunks.finish());
        }
    }
}

/// A file that is read chunk by chunk, so that whoever reads can take rows out between two of them.
pub(crate) struct Chunks<R> {
    messages: Messages<R>,
    schema: SchemaRef,
    accepted: Accepted,
    /// What is wrong, once the end or the first damage is reached.
    loss: Option<(Loss, u64)>,
}

impl<R: Read> Chunks<R> {
    /// Reads the schema.
    pub(crate) fn open(input: R) -> Result<Self, FileError> {
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
        Ok(Self { messages, schema, accepted: Accepted::default(), loss: None })
    }

    /// How far reading came.
    pub(crate) fn offset(&self) -> u64 {
        self.messages.offset
    }

    /// What was read so far.
    pub(crate) fn builder(&mut self) -> &mut TraceBuilder {
        &mut self.accepted.builder
    }

    /// Accepts the next chunk. `false`: there is none, or none that can be read.
    pub(crate) fn next(&mut self) -> Result<bool, FileError> {
        let Self { messages, schema, accepted, loss } = self;
        let offset = messages.offset;
        let next = messages.next()?;
        if accepted.complete {
            // Nothing but Arrow's end of the stream should follow, and it adds nothing.
            let rest = !matches!(next, Next::End | Next::EndOfFile) || messages.has_more()?;
            *loss = rest.then_some((Loss::TrailingData, offset));
            return Ok(false);
        }
        let whole = match next {
            Next::Message(message) => message.batch(schema).and_then(|batch| accepted.accept(&batch)).is_ok(),
            Next::Damaged => false,
            Next::End | Next::EndOfFile | Next::Cut => {
                *loss = Some((Loss::TruncatedFile, offset));
                return Ok(false);
            }
        };
        if !whole {
            *loss = Some((Loss::DamagedChunk, offset));
        }
        Ok(whole)
    }

    /// All that was read and not taken out.
    pub(crate) fn finish(self) -> TraceBuilder {
        let Accepted { mut builder, losses, .. } = self.accepted;
        builder.losses = losses;
        builder.count_left_out();
        if let Some((loss, offset)) = self.loss {
            builder.losses.add(loss, Some(offset));
        }
        builder
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::UInt32Type;
    use arrow_array::{Array, ArrayRef, Int8Array, ListArray, RecordBatch, UInt32Array};
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::file::checksum::checksum;
    use crate::file::chunk::Chunk;
    use crate::file::schema::CHECKSUM;
    use crate::losses::Losses;
    use crate::metadata::Clock;

    /// A file of one chunk with one string, whose columns were changed by another version.
    fn file_of_another_version(change: impl Fn(&mut Vec<(Field, ArrayRef)>)) -> Vec<u8> {
        let chunk = Chunk { strings: vec!["kept"], verbatim: vec![1], ..Default::default() };
        let batch = chunk.encode(Clock::default(), &Losses::default(), true).unwrap();
        let fields = batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect::<Vec<_>>();
        let mut columns: Vec<(Field, ArrayRef)> =
            fields.into_iter().zip(batch.columns().iter().cloned()).collect();
        columns.retain(|(field, _)| field.name() != CHECKSUM);
        change(&mut columns);
        let crc = checksum(columns.iter().map(|(field, column)| (field, column))).unwrap().crc;
        let sum: ArrayRef = Arc::new(UInt32Array::from(vec![crc]));
        columns.push((Field::new(CHECKSUM, sum.data_type().clone(), false), sum));
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let metadata = [(VERSION_KEY.to_owned(), "2.7".to_owned())];
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let mut bytes = Vec::new();
        let mut stream = StreamWriter::try_new(&mut bytes, &schema).unwrap();
        stream.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
        stream.finish().unwrap();
        drop(stream);
        bytes
    }

    #[test]
    fn columns_of_later_versions_are_ignored_and_missing_ones_are_empty() {
        let bytes = file_of_another_version(|columns| {
            columns.retain(|(field, _)| !["losses", "clock", "tracks"].contains(&field.name().as_str()));
            let extra = ListArray::from_iter_primitive::<UInt32Type, _, _>([Some([Some(5)])]);
            columns.insert(3, (Field::new("extra", extra.data_type().clone(), true), Arc::new(extra)));
        });
        let trace = read(bytes.as_slice(), &mut |_| true).unwrap();
        assert_eq!(trace.verbatim().collect::<Vec<_>>(), ["kept"]);
        assert!(trace.losses().is_empty());
    }

    #[test]
    fn a_column_of_another_type_is_an_error_that_names_it() {
        let bytes = file_of_another_version(|columns| {
            let wrong: ArrayRef = Arc::new(Int8Array::from(vec![1]));
            columns[0] = (Field::new("strings", wrong.data_type().clone(), false), wrong);
        });
        let error = read(bytes.as_slice(), &mut |_| true).unwrap_err().to_string();
        assert_eq!(error, "column 'strings' of the .hotspan file has type int8 instead of list<utf8>");
    }
}
