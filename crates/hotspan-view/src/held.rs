//! The single spans of a page to share: all of a small trace, else those that advice points at and what their details lead to.
//!
//! Details repeat each other: every span names all around it. Compressed they take a twentieth.

use std::collections::BTreeSet;
use std::io::{self, Write};

use base64::prelude::{BASE64_STANDARD, Engine};
use flate2::Compression;
use flate2::write::GzEncoder;
use hotspan_store::SpanId;
use serde::Serialize;

use crate::api::{AdviceData, HeldSpans, TimelineInfo};
use crate::details::{Drawn, details, idle_time, sampled_call};

/// A small trace has at most so many spans and sampled calls, and samples.
const MOST_PIECES: u64 = 10_000;
const MOST_SAMPLES: usize = 20_000;
/// What the details of all spans take at most, as text and compressed.
const MOST_TEXT: usize = 32_000_000;
const MOST_BYTES: usize = 3_000_000;
/// Spans of a large trace: those of advice come first.
const MOST_SPANS: usize = 2_000;

/// Answers by question, as they grow.
struct Answers {
    gzip: GzEncoder<Vec<u8>>,
    written: usize,
}

impl Answers {
    fn new() -> io::Result<Self> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(b"{")?;
        Ok(Self { gzip, written: 1 })
    }

    /// Questions have nothing that JSON would escape.
    fn add(&mut self, question: &str, answer: &impl Serialize) -> io::Result<()> {
        let comma = if self.written > 1 { "," } else { "" };
        let text = format!("{comma}\"{question}\":{}", serde_json::to_string(answer)?);
        self.written += text.len();
        self.gzip.write_all(text.as_bytes())
    }

    fn finish(mut self) -> io::Result<Vec<u8>> {
        self.gzip.write_all(b"}")?;
        self.gzip.finish()
    }
}

/// The spans that a page has of a trace. `is_exact` says whether its picture shows every span by itself.
pub(crate) fn held_spans(
    drawn: Drawn<'_>,
    info: &TimelineInfo,
    is_exact: bool,
    advice: &AdviceData,
) -> HeldSpans {
    let pieces: u64 =
        info.tracks.iter().filter(|track| track.kind != "counter").map(|track| track.spans).sum();
    let is_small = pieces <= MOST_PIECES && drawn.model.profile().samples.len() <= MOST_SAMPLES;
    let all = (is_exact && is_small).then(|| every_span(drawn, info).ok().flatten()).flatten();
    let encoded = |bytes: Vec<u8>| BASE64_STANDARD.encode(bytes);
    match all {
        Some(bytes) => HeldSpans { all: true, spans: Vec::new(), data: encoded(bytes) },
        None => {
            let (spans, bytes) = some_spans(drawn, advice).unwrap_or_default();
            HeldSpans { all: false, spans, data: encoded(bytes) }
        }
    }
}

/// Details of everything that is drawn; `None` where that is too much.
fn every_span(drawn: Drawn<'_>, info: &TimelineInfo) -> io::Result<Option<Vec<u8>>> {
    let mut answers = Answers::new()?;
    for track in info.tracks.iter().filter(|track| track.kind != "counter") {
        let lanes = drawn.timeline.any_lanes(drawn.model, track.id).map_or(&[][..], |known| &known.lanes);
        for (depth, lane) in lanes.iter().enumerate() {
            for row in 0..lane.names().len() {
                let piece = lane.piece(row);
                if track.kind == "spans" {
                    answers.add(&format!("span/{}", piece.span), &details(drawn, SpanId(piece.span)))?;
                } else {
                    let (depth, at) = (depth as u32, piece.begin);
                    let call =
                        idle_time(drawn, track.id, at).or_else(|| sampled_call(drawn, track.id, depth, at));
                    answers.add(&format!("call?track={}&depth={depth}&at={at}", track.id), &call)?;
                }
            }
            if answers.written > MOST_TEXT {
                return Ok(None);
            }
        }
    }
    Ok(Some(answers.finish()?).filter(|bytes| bytes.len() <= MOST_BYTES))
}

/// Details of the spans that advice names, and of those that these lead to.
fn some_spans(drawn: Drawn<'_>, advice: &AdviceData) -> io::Result<(Vec<u32>, Vec<u8>)> {
    let advised = advised_spans(advice);
    let mut wanted: BTreeSet<u32> = advised.iter().copied().take(MOST_SPANS).collect();
    for &span in &advised {
        let Some(known) = details(drawn, SpanId(span)) else { continue };
        let around = known.stack.iter().filter_map(|caller| u32::try_from(caller.span).ok());
        wanted.extend(known.linked.iter().map(|link| link.span).chain(around));
        if wanted.len() > MOST_SPANS {
            break;
        }
    }
    let mut answers = Answers::new()?;
    let mut spans = Vec::new();
    for span in wanted {
        let Some(known) = details(drawn, SpanId(span)) else { continue };
        answers.add(&format!("span/{span}"), &known)?;
        spans.push(span);
    }
    Ok((spans, answers.finish()?))
}

/// The spans in the evidence of findings, in the order of the findings.
fn advised_spans(advice: &AdviceData) -> Vec<u32> {
    let mut spans = Vec::new();
    for finding in &advice.findings {
        let column = finding.evidence.columns.iter().position(|column| column.key == "span");
        let Some(column) = column else { continue };
        let named = finding.evidence.rows.iter().filter_map(|row| row.get(column)?.as_u64());
        spans.extend(named.filter_map(|span| u32::try_from(span).ok()));
    }
    spans
}
