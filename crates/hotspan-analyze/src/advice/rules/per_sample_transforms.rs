//! `per-sample-transforms`: pictures become tensors one by one inside the DataLoader.

use hashbrown::HashSet;
use hotspan_store::{Duration, SpanId};

use crate::advice::context::{Context, part};
use crate::advice::finding::Tally;
use crate::model::source::users_line;
use crate::advice::{Confidence, Finding, Need, Rule};

pub(super) const RULE: Rule = Rule {
    id: "per-sample-transforms",
    title: "Samples are transformed one by one in the DataLoader",
    finds: "Inside the DataLoader: what `transforms.ToTensor()` and its kind do for each sample (from PIL or NumPy to a tensor, permuted, \
        copied, converted to float, divided), and samples whose stack is in PIL or torchvision.",
    costs: "A dozen small operators and a decode per sample, in Python, each epoch again. A batch of 64 pays 64 times what one operator on the \
        batch would cost.",
    fix: "Convert once: `TensorDataset(torch.tensor(images), torch.tensor(labels))`, or keep the data as uint8 tensors and convert and normalise \
        the whole batch, on the device. Where decoding is needed, decode to tensors (`torchvision.io`) and use `transforms.v2` on batches.",
    measured: "Batches of a DataLoader without workers (workers are processes of their own) whose loading took in at least 8 arrays (`aten::lift_fresh`) and ran 5 operators per array, or samples of the program in PIL or torchvision, called by a DataLoader; \
        reported from 5 % of the time on. The gain is nine tenths of the time in the DataLoader.",
    needs: &[Need::Operators],
    check,
};

fn check(context: &Context<'_>) -> Option<Finding> {
    let loading = context.inside("enumerate(DataLoader)#_SingleProcess");
    let mut tally = Tally::default();
    let mut batches: Vec<(SpanId, u64, u64)> = Vec::new();
    for span in context.outermost_calls() {
        let Some(batch) = loading.of(span) else { continue };
        if batches.last().is_none_or(|&(last, _, _)| last != batch) {
            batches.push((batch, 0, 0));
        }
        if let Some((_, arrays, calls)) = batches.last_mut() {
            *calls += 1;
            *arrays += u64::from(context.name(span) == "aten::lift_fresh");
        }
    }
    batches.retain(|&(_, arrays, calls)| arrays >= 8 && calls >= arrays * 5);
    let time: Duration = batches.iter().map(|&(batch, _, _)| context.time(batch)).sum();
    let arrays: u64 = batches.iter().map(|&(_, arrays, _)| arrays).sum();
    let known: HashSet<SpanId> = batches.iter().map(|&(batch, _, _)| batch).collect();
    for span in context.outermost_calls() {
        if loading.of(span).is_some_and(|batch| known.contains(&batch)) {
            tally.add(context, &format!("{} in the DataLoader", context.name(span)), span, context.time(span));
        }
    }
    let sampled = note_samples(context, &mut tally);
    let time = time.max(sampled);
    let percent = context.percent(time);
    if percent < 5.0 {
        return None;
    }
    let amount = if arrays > 0 {
        format!("{arrays} arrays in {} batches become tensors one by one", batches.len())
    } else {
        "pictures are decoded and transformed one by one".to_owned()
    };
    Some(Finding {
        message: format!("{percent:.0} % of {} goes to the DataLoader's transforms: {amount}", context.basis()),
        fix: "convert the data to tensors once, before the loop (`TensorDataset`), and transform whole batches".to_owned(),
        evidence: tally.evidence(context),
        gain: context.gain(part(time, 0.9), "nine tenths of the time in the DataLoader"),
        // Random transforms may have to see each sample by itself.
        confidence: Confidence::Medium,
    })
}

/// Adds the samples in picture libraries, and says how long they were.
fn note_samples(context: &Context<'_>, tally: &mut Tally) -> Duration {
    let (trace, profile) = (context.model, context.model.profile());
    let is_picture = |file: &str| {
        ["/PIL/", "torchvision/transforms", "_imaging"].iter().any(|part| file.contains(part)) || file.starts_with("PIL/")
    };
    let mut sum = Duration::ZERO;
    for (index, row) in profile.samples.rows().enumerate().filter(|(_, row)| context.is_in_range(row.time)) {
        let frames = profile.stacks.frames(row.stack).map(|frame| profile.frames.row(frame));
        let mut found = None;
        let mut in_loader = false;
        for frame in frames {
            let file = trace.str(frame.file);
            found = found.or_else(|| is_picture(file).then_some(frame));
            in_loader |= file.contains("torch/utils/data/");
        }
        // A server that decodes pictures has no batches to transform; workers are processes of their own.
        let is_programs = context.process().is_none_or(|process| trace.track(row.track).process == process);
        if let Some(frame) = found.filter(|_| in_loader && is_programs) {
            let label = format!("{} (samples)", trace.str(frame.name));
            tally.add_time(&label, row.time, row.weight, users_line(trace, index));
            sum += row.weight;
        }
    }
    sum
}
