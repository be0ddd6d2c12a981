//! Noise or change: whether the times of two sides differ by more than those of one program do from run to run.
//!
//! The steps of one recording are no independent samples: machines have fast and slow stretches, and a whole recording may fall into
//! one. So a recording counts as one observation of each row, and three things say how far two such observations may be apart:
//!
//! - *The steps that speak.* For the step as a whole that is the median step: a slow first one or a few that were held up do not move it,
//!   and it is the time that all other outputs give. A row is a part of it and is over sooner: it is judged by its quick steps, those that
//!   other programs held up least. Half of the difference has to be in the other kind of steps, too. Stretches of the recording have such
//!   steps of their own; what the better half of them differ by, beside what all rows do at the same time, is the row's own spread.
//! - *The machine.* What all rows have in common (a frequency, a busy neighbour) is estimated by their median, in which rows weigh by
//!   their time, and taken out, up to [`MOST_OF_MACHINE`].
//! - *The other rows.* What those of about the same size still differ by, robustly, is a floor below which no difference counts: small
//!   ones vary by more than large ones. In the sum of all, the step, it cancels out in part.
//!
//! Where recordings know for how long the program *queued for a processor*, a difference that could come from that alone is no claim, if
//! it is of the step or of a row longer than a time slice. Several recordings a side even queues out in part; then half of the difference
//! has to remain without that time, too.
//!
//! With several recordings of a side their own differences say most. Over all rows, Holm's method keeps the chance of a single false
//! claim at [`FALSE_CLAIMS`].

/// What a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More than noise.
    Change,
    /// Not more than runs of one program differ.
    Noise,
    /// Too few steps to tell.
    Unknown,
    /// Only in the second trace.
    New,
    /// Only in the first trace.
    Gone,
}

impl Verdict {
    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Noise => "noise",
            Self::Unknown => "unknown",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// How often a comparison of equal programs may claim anything: about any row, and about the step.
const FALSE_CLAIMS: f64 = 0.04;
const FALSE_CLAIMS_OF_STEP: f64 = 0.01;
/// More than this (a third) is not the machine.
const MOST_OF_MACHINE: f64 = 0.3;
/// Runs differ by this much at least, as a part of the time; where the machine's part is unknown, by more.
const FLOOR: f64 = 0.03;
const FLOOR_OF_MACHINE: f64 = 0.1;
/// Smaller differences are not worth a word: of the row, and of the step.
const LEAST_OF_ROW: f64 = 0.05;
const LEAST_OF_STEP: f64 = 0.005;
/// Rows that take less of the step than this say nothing about the machine.
const SMALLEST: f64 = 0.001;
/// The share of the step that a row speaks for at most where all are asked: one that changed is not to be the machine.
const MOST_OF_A_ROW: f64 = 0.1;
/// How many rows of about the same size say what a row may differ by.
const NEIGHBOURS: usize = 8;
const STRETCHES: usize = 6;
/// What takes less than this, a time slice, is over in some steps before another program gets the processor.
const UNDISTURBED: f64 = 4_000_000.0;
/// One step in so many is quick.
const QUICK: usize = 10;
/// How many observations the floor is worth beside those of a row.
const PRIOR: f64 = 6.0;
/// Rows move together: more than this many do not know more.
const MOST_ROWS: usize = 30;

/// The times of one row: for each recording those of its steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times<'a> {
    pub(super) before: &'a [Vec<i64>],
    pub(super) after: &'a [Vec<i64>],
}

/// A row in one recording, as logarithms: its level, and that of each stretch.
#[derive(Clone, Debug)]
struct Level {
    value: f64,
    stretches: Vec<f64>,
}

