//! Samples as a flame chart: neighbouring samples with the same outer frames are one call.

use hotspan_analyze::Model;
use hotspan_store::SampleRow;

use super::lanes::{DEEPEST, Lanes, NO_SPAN, Piece};

/// The sampled calls of each thread; `category` is their kind.
pub(super) fn sampled_lanes(model: &Model, category: u16) -> Vec<Lanes> {
    let mut by_track: Vec<Vec<SampleRow>> = vec![Vec::new(); model.tracks().len()];
    for sample in model.profile().samples.rows() {
        by_track[sample.track.index()].push(sample);
    }
    let of_track = |mut samples: Vec<SampleRow>| {
        samples.sort_by_key(|sample| sample.time);
        lanes(model, &samples, category)
    };
    by_track.into_iter().map(of_track).collect()
}

fn lanes(model: &Model, samples: &[SampleRow], category: u16) -> Lanes {
    let profile = model.profile();
    let mut lanes = Lanes::default();
    let mut open: Vec<Piece> = Vec::new();
    let close = |open: &mut Vec<Piece>, keep: usize, lanes: &mut Lanes| {
        while open.len() > keep {
            if let Some(piece) = open.pop() {
                lanes.add(open.len(), &piece);
            }
        }
    };
    let mut before = i64::MIN;
    for sample in samples {
        let begin = sample.time.0.max(before);
        let end = begin.saturating_add(sample.weight.0.max(0));
        let mut frames: Vec<_> = profile.stacks.frames(sample.stack).collect();
        frames.reverse();
        lanes.hidden += frames.len().saturating_sub(DEEPEST) as u64;
        frames.truncate(DEEPEST);
        let name = |frame| profile.frames.row(frame).name;
        // After a pause longer than the sample itself nothing is known to go on.
        let goes_on = begin.saturating_sub(before) <= sample.weight.0;
        let same = if goes_on {
            open.iter().zip(&frames).take_while(|(piece, frame)| piece.name == name(**frame)).count()
        } else {
            0
        };
        close(&mut open, same, &mut lanes);
        for piece in &mut open {
            piece.end = end;
        }
        for frame in &frames[same..] {
            open.push(Piece { begin, end, name: name(*frame), category, span: NO_SPAN });
        }
        before = end;
    }
    close(&mut open, 0, &mut lanes);
    lanes.finish();
    lanes
}
