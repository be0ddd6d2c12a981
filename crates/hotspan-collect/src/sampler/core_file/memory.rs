//! The memory in a core file: segments with their bytes, and notes that say which files were mapped where.

use std::io;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use super::super::error::SamplerError;
use super::super::maps::LoadedFile;
use crate::cpython::{Address, Memory, half_at, word_at};
use crate::mapped_file::map;
use crate::process_tree::ProcessNumber;

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const CORE: u16 = 4;
const LOAD: u32 = 1;
const NOTES: u32 = 4;
const SEGMENT_LENGTH: usize = 56;
/// So many segments are as many as the header can tell; then the first section does.
const TOO_MANY: u16 = 0xffff;

const STATUS: u32 = 1;
const PROGRAM: u32 = 3;
const FILES: u32 = 0x4649_4c45;
/// Where the process has its number and its command, in the note about the program.
const PROGRAM_PROCESS: usize = 24;
const PROGRAM_COMMAND: Range<usize> = 56..136;
/// Where a thread has its number, in the note about its status. The first is the one that died.
const STATUS_THREAD: usize = 32;

/// A stretch of memory and where its bytes are in a file.
#[derive(Debug)]
struct Stretch {
    memory: Range<u64>,
    offset: u64,
}

/// A file that was mapped. The kernel leaves out what nobody had changed.
#[derive(Debug)]
struct MappedPart {
    part: Stretch,
    path: String,
    content: Option<usize>,
}

/// The memory of a program that died.
#[derive(Debug)]
pub(super) struct CoreMemory {
    pub(super) process: ProcessNumber,
    pub(super) command: String,
    core: Mmap,
    segments: Vec<Stretch>,
    mapped: Vec<MappedPart>,
    files: Vec<Mmap>,
}