impl Level {
    /// What the better half of the stretches differ by, each without what all rows did in it.
    fn spread(&self, common: &[f64]) -> f64 {
        let common = common.iter().copied().chain(std::iter::repeat(0.0));
        let mut own: Vec<f64> = self.stretches.iter().zip(common).map(|(time, all)| time - all).collect();
        own.sort_by(f64::total_cmp);
        let better = &own[..(own.len() / 2 + 1).min(own.len())];
        better.last().zip(better.first()).map_or(0.0, |(last, first)| (last - first) / 2.0)
    }
}

/// A row in all recordings.
#[derive(Debug)]
struct Row {
    before: Vec<Level>,
    after: Vec<Level>,
}

impl Row {
    /// `None` where it does not occur in a recording.
    fn of(row: Times<'_>, steps: Steps) -> Option<Self> {
        let of = |side: &[Vec<i64>]| side.iter().map(|times| level(times, steps)).collect::<Option<Vec<_>>>();
        let row = Self { before: of(row.before)?, after: of(row.after)? };
        Some(row).filter(|row| !row.before.is_empty() && !row.after.is_empty())
    }

    fn recordings(&self) -> impl Iterator<Item = &Level> {
        self.before.iter().chain(&self.after)
    }

    fn difference(&self) -> f64 {
        mean(&self.after) - mean(&self.before)
    }

    /// Whether a difference is larger than queueing for a processor explains. Several recordings a side even queues out in part.
    fn is_beyond_queues(&self, difference: f64, queueing: Queueing) -> bool {
        let recordings = self.before.len().min(self.after.len()) as f64;
        difference.abs() > queueing.longest / recordings.sqrt()
            && (recordings < 2.0 || remains(difference, difference - queueing.apart))
    }

    /// The time of the slower side.
    fn time(&self) -> f64 {
        mean(&self.before).max(mean(&self.after)).exp()
    }

    /// The same as a logarithm.
    fn size(&self) -> f64 {
        self.time().max(1.0).ln()
    }
}

/// What was found about all rows.
#[derive(Debug)]
pub(super) struct Judged {
    /// For each row.
    pub(super) verdicts: Vec<Verdict>,
    /// For the step as a whole.
    pub(super) total: Verdict,
    /// By how much everything became slower, as a factor; 1 where that is unknown.
    pub(super) machine: f64,
}

fn median_time(times: &[i64]) -> f64 {
    median(times.iter().map(|&time| time as f64).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => values[count / 2 - 1].midpoint(values[count / 2]),
    }
}

/// The value below and above which there is half of the weight.
fn weighted_median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_by(|left, right| left.0.total_cmp(&right.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (value, weight) in &values {
        below += weight;
        if below >= half {
            return *value;
        }
    }
    0.0
}

/// The deviation of a normal distribution whose median deviation is 1.
const TO_DEVIATION: f64 = 1.4826;

/// The deviation that a normal distribution with this median deviation would have.
fn deviation(values: impl Iterator<Item = f64>) -> f64 {
    TO_DEVIATION * median(values.map(f64::abs).collect())
}

/// Whether half of a difference, at least, remains in another one.
fn remains(difference: f64, other: f64) -> bool {
    other * difference.signum() >= difference.abs() / 2.0
}

/// Which steps speak for a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// The median step.
    Typical,
    /// Those that other programs held up least.
    Quick,
}

fn level(times: &[i64], steps: Steps) -> Option<Level> {
    let count = STRETCHES.min(times.len()).max(1);
    // What does not occur in most steps has no median: then averages.
    let is_rare = median_time(times) <= 0.0;
    let mean_time = |times: &[i64]| average(times.iter().map(|&time| time as f64));
    let time_of = |times: &[i64]| match steps {
        _ if is_rare => mean_time(times),
        Steps::Typical => median_time(times),
        Steps::Quick => quick_time(times),
    };
    let value = time_of(times);
    if value <= 0.0 {
        return None;
    }
    let bounds = |place: usize| place * times.len() / count;
    let stretches = (0..count).map(|place| time_of(&times[bounds(place)..bounds(place + 1)]).max(1.0).ln());
    Some(Level { value: value.ln(), stretches: stretches.collect() })
}

