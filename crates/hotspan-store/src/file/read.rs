//! Reading a `.hotspan` file: whatever is whole becomes a trace, whatever is not is counted.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use arrow_schema::SchemaRef;

use crate::builder::TraceBuilder;
use crate::file::accept::Accepted;
use crate::file::columns::{Checked, Chunk, Damaged};
use crate::file::error::FileError;
use crate::file::message::{CONTINUATION, Message, Messages, Next};
use crate::file::schema::{VERSION_KEY, decode};
use crate::losses::Loss;
use crate::trace::Trace;

/// Chunks that are decoded ahead, at most.
const AHEAD: usize = 3;
/// Bytes of such chunks beyond which no other is read.
const AHEAD_BYTES: usize = 32 << 20;

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
    chunks.accept_all(progress)?;
    Ok(chunks.finish())
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
        let offset = self.messages.offset;
        match self.messages.next()? {
            Next::Message(message) if !self.accepted.complete => {
                Ok(self.accept(chunk_of(&message, &self.schema), offset))
            }
            other => self.end(&other, offset).map(|()| false),
        }
    }

    fn accept(&mut self, chunk: Checked<Chunk>, offset: u64) -> bool {
        let is_whole = chunk.and_then(|chunk| self.accepted.accept(&chunk)).is_ok();
        if !is_whole {
            self.loss = Some((Loss::DamagedChunk, offset));
        }
        is_whole
    }

    /// What follows the last chunk.
    fn end(&mut self, next: &Next, offset: u64) -> Result<(), FileError> {
        let is_end = matches!(next, Next::End | Next::EndOfFile);
        let loss = if self.accepted.complete {
            // Nothing but Arrow's end of the stream should follow, and it adds nothing.
            (!is_end || self.messages.has_more()?).then_some(Loss::TrailingData)
        } else if matches!(next, Next::Damaged) {
            Some(Loss::DamagedChunk)
        } else {
            Some(Loss::TruncatedFile)
        };
        self.loss = loss.map(|loss| (loss, offset));
        Ok(())
    }

    /// Accepts all chunks. While one is accepted, another thread decodes those after it.
    fn accept_all(&mut self, progress: &mut dyn FnMut(u64) -> bool) -> Result<(), FileError> {
        let mut ask = |offset| if progress(offset) { Ok(()) } else { Err(FileError::Stopped { offset }) };
        // Most files are one chunk.
        ask(self.messages.offset)?;
        if !self.next()? {
            return Ok(());
        }
        let ended = thread::scope(|scope| {
            let Some(mut decoder) = Decoder::start(scope, &self.schema) else { return Ok(false) };
            let mut end = None;
            loop {
                while end.is_none() && !self.accepted.complete && decoder.has_room() {
                    let offset = self.messages.offset;
                    ask(offset)?;
                    match self.messages.next() {
                        Ok(Next::Message(message)) => decoder.begin(message, offset),
                        other => end = Some((other, offset)),
                    }
                }
                match (decoder.finish(), end.take()) {
                    (Some((_, offset)), _) if self.accepted.complete => {
                        self.loss = Some((Loss::TrailingData, offset));
                        return Ok(true);
                    }
                    (Some((chunk, offset)), later) => {
                        end = later;
                        if !self.accept(chunk, offset) {
                            return Ok(true);
                        }
                    }
                    (None, Some((next, offset))) => return self.end(&next?, offset).map(|()| true),
                    (None, None) => return Ok(false),
                }
            }
        })?;
        if ended {
            return Ok(());
        }
        loop {
            ask(self.messages.offset)?;
            if !self.next()? {
                return Ok(());
            }
        }
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

/// The chunk of a message, checked by its checksum and unpacked.
fn chunk_of(message: &Message, schema: &SchemaRef) -> Checked<Chunk> {
    message.batch(schema).and_then(Chunk::new)
}

/// A thread that decodes messages in the order in which it gets them.
struct Decoder {
    messages: Sender<Message>,
    chunks: Receiver<Checked<Chunk>>,
    /// Where those that are on their way begin, and how long they are.
    on_their_way: VecDeque<(u64, usize)>,
}

impl Decoder {
    /// `None`: the system has no thread for it.
    fn start<'s>(scope: &'s Scope<'s, '_>, schema: &SchemaRef) -> Option<Self> {
        let (messages, given) = channel::<Message>();
        let (decoded, chunks) = channel();
        let schema = SchemaRef::clone(schema);
        // It ends when nobody gives it messages or wants chunks any more.
        let work =
            move || given.into_iter().try_for_each(|message| decoded.send(chunk_of(&message, &schema)));
        thread::Builder::new().name("hotspan-decode".into()).spawn_scoped(scope, work).ok()?;
        Some(Self { messages, chunks, on_their_way: VecDeque::new() })
    }

    /// Whether it may get more: what it has takes memory.
    fn has_room(&self) -> bool {
        let bytes: usize = self.on_their_way.iter().map(|&(_, bytes)| bytes).sum();
        self.on_their_way.len() < AHEAD && bytes < AHEAD_BYTES
    }

    fn begin(&mut self, message: Message, offset: u64) {
        self.on_their_way.push_back((offset, message.len()));
        // Where the thread is gone, there is nothing to receive either.
        let _ = self.messages.send(message);
    }

    /// The first of those on their way, and where it begins.
    fn finish(&mut self) -> Option<(Checked<Chunk>, u64)> {
        let (offset, _) = self.on_their_way.pop_front()?;
        Some((self.chunks.recv().unwrap_or(Err(Damaged)), offset))
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
