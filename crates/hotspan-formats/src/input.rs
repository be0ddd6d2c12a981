//! Input: a file or stream, uncompressed on the way, with its first bytes visible to the importers.
//!
//! Decompression runs on a thread of its own, a few blocks ahead of the importer. A compressed stream that breaks off
//! is no error here: what came before is handed on, and [`Input::broke`] says how it ended.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::error::ImportError;
use crate::memory_limit::MemoryWatch;

/// How much of the content importers see before they say whether it is theirs.
const HEAD: usize = 64 << 10;
const BLOCK: usize = 512 << 10;
const BLOCKS_AHEAD: usize = 3;
const STRIDE: usize = 16 << 10;
/// How much content is read between two looks at the memory that it takes.
const BETWEEN_LOOKS: u64 = 1 << 20;

/// Told how far reading has come; may ask to stop.
pub trait Progress {
    /// `done` of `total` bytes of the file as stored have been read; `total` is `None` for streams.
    fn advance(&mut self, done: u64, total: Option<u64>) -> ControlFlow<()>;
}

impl Progress for () {
    fn advance(&mut self, _done: u64, _total: Option<u64>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Content to import.
pub struct Input<'p> {
    head: Vec<u8>,
    head_at: usize,
    reader: Box<dyn Read>,
    /// The same file, where there is one and it is not compressed: it can be read once more.
    file: Option<File>,
    compression: Option<&'static str>,
    name: Option<String>,
    stored: Arc<AtomicU64>,
    total: Option<u64>,
    progress: &'p mut dyn Progress,
    broke: Option<String>,
    cancelled: bool,
    memory: MemoryWatch,
    /// Bytes of content that were read, and at how many the memory is looked at next.
    read: u64,
    next_look: u64,
    /// Why reading was ended, if it was for its memory.
    too_much: Option<ImportError>,
}

impl<'p> Input<'p> {
    /// Opens a file.
    ///
    /// # Errors
    /// When the system refuses, or the content breaks before its first byte.
    pub fn open(path: &Path, progress: &'p mut dyn Progress) -> Result<Self, ImportError> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder").into());
        }
        let total = metadata.is_file().then_some(metadata.len());
        let again = if total.is_some() { file.try_clone().ok() } else { None };
        let input = Self::new(file, Some(path.display().to_string()), total, progress)?;
        Ok(Self { file: again.filter(|_| input.compression.is_none()), ..input })
    }

    /// The length of the content, where it can be read once more by [`Self::rewind`].
    pub(crate) fn rewindable(&self) -> Option<u64> {
        self.total.filter(|_| self.file.is_some())
    }

