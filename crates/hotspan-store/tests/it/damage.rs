//! Files that are cut off, changed or made up: never a panic, never different content without saying so.

use std::io::{Cursor, Read};

use hotspan_store::file::{self, FileError};
use hotspan_store::{Loss, Trace, TraceBuilder, first_difference};

use crate::sample::{describe, is_prefix, push_event, read, trace};

/// A disk that fails.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::ConnectionReset.into())
    }
}

/// A small file of two chunks.
fn small_file() -> (Trace, Vec<u8>) {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    (0..4).for_each(|number| push_event(&mut builder, number));
    writer.append(&mut builder).unwrap();
    (4..8).for_each(|number| push_event(&mut builder, number));
    describe(&mut builder);
    (trace(8), writer.finish(&mut builder).unwrap())
}

#[test]
fn cut_off_at_every_byte() {
    let (whole, bytes) = small_file();
    let mut readable = 0;
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Err(FileError::NotHotspan { offset, .. }) => assert!(offset as usize <= length),
            Err(error) => panic!("at {length}: {error}"),
            Ok(part) => {
                readable += 1;
                let complete = first_difference(&part, &whole).is_none();
                assert!(complete || part.losses().count(Loss::TruncatedFile) == 1, "at {length}");
                assert!(is_prefix(&part, &whole), "at {length}");
            }
        }
    }
    assert!(readable > 1_000);
}

#[test]
fn every_byte_changed() {
    let (whole, bytes) = small_file();
    let (mut harmless, mut noticed) = (0, 0);
    for change in [0x01, 0xFF] {
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= change;
            match read(&changed) {
                Err(_) => noticed += 1,
                Ok(part) if part.losses().counts() != whole.losses().counts() => {
                    noticed += 1;
                    assert!(is_prefix(&part, &whole), "byte {index} ^ {change}");
                }
                Ok(part) => {
                    harmless += 1;
                    assert_eq!(first_difference(&part, &whole), None, "byte {index} ^ {change}");
                    assert_eq!(part.source(), whole.source(), "byte {index} ^ {change}");
                }
            }
        }
    }
    assert!(noticed > bytes.len() / 2, "{harmless} harmless, {noticed} noticed");
}

#[test]
fn a_damaged_chunk_keeps_those_before_it() {
    let (whole, bytes) = small_file();
    let mut offsets = Vec::new();
    file::read(bytes.as_slice(), &mut |offset| {
        offsets.push(offset);
        true
    })
    .unwrap();
    let second = offsets[1];
    let mut changed = bytes.clone();
    // Eight bytes before the end of the chunk stands its checksum.
    changed[offsets[2] as usize - 8] ^= 1;
    let part = read(&changed).unwrap();
    assert_eq!(part.losses().counts()[0].loss, Loss::DamagedChunk);
    assert_eq!(part.losses().counts()[0].first_offset, Some(second));
    assert_eq!(part.spans().len() + part.instants().len() + part.counters().len() + part.flows().len(), 4);
    assert!(is_prefix(&part, &whole));
}

/// A file of so many chunks, and where each of them begins; the last place is the end of the last.
fn file_of_chunks(chunks: u32) -> (Vec<u8>, Vec<u64>) {
    let mut builder = TraceBuilder::new();
    let mut writer = file::Writer::create(Vec::new()).unwrap();
    for number in 1..chunks {
        push_event(&mut builder, number.into());
        writer.append(&mut builder).unwrap();
    }
    push_event(&mut builder, chunks.into());
    let bytes = writer.finish(&mut builder).unwrap();
    let mut offsets = Vec::new();
    file::read(bytes.as_slice(), &mut |offset| {
        offsets.push(offset);
        true
    })
    .unwrap();
    (bytes, offsets)
}

#[test]
fn chunks_that_were_decoded_ahead_of_a_damaged_one_are_left_out() {
    let (bytes, offsets) = file_of_chunks(12);
    let whole = read(&bytes).unwrap();
    for chunk in 0..12 {
        let mut changed = bytes.clone();
        changed[offsets[chunk + 1] as usize - 8] ^= 1;
        // The disk may fail behind it, where nobody needs to look any more.
        let broken = Cursor::new(&changed[..offsets[chunk + 1] as usize]).chain(Broken);
        for part in [read(&changed).unwrap(), file::read(broken, &mut |_| true).unwrap()] {
            let loss = &part.losses().counts()[0];
            assert_eq!((loss.loss, loss.first_offset), (Loss::DamagedChunk, Some(offsets[chunk])));
            assert!(is_prefix(&part, &whole), "{chunk}");
            let events =
                part.spans().len() + part.instants().len() + part.counters().len() + part.flows().len();
            assert_eq!(events, chunk);
        }
    }
}