/// The time that one step in [`QUICK`] does not exceed.
fn quick_time(times: &[i64]) -> f64 {
    let mut sorted = times.to_vec();
    let place = sorted.len() / QUICK;
    if place >= sorted.len() { 0.0 } else { *sorted.select_nth_unstable(place).1 as f64 }
}

fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1);
    values.sum::<f64>() / count as f64
}

fn mean(levels: &[Level]) -> f64 {
    average(levels.iter().map(|level| level.value))
}

/// By what factors queueing for a processor made recordings slower, as logarithms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queueing {
    /// The second side beside the first.
    apart: f64,
    /// The recording that queued for longest.
    longest: f64,
}

impl Queueing {
    pub(super) fn of(before: &[f64], after: &[f64]) -> Self {
        let mean = |side: &[f64]| average(side.iter().copied());
        let all = before.iter().chain(after);
        Self { apart: mean(after) - mean(before), longest: all.copied().fold(0.0, f64::max) }
    }
}

/// All rows of a comparison and the step that they are a part of, by the steps that speak for them.
struct View {
    rows: Vec<Option<Row>>,
    step: Row,
    noise: Noise,
}

impl View {
    fn of(rows: &[Times<'_>], step: Times<'_>, steps: Steps) -> Option<Self> {
        let step = Row::of(step, steps)?;
        let rows: Vec<Option<Row>> = rows.iter().map(|&row| Row::of(row, steps)).collect();
        let least = step.time() * SMALLEST;
        let large: Vec<&Row> = rows.iter().flatten().filter(|row| row.time() >= least).collect();
        let noise = Noise::of(&large, &step);
        Some(Self { rows, step, noise })
    }

    /// By how much a row differs beyond what all do.
    fn beyond(&self, row: &Row) -> f64 {
        row.difference() - self.noise.common
    }

    /// Whether a difference is worth a word.
    fn counts(&self, row: &Row) -> bool {
        let time = (mean(&row.after).exp() - (mean(&row.before) + self.noise.common).exp()).abs();
        self.beyond(row).abs() >= LEAST_OF_ROW && time >= self.step.time() * LEAST_OF_STEP
    }
}

/// Judges all rows of a comparison at once; `step` is the time that they are a part of.
pub(super) fn judge(rows: &[Times<'_>], step: Times<'_>, queueing: Queueing) -> Judged {
    let fewest = step.before.iter().chain(step.after).map(Vec::len).min().unwrap_or(0);
    let several = step.before.len().min(step.after.len()) >= 2;
    let views = View::of(rows, step, Steps::Typical).zip(View::of(rows, step, Steps::Quick));
    let Some((typical, quick)) = views.filter(|_| fewest >= 3 || several) else {
        return Judged {
            verdicts: vec![Verdict::Unknown; rows.len()],
            total: Verdict::Unknown,
            machine: 1.0,
        };
    };
    let mut chances: Vec<(f64, usize)> = Vec::new();
    for (place, (row, known)) in quick.rows.iter().zip(&typical.rows).enumerate() {
        let Some((row, known)) = row.as_ref().zip(known.as_ref()) else { continue };
        let (beyond, of_median) = (quick.beyond(row), typical.beyond(known));
        let is_undisturbed = row.time() < UNDISTURBED || known.is_beyond_queues(of_median, queueing);
        if quick.counts(row) && remains(beyond, of_median) && is_undisturbed {
            chances.push((quick.noise.chance(row, beyond, quick.noise.others(row)), place));
        }
    }
    let least = quick.step.time() * LEAST_OF_STEP;
    let tested = quick.rows.iter().flatten().filter(|row| row.time() >= least).count();
    let mut verdicts = vec![Verdict::Noise; rows.len()];
    chances.sort_by(|left, right| left.0.total_cmp(&right.0));
    for (rank, &(chance, place)) in chances.iter().enumerate() {
        // Holm: the least likely has to pass the hardest test, and the first that fails ends it.
        if chance > FALSE_CLAIMS / tested.saturating_sub(rank).max(1) as f64 {
            break;
        }
        verdicts[place] = Verdict::Change;
    }
    // The machine is part of the step: only several recordings of each side tell how much.
    let View { step, noise, .. } = &typical;
    let machine = if several { 0.0 } else { noise.common };
    let beyond = step.difference() - machine;
    let chance = if several {
        chance_of_step(step)
    } else {
        noise.chance(step, beyond, (noise.of_step, noise.apart.len().min(MOST_ROWS)))
    };
    let is_change = beyond.abs() >= LEAST_OF_ROW
        && chance <= FALSE_CLAIMS_OF_STEP
        && remains(beyond, quick.step.difference() - machine)
        && step.is_beyond_queues(beyond, queueing);
    let total = if is_change { Verdict::Change } else { Verdict::Noise };
    Judged { verdicts, total, machine: noise.common.exp() }
}

/// What differences are measured by.
#[derive(Debug)]
struct Noise {
    /// The part of each recording that is the machine's, those before the change first.
    machine: Vec<f64>,
    /// The same for each stretch of each recording.
    stretches: Vec<Vec<f64>>,
    /// How much slower the machine became from one side to the other.
    common: f64,
    /// Of each large row its size, and what it differs by besides; empty where they are too few to tell.
    apart: Vec<(f64, f64)>,
    /// What that makes of their sum, the step: what rows differ by on their own cancels out.
    of_step: f64,
}

impl Noise {
    fn of(large: &[&Row], step: &Row) -> Self {
        let recordings = step.before.len() + step.after.len();
        let knows_machine = large.len() >= 3;
        let whole = step.time().max(1.0);
        let weighed: Vec<(&Row, f64)> =
            large.iter().map(|&row| (row, row.time().min(whole * MOST_OF_A_ROW))).collect();
        let of_recording = |place: usize| {
            weighed.iter().filter_map(move |&(row, weight)| Some((row, row.recordings().nth(place)?, weight)))
        };
        let middle = |row: &Row| mean(&row.before).midpoint(mean(&row.after));
        let speeds: Vec<f64> = (0..recordings)
            .map(|place| of_recording(place).map(|(row, level, weight)| (level.value - middle(row), weight)))
            .map(|values| if knows_machine { weighted_median(values.collect()) } else { 0.0 })
            .collect();
        let stretches = (0..recordings)
            .map(|place| {
                (0..if knows_machine { STRETCHES } else { 0 })
                    .map(|stretch| {
                        let apart = |level: &Level| Some(level.stretches.get(stretch)? - level.value);
                        let values = of_recording(place);
                        weighted_median(
                            values.filter_map(|(_, level, weight)| Some((apart(level)?, weight))).collect(),
                        )
                    })
                    .collect()
            })
            .collect();
        let between = |speeds: &[f64]| {
            let (before, after) = speeds.split_at(step.before.len());
            average(after.iter().copied()) - average(before.iter().copied())
        };
        let raw = between(&speeds);
        let apart = |row: &Row| (row.difference() - raw).abs();
        let shares: f64 = large.iter().map(|row| row.time() / whole).map(|share| share * share).sum();
        let of_step = if knows_machine {
            let all = weighed.iter().map(|&(row, weight)| (apart(row), weight));
            (TO_DEVIATION * weighted_median(all.collect()) * shares.sqrt()).max(FLOOR)
        } else {
            FLOOR_OF_MACHINE
        };
        let limit = MOST_OF_MACHINE / 2.0;
        let machine: Vec<f64> = speeds.iter().map(|speed| speed.clamp(-limit, limit)).collect();
        let apart = large.iter().filter(|_| knows_machine).map(|row| (row.size(), apart(row))).collect();
        Self { common: between(&machine), machine, stretches, apart, of_step }
    }

    /// What rows of about the size of this one differ by besides, and how many say so: small ones vary by more than large ones.
    fn others(&self, row: &Row) -> (f64, usize) {
        if self.apart.is_empty() {
            return (FLOOR_OF_MACHINE, 0);
        }
        let size = row.size();
        let mut near: Vec<(f64, f64)> =
            self.apart.iter().map(|&(other, apart)| ((other - size).abs(), apart)).collect();
        near.sort_by(|left, right| left.0.total_cmp(&right.0));
        // The nearest is the row itself.
        let apart: Vec<f64> = near[1..].iter().map(|&(_, apart)| apart).collect();
        let known = |count: usize| {
            let rows = &apart[..count.min(apart.len())];
            (deviation(rows.iter().copied()).max(FLOOR), rows.len().min(MOST_ROWS))
        };
        let (alike, all) = (known(NEIGHBOURS), known(usize::MAX));
        if alike.0 < all.0 { alike } else { all }
    }

    /// How likely runs of one program differ so much in a row, or in the step, where other rows differ by `others`.
    fn chance(&self, row: &Row, beyond: f64, (others, rows): (f64, usize)) -> f64 {
        let freedom = self.machine.len().saturating_sub(2) as f64;
        if freedom < 1.0 {
            let spreads = row.recordings().zip(&self.stretches).map(|(level, common)| level.spread(common));
            let spreads: f64 = spreads.map(|spread| spread * spread).sum();
            let stretches: usize = row.recordings().map(|level| level.stretches.len()).sum();
            let score = beyond.abs() / (spreads + others * others).sqrt();
            return tail(score, stretches.saturating_sub(2) + rows / 2);
        }
        let (before, after) = self.machine.split_at(row.before.len());
        let own = squares(&row.before, before) + squares(&row.after, after);
        // A few recordings may agree by chance: the other rows hold against it.
        let counts = 1.0 / row.before.len() as f64 + 1.0 / row.after.len() as f64;
        let prior = (others * others / counts).max(FLOOR * FLOOR / 2.0);
        let variance = (own + PRIOR * prior) / (freedom + PRIOR);
        tail(beyond.abs() / (variance * counts).sqrt(), (freedom + PRIOR) as usize)
    }
}

/// How likely several recordings of one program differ so much as a whole.
fn chance_of_step(step: &Row) -> f64 {
    let freedom = (step.before.len() + step.after.len()).saturating_sub(2).max(1);
    let still = vec![0.0; step.before.len().max(step.after.len())];
    let own = squares(&step.before, &still) + squares(&step.after, &still);
    let counts = 1.0 / step.before.len() as f64 + 1.0 / step.after.len() as f64;
    let variance = (own / freedom as f64).max(FLOOR * FLOOR);
    tail(step.difference().abs() / (variance * counts).sqrt(), freedom)
}

/// How far the recordings of a side are from their mean, squared and added up, without the machine's part.
fn squares(levels: &[Level], machine: &[f64]) -> f64 {
    let values: Vec<f64> = levels.iter().zip(machine).map(|(level, speed)| level.value - speed).collect();
    let mean = average(values.iter().copied());
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// The chance that Student's t with so many degrees of freedom (an even number: the next lower one) is as far from 0.
fn tail(score: f64, freedom: usize) -> f64 {
    let freedom = (freedom / 2 * 2).max(2);
    let angle = (score / (freedom as f64).sqrt()).atan();
    let square = angle.cos() * angle.cos();
    let (mut term, mut sum) = (1.0, 1.0);
    for place in 1..freedom / 2 {
        term *= square * (2 * place - 1) as f64 / (2 * place) as f64;
        sum += term;
    }
    (1.0 - angle.sin() * sum).max(0.0)
}

#[cfg(test)]
mod tests;
