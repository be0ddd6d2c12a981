//! Writing a `.hotspan` file: a frozen trace at once, or a recording chunk by chunk as it grows.

use std::fmt;
use std::io::{self, BufWriter, Write};

use arrow_ipc::MetadataVersion;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};

use crate::builder::TraceBuilder;
use crate::content::Content;
use crate::file::chunk::Chunk;
use crate::file::error::FileError;
use crate::file::schema::SCHEMA;
use crate::ids::StringId;
use crate::losses::Losses;
use crate::metadata::{Clock, Source};
use crate::profile::Profile;
use crate::trace::{Process, Trace, Track};

/// Rows of one table in one chunk.
const CHUNK_ROWS: usize = 65_536;
/// Bytes of strings in one chunk.
const CHUNK_STRING_BYTES: usize = 64 << 20;
/// Values of args in one chunk, all keys together.
const CHUNK_VALUES: usize = 4 << 20;

/// Writes a frozen trace as a whole `.hotspan` file.
///
/// # Errors
/// When writing fails, or a single string is too large for a chunk.
pub fn write_trace<W: Write>(trace: &Trace, output: W) -> Result<(), FileError> {
    let mut writer = Writer::create(output)?;
    writer.write(&Content::of_trace(trace), true)?;
    writer.close().map(drop)
}

/// Writes a recording as it grows: [`Self::append`] now and then, [`Self::finish`] at the end.
///
/// Whatever was appended is in the hands of the operating system when `append` returns, so it survives the death of
/// the process. One writer belongs to one builder: ids and row numbers go on from chunk to chunk.
pub struct Writer<W: Write> {
    stream: StreamWriter<BufWriter<W>>,
    written: Written,
    given_up: bool,
}

/// What the file already says.
#[derive(Debug)]
struct Written {
    strings: usize,
    categories: usize,
    processes: Vec<Process>,
    tracks: Vec<Track>,
    metadata: Vec<(String, String)>,
    source: Source,
    arg_schemas: usize,
    clock: Clock,
    losses: Losses,
    /// Rows of args per layout.
    arg_rows: Vec<u32>,
}

/// How much of the rows of a [`Content`] is written.
#[derive(Default)]
struct Progress {
    layout: usize,
    arg_row: usize,
    frame: usize,
    stack: usize,
    event_row: usize,
}

impl<W: Write> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream: _, written, given_up } = self;
        f.debug_struct("Writer").field("written", written).field("given_up", given_up).finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When writing fails.
    pub fn create(output: W) -> Result<Self, FileError> {
        let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
        let mut stream = StreamWriter::try_new_with_options(BufWriter::new(output), &SCHEMA, options)?;
        stream.flush()?;
        // The empty string and the empty list of keys are there from the beginning.
        let written = Written {
            strings: 1,
            arg_schemas: 1,
            categories: 0,
            processes: Vec::new(),
            tracks: Vec::new(),
            metadata: Vec::new(),
            source: Source::default(),
            clock: Clock::default(),
            losses: Losses::default(),
            arg_rows: Vec::new(),
        };
        Ok(Self { stream, written, given_up: false })
    }

    /// Writes everything that is new in the builder and takes its events and args out of it. Ids stay valid, and
    /// nothing is written when nothing is new.
    ///
    /// # Errors
    /// When writing fails; the file then ends with the chunk before, and the writer gives up.
    pub fn append(&mut self, builder: &mut TraceBuilder) -> Result<(), FileError> {
        self.append_rows(builder, false)
    }

    /// Writes what is left in the builder and marks the file as complete.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self, builder: &mut TraceBuilder) -> Result<W, FileError> {
        self.append_rows(builder, true)?;
        self.close()
    }

    fn append_rows(&mut self, builder: &mut TraceBuilder, complete: bool) -> Result<(), FileError> {
        for (index, layout) in builder.args.arg_schemas.iter().enumerate() {
            // Rows of events without args are never looked at, so they may run out.
            if layout.next == u32::MAX && !layout.keys.is_empty() {
                return Err(FileError::Full);
            }
            if layout.first != self.written.arg_rows.get(index).copied().unwrap_or(0) {
                return Err(FileError::OtherBuilder);
            }
        }
        let rows = builder.take_rows();
        self.write(&Content::of_rows(builder, &rows), complete)
    }

    /// Writes all of it, in as many chunks as needed.
    fn write(&mut self, content: &Content<'_>, complete: bool) -> Result<(), FileError> {
        if self.given_up {
            return Err(FileError::GivenUp);
        }
        // Until all of it is written, the end of the file is unknown.
        self.given_up = true;
        let mut progress = Progress::default();
        loop {
            let mut chunk = Chunk::default();
            let last = self.written.fill(content, &mut progress, &mut chunk);
            let news = !chunk.is_empty()
                || content.clock != self.written.clock
                || *content.losses != self.written.losses;
            if news || (complete && last) {
                let batch = chunk.encode(content.clock, content.losses, complete && last)?;
                self.stream.write(&batch)?;
                self.stream.flush()?;
                self.written.clock = content.clock;
                self.written.losses = content.losses.clone();
            }
            if last {
                self.given_up = false;
                return Ok(());
            }
        }
    }

    fn close(self) -> Result<W, FileError> {
        let buffer = self.stream.into_inner()?;
        Ok(buffer.into_inner().map_err(io::IntoInnerError::into_error)?)
    }
}

