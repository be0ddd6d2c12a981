//! Arrow IPC messages of a file that may be hostile: framing, sizes and buffers are checked here, before Arrow's decoder
//! sees them. What the columns mean is left to `accept`.
//!
//! Memory grows only with bytes that were really read: lengths are capped and never allocated in advance, and buffers
//! may not overlap, so that a small file cannot describe a large one.

use std::io::{self, Read};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::RecordBatchDecoder;
use arrow_schema::{DataType, SchemaRef};

use crate::file::chunk::MAX_BODY;
use crate::file::columns::Damaged;
use crate::file::error::FileError;

/// What every message begins with.
pub(super) const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The metadata of a message of ours has a few kilobytes.
const MAX_METADATA: u64 = 256 << 10;
/// Memory asked for before any of it is filled.
const FIRST_ALLOCATION: u64 = 1 << 20;

/// What comes next in the file.
pub(super) enum Next {
    /// A message.
    Message(Message),
    /// Arrow's end of the stream.
    End,
    /// The end of the file, between two messages.
    EndOfFile,
    /// The end of the file, within a message.
    Cut,
    /// Bytes that are no message.
    Damaged,
}

/// A message with its metadata verified and its body read.
pub(super) struct Message {
    metadata: Vec<u8>,
    body: Buffer,
}

/// Reads messages one after the other.
pub(super) struct Messages<R> {
    input: R,
    /// Bytes read so far.
    pub(super) offset: u64,
}

impl<R: Read> Messages<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, offset: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Next, FileError> {
        let prefix = self.take(8)?;
        let Ok(prefix) = <[u8; 8]>::try_from(prefix.as_slice()) else {
            return Ok(if prefix.is_empty() { Next::EndOfFile } else { Next::Cut });
        };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = prefix;
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        if [c0, c1, c2, c3] != CONTINUATION || length > MAX_METADATA {
            return Ok(Next::Damaged);
        }
        if length == 0 {
            return Ok(Next::End);
        }
        let metadata = self.take(length)?;
        if (metadata.len() as u64) < length {
            return Ok(Next::Cut);
        }
        let Ok(message) = arrow_ipc::root_as_message(&metadata) else { return Ok(Next::Damaged) };
        let length = match u64::try_from(message.bodyLength()) {
            Ok(length) if length <= MAX_BODY => length,
            _ => return Ok(Next::Damaged),
        };
        let body = self.take(length)?;
        if (body.len() as u64) < length {
            return Ok(Next::Cut);
        }
        Ok(Next::Message(Message { metadata, body: Buffer::from_vec(body) }))
    }

    /// Whether anything follows.
    pub(super) fn has_more(&mut self) -> Result<bool, FileError> {
        Ok(!self.take(1)?.is_empty())
    }

    /// The next bytes, fewer at the end of the file.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::with_capacity(length.min(FIRST_ALLOCATION) as usize);
        let result = self.input.by_ref().take(length).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        match result {
            Ok(_) => Ok(bytes),
            // A compressed file that was cut off reports this; for us it is the end of the file.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(bytes),
            Err(error) => Err(FileError::Read { offset: self.offset, error }),
        }
    }
}

impl Message {
    /// Bytes of its body.
    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// The schema, if the message is one.
    pub(super) fn schema(&self) -> Option<arrow_ipc::Schema<'_>> {
        arrow_ipc::root_as_message(&self.metadata).ok()?.header_as_schema()
    }

    /// The record batch, if the message is one of this schema.
    pub(super) fn batch(&self, schema: &SchemaRef) -> Result<RecordBatch, Damaged> {
        let message = arrow_ipc::root_as_message(&self.metadata).map_err(|_| Damaged)?;
        let batch = message.header_as_record_batch().ok_or(Damaged)?;
        self.check(batch, schema).ok_or(Damaged)?;
        let version = message.version();
        let dictionaries = std::collections::HashMap::new();
        let decoder = RecordBatchDecoder::try_new(&self.body, batch, schema.clone(), &dictionaries, &version);
        decoder.and_then(RecordBatchDecoder::read_record_batch).map_err(|_| Damaged)
    }

    /// Checks what Arrow's decoder takes on trust. `None`: it may not see this.
    fn check(&self, batch: arrow_ipc::RecordBatch<'_>, schema: &SchemaRef) -> Option<()> {
        let plain = batch.compression().is_none()
            && batch.variadicBufferCounts().is_none_or(|counts| counts.is_empty());
        if batch.length() != 1 || !plain {
            return None;
        }
        let mut layout = BodyLayout {
            nodes: batch.nodes()?.iter(),
            buffers: batch.buffers()?.iter(),
            end: 0,
            body: self.body.len(),
        };
        for field in schema.fields() {
            layout.check(field.data_type(), Some(1))?;
        }
        (layout.nodes.len() == 0 && layout.buffers.len() == 0).then_some(())
    }
}

/// What a record batch says about where its columns are, taken apart in the order of the schema.
struct BodyLayout<N, B> {
    nodes: N,
    buffers: B,
    /// Where the last buffer ends. Buffers follow each other: overlapping ones would be a small file that describes a
    /// large one.
    end: usize,
    body: usize,
}

impl<'a, N, B> BodyLayout<N, B>
where
    N: Iterator<Item = &'a arrow_ipc::FieldNode>,
    B: Iterator<Item = &'a arrow_ipc::Buffer>,
{
    /// Checks a column and those in it; `rows` is how many rows it must have, where that is known.
    fn check(&mut self, data_type: &DataType, rows: Option<usize>) -> Option<()> {
        let node = self.nodes.next()?;
        let length = usize::try_from(node.length()).ok()?;
        // Every row takes at least a byte, and no column has nulls.
        if node.null_count() != 0 || length > self.body || rows.is_some_and(|rows| rows != length) {
            return None;
        }
        self.buffer()?;
        match data_type {
            DataType::Utf8 => {
                self.offsets(length)?;
                self.buffer()?;
            }
            DataType::List(item) => {
                self.offsets(length)?;
                self.check(item.data_type(), None)?;
            }
            DataType::Struct(fields) => {
                for field in fields {
                    self.check(field.data_type(), Some(length))?;
                }
            }
            plain => {
                let needed = length.checked_mul(plain.primitive_width()?)?;
                (self.buffer()? >= needed).then_some(())?;
            }
        }
        Some(())
    }

    /// Offsets are whole numbers of four bytes, one more than there are rows; an empty column may leave them out.
    fn offsets(&mut self, length: usize) -> Option<()> {
        let bytes = self.buffer()?;
        let needed = (length + 1) * 4;
        (bytes % 4 == 0 && (bytes >= needed || (length == 0 && bytes == 0))).then_some(())
    }

    /// The length of the next buffer, which lies in the body and behind the one before.
    fn buffer(&mut self) -> Option<usize> {
        let buffer = self.buffers.next()?;
        let (offset, length) =
            (usize::try_from(buffer.offset()).ok()?, usize::try_from(buffer.length()).ok()?);
        let end = offset.checked_add(length)?;
        if offset < self.end || offset % 8 != 0 || end > self.body {
            return None;
        }
        self.end = end;
        Some(length)
    }
}
