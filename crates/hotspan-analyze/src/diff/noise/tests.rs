//! Pairs of simulated runs: of one program, with stretches and disturbances as on a busy machine, and of one made slower.

use super::*;

/// Numbers that look random, and are the same every time.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

const ROWS: usize = 40;
const STEPS: usize = 60;

/// One recording: the machine has a speed of its own and slow stretches, and each row its own luck with memory. Other programs hold up
/// a part of the steps, each by a time slice.
fn recording(chance: &mut Chance, busy: f64, slower: Option<(usize, f64)>) -> (Vec<Vec<i64>>, Vec<i64>) {
    let speed = (0.08 * chance.normal()).exp();
    let luck: Vec<f64> = (0..ROWS).map(|_| (0.02 * chance.normal()).exp()).collect();
    let mut rows = vec![Vec::new(); ROWS];
    let (mut steps, mut stretch) = (Vec::new(), 0.0);
    for _ in 0..STEPS {
        stretch = 0.9 * stretch + 0.03 * chance.normal();
        let mut step = 0.0;
        for (place, row) in rows.iter_mut().enumerate() {
            let usual = 2_000_000.0 / (1 + place) as f64;
            let factor = slower.filter(|&(which, _)| which == place).map_or(1.0, |(_, factor)| factor);
            let mut time = usual * factor * speed * luck[place] * (stretch + 0.02 * chance.normal()).exp();
            if chance.uniform() < busy * time / 4_000_000.0 {
                time += 4_000_000.0 * chance.uniform();
            }
            row.push(time as i64);
            step += time;
        }
        steps.push(step as i64);
    }
    (rows, steps)
}

fn compare(chance: &mut Chance, recordings: usize, busy: f64, slower: Option<(usize, f64)>) -> Judged {
    let mut side = |slower| -> Vec<(Vec<Vec<i64>>, Vec<i64>)> {
        (0..recordings).map(|_| recording(chance, busy, slower)).collect()
    };
    let (before, after) = (side(None), side(slower));
    let row = |side: &[(Vec<Vec<i64>>, Vec<i64>)], place: usize| -> Vec<Vec<i64>> {
        side.iter().map(|(rows, _)| rows[place].clone()).collect()
    };
    let steps = |side: &[(Vec<Vec<i64>>, Vec<i64>)]| -> Vec<Vec<i64>> {
        side.iter().map(|(_, steps)| steps.clone()).collect()
    };
    let rows: Vec<_> = (0..ROWS).map(|place| (row(&before, place), row(&after, place))).collect();
    let times: Vec<Times<'_>> = rows.iter().map(|(before, after)| Times { before, after }).collect();
    let (before, after) = (steps(&before), steps(&after));
    judge(&times, Times { before: &before, after: &after }, Queueing::default())
}

fn claims(judged: &Judged) -> usize {
    let all = judged.verdicts.iter().chain([&judged.total]);
    all.filter(|verdict| **verdict == Verdict::Change).count()
}

#[test]
fn equal_programs_show_no_change_in_19_of_20_pairs() {
    let mut chance = Chance(11);
    for (busy, recordings) in [(0.0, 1), (1.0, 1), (4.0, 1), (1.0, 3)] {
        let pairs = 400;
        let wrong = (0..pairs).filter(|_| claims(&compare(&mut chance, recordings, busy, None)) > 0).count();
        assert!(wrong * 20 <= pairs, "{wrong} of {pairs} pairs, busy {busy}, {recordings} recordings");
    }
}

#[test]
fn an_operator_slower_by_a_fifth_is_found() {
    let mut chance = Chance(12);
    for (busy, recordings, least) in [(0.0, 1, 80), (1.0, 1, 75), (1.0, 3, 95)] {
        let pairs = 100;
        let found = (0..pairs)
            .filter(|_| compare(&mut chance, recordings, busy, Some((1, 1.2))).verdicts[1] == Verdict::Change)
            .count();
        assert!(found >= least, "{found} of {pairs}, busy {busy}, {recordings} recordings");
    }
}

#[test]
fn a_machine_that_is_slower_as_a_whole_is_no_change_of_any_row() {
    let rows: Vec<Vec<Vec<i64>>> =
        (1..9).map(|row| vec![(0..20).map(|step| row * 100_000 + step % 5 * row * 100).collect()]).collect();
    let slower: Vec<Vec<Vec<i64>>> =
        rows.iter().map(|row| vec![row[0].iter().map(|time| time * 6 / 5).collect()]).collect();
    let times: Vec<Times<'_>> =
        rows.iter().zip(&slower).map(|(before, after)| Times { before, after }).collect();
    let (before, after) = (vec![vec![4_000_000; 20]], vec![vec![4_800_000; 20]]);
    let judged = judge(&times, Times { before: &before, after: &after }, Queueing::default());
    assert_eq!(claims(&judged), 0, "{judged:?}");
    assert!((judged.machine - 1.2).abs() < 0.01, "{judged:?}");
    // Twice as slow is no mood of a machine.
    let twice: Vec<Vec<Vec<i64>>> =
        rows.iter().map(|row| vec![row[0].iter().map(|time| time * 2).collect()]).collect();
    let times: Vec<Times<'_>> =
        rows.iter().zip(&twice).map(|(before, after)| Times { before, after }).collect();
    let after = vec![vec![8_000_000; 20]];
    assert_eq!(claims(&judge(&times, Times { before: &before, after: &after }, Queueing::default())), 9);
}