impl Written {
    /// Puts the next rows into a chunk, in the order in which they refer to each other: strings, names and layouts,
    /// args, frames, stacks, events. Says whether nothing is left.
    fn fill<'a>(&mut self, content: &Content<'a>, progress: &mut Progress, chunk: &mut Chunk<'a>) -> bool {
        self.fill_strings(content, chunk)
            && {
                self.fill_names(content, chunk);
                self.fill_args(content, progress, chunk)
            }
            && fill_stacks(content.profile, progress, chunk)
            && fill_events(content, progress, chunk)
    }

    fn fill_strings<'a>(&mut self, content: &Content<'a>, chunk: &mut Chunk<'a>) -> bool {
        let mut bytes = 0;
        while self.strings < content.strings.len() {
            let text = content.strings.get(StringId::at(self.strings));
            bytes += text.len();
            // A string that is larger than the limit goes alone.
            if !chunk.strings.is_empty() && (bytes > CHUNK_STRING_BYTES || chunk.strings.len() == CHUNK_ROWS)
            {
                return false;
            }
            chunk.strings.push(text);
            self.strings += 1;
        }
        true
    }

    fn fill_names<'a>(&mut self, content: &Content<'a>, chunk: &mut Chunk<'a>) {
        chunk.categories = content.categories[self.categories..].iter().map(|(name, _)| name.0).collect();
        self.categories = content.categories.len();
        chunk.processes = changed(&mut self.processes, content.processes);
        chunk.tracks = changed(&mut self.tracks, content.tracks);
        for (index, (key, value)) in content.metadata.iter().enumerate() {
            match self.metadata.get_mut(index) {
                Some((_, known)) if known == value => continue,
                Some((_, known)) => value.clone_into(known),
                None => self.metadata.push((key.to_owned(), value.to_owned())),
            }
            chunk.metadata.push((key, value));
        }
        if *content.source != self.source {
            chunk.source = source_pairs(content.source);
            self.source = content.source.clone();
        }
        let new_layouts = content.arg_schemas.iter().enumerate().skip(self.arg_schemas);
        let keys =
            new_layouts.flat_map(|(index, layout)| layout.keys.iter().map(move |&key| (index as u16, key)));
        chunk.layout_keys = keys.collect();
        self.arg_schemas = content.arg_schemas.len();
    }

    fn fill_args<'a>(
        &mut self,
        content: &Content<'a>,
        progress: &mut Progress,
        chunk: &mut Chunk<'a>,
    ) -> bool {
        self.arg_rows.resize(content.arg_schemas.len(), 0);
        let mut budget = CHUNK_VALUES;
        while let Some(layout) = content.arg_schemas.get(progress.layout) {
            let rows = layout.rows as usize;
            // A layout without keys costs nothing, so all its rows go at once.
            let keys = layout.keys.len();
            let room = CHUNK_VALUES.checked_div(keys).map_or(rows, |rows| rows.clamp(1, CHUNK_ROWS));
            let to = rows.min(progress.arg_row + room);
            let cost = (to - progress.arg_row) * keys;
            if cost > budget && budget < CHUNK_VALUES {
                return false;
            }
            budget = budget.saturating_sub(cost);
            if to > progress.arg_row {
                let number = progress.layout as u16;
                let count = (to - progress.arg_row) as u32;
                chunk.arg_rows.push((number, count));
                chunk.args.push((number, layout, progress.arg_row..to));
                self.arg_rows[progress.layout] += count;
            }
            if to < rows {
                // A layout appears once per chunk.
                progress.arg_row = to;
                return false;
            }
            progress.layout += 1;
            progress.arg_row = 0;
        }
        true
    }
}