    /// Begins again with the first byte.
    pub(crate) fn rewind(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Err(io::ErrorKind::NotSeekable.into()) };
        let mut stream = file.try_clone()?;
        let after_head = self.head.len() as u64;
        stream.seek(SeekFrom::Start(after_head))?;
        self.stored.store(after_head, Ordering::Relaxed);
        let counted = Counted { stream, count: Arc::clone(&self.stored) };
        self.reader = Box::new(BufReader::with_capacity(64 << 10, counted));
        (self.head_at, self.read, self.next_look) = (0, after_head, after_head + BETWEEN_LOOKS);
        Ok(())
    }

    /// Reads from any stream.
    ///
    /// # Errors
    /// When the stream fails, or the content breaks before its first byte.
    pub fn new(
        stream: impl Read + Send + 'static,
        name: Option<String>,
        total: Option<u64>,
        progress: &'p mut dyn Progress,
    ) -> Result<Self, ImportError> {
        let stored = Arc::new(AtomicU64::new(0));
        let mut counted = BufReader::with_capacity(64 << 10, Counted { stream, count: Arc::clone(&stored) });
        let mut magic = [0; 4];
        let magic_length = read_full(&mut counted, &mut magic)?;
        let magic = &magic[..magic_length];
        let whole = io::Cursor::new(magic.to_vec()).chain(counted);
        let (compression, reader): (_, Box<dyn Read>) = if magic.starts_with(&[0x1f, 0x8b]) {
            (Some("gzip"), Box::new(read_ahead(flate2::read::MultiGzDecoder::new(whole), total.is_some())?))
        } else if magic == [0x28, 0xb5, 0x2f, 0xfd] {
            (Some("zstd"), Box::new(read_ahead(zstd::Decoder::new(whole)?, total.is_some())?))
        } else {
            (None, Box::new(whole))
        };
        let mut input = Self {
            head: Vec::new(),
            head_at: 0,
            reader,
            file: None,
            compression,
            name,
            stored,
            total,
            progress,
            broke: None,
            cancelled: false,
            memory: MemoryWatch::new(),
            read: 0,
            next_look: BETWEEN_LOOKS,
            too_much: None,
        };
        let mut head = vec![0; HEAD];
        let mut length = 0;
        while length < HEAD {
            match input.read_stream(&mut head[length..])? {
                0 => break,
                more => length += more,
            }
        }
        head.truncate(length);
        if let (0, Some(reason)) = (length, &input.broke) {
            return Err(ImportError::Damaged { reason: reason.clone(), offset: 0 });
        }
        input.head = head;
        Ok(input)
    }

    /// The first bytes of the content, uncompressed.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The compression around the content.
    #[must_use]
    pub fn compression(&self) -> Option<&'static str> {
        self.compression
    }

    /// The path, where there is one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Why the content ended early, if it did.
    #[must_use]
    pub fn broke(&self) -> Option<&str> {
        self.broke.as_deref()
    }

    /// Whether the caller asked to stop; reading then ends as if the content did.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancelled
    }

    /// What the memory of the process was before, for what goes on after reading.
    pub(crate) fn memory(&self) -> MemoryWatch {
        self.memory
    }

    /// Why reading was ended for the memory that it takes; the content then ends there.
    pub(crate) fn too_much_memory(&mut self) -> Option<ImportError> {
        self.too_much.take()
    }

    fn read_stream(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.broke.is_some() || self.cancelled || self.too_much.is_some() {
            return Ok(0);
        }
        if self.read >= self.next_look {
            self.next_look = self.read + BETWEEN_LOOKS;
            self.too_much = self.memory.check().err();
            if self.too_much.is_some() {
                return Ok(0);
            }
        }
        if self.progress.advance(self.stored.load(Ordering::Relaxed), self.total).is_break() {
            self.cancelled = true;
            return Ok(0);
        }
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.compression.is_some() && is_content_error(&error) => {
                    self.broke = Some(format!(
                        "the {} data breaks off: {error}",
                        self.compression.unwrap_or_default()
                    ));
                    return Ok(0);
                }
                other => {
                    self.read += *other.as_ref().unwrap_or(&0) as u64;
                    return other;
                }
            }
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head_at < self.head.len() {
            let length = buffer.len().min(self.head.len() - self.head_at);
            buffer[..length].copy_from_slice(&self.head[self.head_at..self.head_at + length]);
            self.head_at += length;
            return Ok(length);
        }
        self.read_stream(buffer)
    }
}

/// Errors that come from the compressed bytes rather than from the disk.
fn is_content_error(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

struct Counted<R> {
    stream: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        self.count.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// The reading end of a thread that decompresses ahead.
struct ReadAhead {
    /// `None` once nobody listens any more.
    blocks: Option<Receiver<io::Result<Vec<u8>>>>,
    /// The thread, where it is waited for in the end.
    thread: Option<JoinHandle<()>>,
    used: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

/// `ends` says that reads of the source return, as those of a file do: then the thread is waited for in the end. One that
/// reads from a pipe may wait for ever.
fn read_ahead(mut source: impl Read + Send + 'static, ends: bool) -> io::Result<ReadAhead> {
    let (send, blocks) = sync_channel(BLOCKS_AHEAD);
    let (used, recycled) = sync_channel::<Vec<u8>>(BLOCKS_AHEAD + 1);
    // The thread ends with its source, or when nobody listens any more.
    let thread = thread::Builder::new().name("hotspan-read".into()).spawn(move || {
        loop {
            let mut block = recycled.try_recv().unwrap_or_default();
            block.resize(BLOCK, 0);
            let (length, failed) = fill_block(&mut source, &mut block);
            block.truncate(length);
            let ended = length < BLOCK && failed.is_none();
            if length > 0 && send.send(Ok(block)).is_err() {
                return;
            }
            if let Some(error) = failed {
                let _ = send.send(Err(error));
                return;
            }
            if ended {
                return;
            }
        }
    })?;
    Ok(ReadAhead { blocks: Some(blocks), thread: ends.then_some(thread), used, block: Vec::new(), at: 0 })
}

/// Reads until the block is full, the source ends or it fails; what was read before a failure is kept.
fn fill_block(source: &mut impl Read, block: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut length = 0;
    while length < block.len() {
        // A decoder that meets damage drops what it decoded in the same call: short calls lose little.
        let end = block.len().min(length + STRIDE);
        match source.read(&mut block[length..end]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (length, Some(error)),
        }
    }
    (length, None)
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            let Some(Ok(next)) = self.blocks.as_ref().map(Receiver::recv) else { return Ok(0) };
            let used = std::mem::replace(&mut self.block, next?);
            let _ = self.used.try_send(used);
            self.at = 0;
        }
        let length = buffer.len().min(self.block.len() - self.at);
        buffer[..length].copy_from_slice(&self.block[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // Nobody listens any more: the thread ends at its next block.
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