/// Six steps each of two real trainings, the second with a slow first step: the loading of data became quicker, nothing else.
#[test]
fn steps_that_became_a_third_quicker_have_changed() {
    let steps = |times: [i64; 6]| vec![times.map(|tenths| tenths * 100_000).to_vec()];
    let before = steps([1761, 1740, 1769, 1813, 1765, 1643]);
    let after = steps([1816, 1239, 1268, 1263, 1635, 1161]);
    let operators = [400, 150, 100, 300].map(|time| steps([time; 6]));
    let loading =
        |steps: &[Vec<i64>]| vec![steps[0].iter().map(|time| time - 96_000_000).collect::<Vec<_>>()];
    let (slow, quick) = (loading(&before), loading(&after));
    let mut rows: Vec<Times<'_>> =
        operators.iter().map(|times| Times { before: times, after: times }).collect();
    rows.push(Times { before: &slow, after: &quick });
    let judged = judge(&rows, Times { before: &before, after: &after }, Queueing::default());
    assert_eq!((judged.total, judged.verdicts[4]), (Verdict::Change, Verdict::Change));
    assert_eq!(claims(&judged), 2);
}

/// Three steps of four lost time slices to other programs in the second run, in the one operator that is long enough to meet them.
#[test]
fn steps_that_were_held_up_have_not_changed() {
    let held_up = |step: i64| if step % 4 == 0 { 0 } else { 8_000_000 };
    let short: Vec<Vec<Vec<i64>>> =
        (1..9).map(|row| vec![(0..60).map(|step| row * 50_000 + step % 5 * row * 100).collect()]).collect();
    let long = |delay: fn(i64) -> i64| {
        vec![(0..60).map(|step| 15_000_000 + step % 7 * 50_000 + delay(step)).collect()]
    };
    let step = |long: &[Vec<i64>]| vec![long[0].iter().map(|time| time + 5_000_000).collect()];
    let (calm, busy): (Vec<Vec<i64>>, Vec<Vec<i64>>) = (long(|_| 0), long(held_up));
    let mut rows: Vec<Times<'_>> = short.iter().map(|row| Times { before: row, after: row }).collect();
    rows.push(Times { before: &calm, after: &busy });
    let judged = judge(&rows, Times { before: &step(&calm), after: &step(&busy) }, Queueing::default());
    assert_eq!(claims(&judged), 0, "{judged:?}");
}

#[test]
fn time_in_queues_is_no_change() {
    let rows: Vec<Vec<Vec<i64>>> = (1..9).map(|row| vec![vec![row * 50_000; 20]]).collect();
    let (before, after) = (vec![vec![10_000_000; 20]], vec![vec![14_000_000; 20]]);
    let times: Vec<Times<'_>> = rows.iter().map(|row| Times { before: row, after: row }).collect();
    let step = Times { before: &before, after: &after };
    let verdict =
        |step, before: &[f64], after: &[f64]| judge(&times, step, Queueing::of(before, after)).total;
    assert_eq!(verdict(step, &[0.1], &[0.2]), Verdict::Change);
    assert_eq!(verdict(step, &[0.1], &[0.4]), Verdict::Noise, "that alone may be all of it");
    assert_eq!(verdict(step, &[0.4], &[0.1]), Verdict::Noise);
    // Several recordings tell what both sides have in common.
    let (before, after) = (vec![before[0].clone(); 3], vec![after[0].clone(); 3]);
    let rows: Vec<Vec<Vec<i64>>> = rows.iter().map(|row| vec![row[0].clone(); 3]).collect();
    let times: Vec<Times<'_>> = rows.iter().map(|row| Times { before: row, after: row }).collect();
    let step = Times { before: &before, after: &after };
    let verdict = |before: &[f64], after: &[f64]| judge(&times, step, Queueing::of(before, after)).total;
    assert_eq!(verdict(&[0.4; 3], &[0.4; 3]), Verdict::Change);
    assert_eq!(verdict(&[0.1; 3], &[0.4; 3]), Verdict::Noise);
}

#[test]
fn too_few_steps_tell_nothing_unless_recordings_are_many() {
    let one = |time: i64| vec![vec![time, time]];
    let (before, after) = (one(100_000), one(500_000));
    let times = Times { before: &before, after: &after };
    assert_eq!(judge(&[times], times, Queueing::default()).total, Verdict::Unknown);
    let (before, after) = (vec![vec![100_000]; 3], vec![vec![500_000]; 3]);
    let times = Times { before: &before, after: &after };
    assert_eq!(judge(&[times], times, Queueing::default()).verdicts, [Verdict::Change]);
    assert_eq!(judge(&[], Times { before: &[], after: &[] }, Queueing::default()).total, Verdict::Unknown);
}

#[test]
fn chances_are_those_of_the_textbook() {
    // Student's t: 2.228 with 10 degrees of freedom, 4.303 with 2.
    assert!((tail(2.228, 10) - 0.05).abs() < 1e-4);
    assert!((tail(4.303, 2) - 0.05).abs() < 1e-4);
    assert!((tail(0.0, 8) - 1.0).abs() < 1e-12);
}