impl CoreMemory {
    pub(super) fn open(path: &Path) -> Result<Self, SamplerError> {
        let process = ProcessNumber(0);
        let refused = |source| SamplerError::System { process, source };
        let not_core = || {
            let message = format!("{} is not a core file of a 64-bit program", path.display());
            refused(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        std::fs::metadata(path).map_err(refused)?;
        let core = map(path).ok_or_else(not_core)?;
        if !core.starts_with(MAGIC) || half_at(&core, 16) as u16 != CORE {
            return Err(not_core());
        }
        let mut memory = Self {
            process,
            command: String::new(),
            core,
            segments: Vec::new(),
            mapped: Vec::new(),
            files: Vec::new(),
        };
        memory.read_segments();
        memory.segments.sort_by_key(|segment| segment.memory.start);
        memory.open_files();
        Ok(memory)
    }

    fn read_segments(&mut self) {
        let table = word_at(&self.core, 32);
        let mut count = u32::from(half_at(&self.core, 56) as u16);
        if count == u32::from(TOO_MANY) {
            let first_section = usize::try_from(word_at(&self.core, 40)).unwrap_or(usize::MAX);
            count = half_at(&self.core, first_section.saturating_add(44));
        }
        for index in 0..count as usize {
            let at = usize::try_from(table).ok().and_then(|table| table.checked_add(index * SEGMENT_LENGTH));
            let Some(header) = at.and_then(|at| self.core.get(at..at.checked_add(SEGMENT_LENGTH)?)) else {
                return;
            };
            let (kind, offset) = (half_at(header, 0), word_at(header, 8));
            let (start, length) = (word_at(header, 16), word_at(header, 32));
            match kind {
                LOAD => {
                    let memory = start..start.saturating_add(length);
                    self.segments.push(Stretch { memory, offset });
                }
                NOTES => {
                    let notes = bytes_at(&self.core, offset, length).to_vec();
                    self.read_notes(&notes);
                }
                _ => {}
            }
        }
    }

    fn read_notes(&mut self, mut notes: &[u8]) {
        while notes.len() >= 12 {
            let (name, length, kind) = (half_at(notes, 0), half_at(notes, 4), half_at(notes, 8));
            let begin = 12 + (name as usize).next_multiple_of(4);
            let end = begin.saturating_add(length as usize);
            let Some(content) = notes.get(begin..end) else { return };
            match kind {
                STATUS if self.process.0 == 0 => {
                    self.process = ProcessNumber(half_at(content, STATUS_THREAD));
                }
                PROGRAM => {
                    self.process = ProcessNumber(half_at(content, PROGRAM_PROCESS));
                    let command = content.get(PROGRAM_COMMAND).unwrap_or_default();
                    let end = command.iter().position(|&byte| byte == 0).unwrap_or(command.len());
                    self.command = String::from_utf8_lossy(&command[..end]).trim_end().to_owned();
                }
                FILES => self.read_files(content),
                _ => {}
            }
            notes = notes.get(end.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    /// Ranges of memory with offsets in files, and then the names of those.
    fn read_files(&mut self, note: &[u8]) {
        let (count, page) = (word_at(note, 0) as usize, word_at(note, 8));
        let Some(names) = count.checked_mul(24).and_then(|table| note.get(table.checked_add(16)?..)) else {
            return;
        };
        for (index, name) in names.split(|&byte| byte == 0).take(count).enumerate() {
            let at = 16 + index * 24;
            let offset = word_at(note, at + 16).saturating_mul(page);
            let memory = word_at(note, at)..word_at(note, at + 8);
            let path = String::from_utf8_lossy(name).into_owned();
            self.mapped.push(MappedPart { part: Stretch { memory, offset }, path, content: None });
        }
    }

    fn open_files(&mut self) {
        let mut known: Vec<(String, Option<usize>)> = Vec::new();
        for part in &mut self.mapped {
            let found = known.iter().find(|(path, _)| *path == part.path).map(|&(_, content)| content);
            part.content = found.unwrap_or_else(|| {
                let content = map(&part.path).map(|content| {
                    self.files.push(content);
                    self.files.len() - 1
                });
                known.push((part.path.clone(), content));
                content
            });
        }
    }

    /// The files that were mapped, each once.
    pub(super) fn loaded(&self) -> Vec<LoadedFile> {
        let mut loaded: Vec<LoadedFile> = Vec::new();
        for MappedPart { part, path, .. } in &self.mapped {
            if !loaded.iter().any(|file| file.path == *path) {
                let base = Address(part.memory.start.wrapping_sub(part.offset));
                loaded.push(LoadedFile { base, path: path.clone() });
            }
        }
        loaded
    }

    /// The bytes from an address on, as far as they lie together.
    fn from(&self, address: u64) -> Option<&[u8]> {
        let after = self.segments.partition_point(|segment| segment.memory.start <= address);
        let segment = after.checked_sub(1).map(|index| &self.segments[index]);
        if let Some(segment) = segment.filter(|segment| segment.memory.contains(&address)) {
            return Some(within(&self.core, segment, address));
        }
        let part = self.mapped.iter().find(|mapped| mapped.part.memory.contains(&address))?;
        Some(within(self.files.get(part.content?)?, &part.part, address))
    }
}

fn within<'a>(file: &'a [u8], stretch: &Stretch, address: u64) -> &'a [u8] {
    let skipped = address - stretch.memory.start;
    bytes_at(file, stretch.offset.saturating_add(skipped), stretch.memory.end - address)
}

/// Bytes of a file, as far as it has them.
fn bytes_at(file: &[u8], offset: u64, length: u64) -> &[u8] {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
    let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(file.len());
    &file[start..end]
}

impl Memory for CoreMemory {
    type Error = SamplerError;

    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), SamplerError> {
        let mut done = 0;
        while done < into.len() {
            let found = self.from(address.0.wrapping_add(done as u64)).unwrap_or_default();
            let length = found.len().min(into.len() - done);
            if length == 0 {
                return Err(self.malformed("a part of it"));
            }
            into[done..done + length].copy_from_slice(&found[..length]);
            done += length;
        }
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> SamplerError {
        SamplerError::NotInCore { process: self.process, what }
    }
}