#[test]
fn chunks_after_the_last_are_noted() {
    let (bytes, offsets) = file_of_chunks(6);
    let (end, first) = (offsets[6] as usize, offsets[0] as usize);
    let mut longer = bytes[..end].to_vec();
    longer.extend_from_slice(&bytes[first..end]);
    let trace = read(&longer).unwrap();
    let loss = &trace.losses().counts()[0];
    assert_eq!((loss.loss, loss.first_offset), (Loss::TrailingData, Some(end as u64)));
    assert_eq!(trace.spans().len(), read(&bytes).unwrap().spans().len());
}

#[test]
fn bytes_after_the_end_are_noted() {
    let (whole, mut bytes) = small_file();
    bytes.extend_from_slice(b"more");
    let read = read(&bytes).unwrap();
    assert_eq!(read.losses().count(Loss::TrailingData), 1);
    assert_eq!(first_difference(&read, &whole), None);
}

#[test]
fn absurd_lengths_do_not_allocate() {
    // A schema of four gigabytes, of which nothing follows.
    let header = [[0xFF; 4], u32::MAX.to_le_bytes()].concat();
    assert!(matches!(read(&header), Err(FileError::NotHotspan { offset: 0, .. })));
    // A chunk whose metadata, then whose body, is said to be enormous.
    let (_, bytes) = small_file();
    let start = 8 + u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    for length in [u32::MAX, i32::MAX as u32, 256 << 10] {
        let mut changed = bytes.clone();
        changed[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        assert!(read(&changed).unwrap().losses().serious().next().is_some());
    }
    let metadata = u32::from_le_bytes(bytes[start + 4..start + 8].try_into().unwrap()) as usize;
    let (head, rest) = bytes.split_at(start + 8 + metadata);
    let body = (rest.windows(4).position(|bytes| bytes == [0xFF; 4]).unwrap() as u64).to_le_bytes();
    let place = head[start..].windows(8).position(|bytes| bytes == body).unwrap() + start;
    for length in [u64::MAX, i64::MAX as u64, 1 << 30, (1 << 30) + 1] {
        let mut changed = bytes.clone();
        changed[place..place + 8].copy_from_slice(&length.to_le_bytes());
        assert!(read(&changed).unwrap().losses().serious().next().is_some());
    }
}

#[test]
fn other_files_are_refused_with_a_reason() {
    for other in [&b"{\"traceEvents\": []}"[..], b"", b"\x1F\x8B", b"\xFF\xFF\xFF\xFF\0\0\0\0", b"ARROW1\0\0"]
    {
        assert!(!file::is_hotspan(other));
        assert!(matches!(read(other), Err(FileError::NotHotspan { .. })));
    }
}

#[test]
fn versions() {
    let (whole, bytes) = small_file();
    let with_version = |version: &[u8; 3]| {
        // The length of the text stands before it; the version of the writer may hold it too.
        let place = bytes.windows(7).position(|bytes| bytes == b"\x03\0\0\x002.0").unwrap() + 4;
        let mut changed = bytes.clone();
        changed[place..place + 3].copy_from_slice(version);
        read(&changed)
    };
    assert_eq!(
        first_difference(&with_version(b"2.9").unwrap(), &whole),
        None,
        "a newer minor version is read"
    );
    let error = with_version(b"3.0").unwrap_err();
    assert_eq!(
        error.to_string(),
        "this file has .hotspan format 3.0, this hotspan reads formats 1.x to 2.x \
         (hint: install the hotspan version that wrote it, or export the trace there and import it here)"
    );
    assert!(matches!(with_version(b"x.y"), Err(FileError::NotHotspan { .. })));
}

#[test]
fn errors_of_the_input_are_reported() {
    let (_, bytes) = small_file();
    let input = Cursor::new(&bytes[..5_000]).chain(Broken);
    let error = file::read(input, &mut |_| true).unwrap_err();
    assert!(matches!(error, FileError::Read { offset: 5_000, .. }), "{error}");
}
