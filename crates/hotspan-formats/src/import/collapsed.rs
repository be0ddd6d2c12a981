//! Collapsed stacks: `outer;inner count` a line, as py-spy's raw format, flamegraph.pl, perf and torch's `export_stacks` write
//! them. They carry counts and no times; a count is taken as a sample 10 ms long, and that is said.

use std::io::{BufRead, BufReader, Read};

use hotspan_store::{Ident, Loss, TraceBuilder};

use super::stacks::{FrameTexts, GrowingStack, frame, sample};
use super::{Importer, Sniff};
use crate::error::ImportError;
use crate::export::frame_text::parse_frame;
use crate::input::Input;

/// The importer of collapsed stacks.
pub struct Collapsed;

/// What one count is taken for, in nanoseconds.
const PERIOD: i64 = 10_000_000;
/// A longer line is no stack.
const LONGEST_LINE: u64 = 1 << 20;

impl Importer for Collapsed {
    fn name(&self) -> &'static str {
        "collapsed stacks"
    }

    fn sniff(&self, head: &[u8]) -> Sniff {
        let text = String::from_utf8_lossy(head);
        // Only whole lines tell, unless there is but one.
        let whole = text.rfind('\n').map_or(&text[..], |end| &text[..end]);
        let lines: Vec<&str> = whole.lines().filter(|line| !line.trim().is_empty()).take(20).collect();
        let right = lines.iter().filter(|line| parse(line).is_some()).count();
        // JSON that lost its beginning has lines that end in numbers too.
        let json = text.trim_start().starts_with(['{', '[', '}', ']', '"', ',']) || text.contains("\":");
        if right * 2 > lines.len() && !json && !head.contains(&0) { Sniff::Maybe } else { Sniff::No }
    }

    fn read(&self, input: &mut Input<'_>, builder: &mut TraceBuilder) -> Result<(), ImportError> {
        let track = builder.track(Ident::Int(0), Ident::Int(0));
        let mut frames = FrameTexts::new();
        let mut reader = BufReader::new(&mut *input);
        let (mut line, mut offset, mut time) = (Vec::new(), 0_u64, 0_i64);
        loop {
            line.clear();
            let length = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
            if length == 0 {
                break;
            }
            match std::str::from_utf8(&line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => read_line(text, builder, &mut frames, track, &mut time, offset),
                Err(_) => {
                    builder.losses.add(Loss::InvalidUtf8, Some(offset));
                    let text = String::from_utf8_lossy(&line).into_owned();
                    read_line(&text, builder, &mut frames, track, &mut time, offset);
                }
            }
            offset += length;
        }
        if time > 0 {
            builder.losses.add(Loss::AssumedPeriod, None);
            builder.metadata.set("hotspan.sampling", &format!("{{\"period_ns\":{PERIOD}}}"));
        }
        builder.source.bytes = offset;
        Ok(())
    }
}

/// The stack and the count.
fn parse(line: &str) -> Option<(&str, i64)> {
    let (stack, count) = line.trim_end().rsplit_once(' ')?;
    let count = count.parse::<i64>().ok().filter(|&count| count >= 0)?;
    (!stack.trim().is_empty()).then_some((stack, count))
}

fn read_line(
    line: &str,
    builder: &mut TraceBuilder,
    frames: &mut FrameTexts,
    track: hotspan_store::TrackId,
    time: &mut i64,
    offset: u64,
) {
    let Some((text, count)) = parse(line) else {
        builder.losses.add(Loss::BadEvent, Some(offset));
        return;
    };
    let (Some(weight), Some(end)) =
        (count.checked_mul(PERIOD), count.checked_mul(PERIOD).and_then(|weight| time.checked_add(weight)))
    else {
        builder.losses.add(Loss::BadTimestamp, Some(offset));
        return;
    };
    let mut stack = GrowingStack::EMPTY;
    for text in text.split(';') {
        let id = match frames.get(text) {
            Some(&id) => id,
            None => {
                let (name, file, line) = parse_frame(text);
                let id = frame(builder, name, file, line);
                frames.insert(text.to_owned(), id);
                id
            }
        };
        stack = stack.with(builder, id);
    }
    sample(builder, track, stack.id, *time, weight);
    *time = end;
}