/// Frames first, since stacks refer to them; both are whole before the first sample.
fn fill_stacks(profile: &Profile, progress: &mut Progress, chunk: &mut Chunk<'_>) -> bool {
    let Profile { frames, stacks, .. } = profile;
    let [.., frame_columns, stack_columns, _, _, _] = &mut chunk.events;
    let to = progress.frame + CHUNK_ROWS;
    if frames.len() > progress.frame {
        *frame_columns = frames.slice_columns(progress.frame, to);
        progress.frame = to.min(frames.len());
    }
    if progress.frame < frames.len() {
        return false;
    }
    let to = progress.stack + CHUNK_ROWS;
    if stacks.len() > progress.stack {
        *stack_columns = stacks.slice_columns(progress.stack, to);
        progress.stack = to.min(stacks.len());
    }
    progress.stack == stacks.len()
}

fn fill_events(content: &Content<'_>, progress: &mut Progress, chunk: &mut Chunk<'_>) -> bool {
    let from = progress.event_row;
    let to = from + CHUNK_ROWS;
    progress.event_row = to;
    let Content { spans, instants, counters, flows, verbatim, .. } = content;
    let Profile { samples, calls, lines, .. } = content.profile;
    let [of_spans, of_instants, of_counters, of_flows, _, _, of_samples, of_calls, of_lines] =
        &mut chunk.events;
    let tables = [
        (spans.len(), spans.slice_columns(from, to), of_spans),
        (instants.len(), instants.slice_columns(from, to), of_instants),
        (counters.len(), counters.slice_columns(from, to), of_counters),
        (flows.len(), flows.slice_columns(from, to), of_flows),
        (samples.len(), samples.slice_columns(from, to), of_samples),
        (calls.len(), calls.slice_columns(from, to), of_calls),
        (lines.len(), lines.slice_columns(from, to), of_lines),
    ];
    let mut done = verbatim.len() <= to;
    for (length, columns, slot) in tables {
        done &= length <= to;
        if length > from {
            *slot = columns;
        }
    }
    chunk.verbatim = verbatim.iter().skip(from).take(CHUNK_ROWS).map(|id| id.0).collect();
    done
}

/// Rows that are new or different, with their numbers.
fn changed<T: Copy + PartialEq>(written: &mut Vec<T>, rows: &[T]) -> Vec<(usize, T)> {
    let news = rows.iter().enumerate().filter(|&(index, row)| written.get(index) != Some(row));
    let news: Vec<(usize, T)> = news.map(|(index, &row)| (index, row)).collect();
    if !news.is_empty() {
        written.clear();
        written.extend_from_slice(rows);
    }
    news
}

fn source_pairs(source: &Source) -> Vec<(&'static str, String)> {
    let mut pairs = vec![("format", source.format.clone()), ("bytes", source.bytes.to_string())];
    pairs.extend(source.compression.clone().map(|compression| ("compression", compression)));
    pairs.extend(source.path.clone().map(|path| ("path", path)));
    pairs
}
