//! A plot of the memory of processes over time: their sum, and a line for each of the largest. [`svg`] writes it.

mod svg;

use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_analyze::process_memory::ProcessMemory;
use hotspan_store::{Bytes, Timestamp};

use self::svg::{Anchor, Colour, Drawing};
use super::Exporter;

/// The exporter of plots.
pub struct MemorySvg;

impl Exporter for MemorySvg {
    fn name(&self) -> &'static str {
        "memory-svg"
    }

    fn help(&self) -> &'static str {
        "a plot of the memory of processes over time"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let command = model.metadata().value("command");
        let title = command.as_ref().and_then(|value| value.as_str()).unwrap_or("Memory over time");
        output.write_all(Plot::of(model.process_memory()).draw(title).as_bytes())
    }
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 50.0;
/// More points than pixels cannot be seen; of those that share a pixel the largest is drawn.
const MOST_POINTS: usize = 1_000;
/// More lines than this cannot be told apart.
const MOST_PROCESSES: usize = 9;
const COLOURS: [Colour; MOST_PROCESSES] =
    [0x1f_77b4, 0xff_7f0e, 0x2c_a02c, 0xd6_2728, 0x94_67bd, 0x8c_564b, 0xe3_77c2, 0x7f_7f7f, 0x17_becf];
const BLACK: Colour = 0;
const WHITE: Colour = 0xff_ffff;
const GREY: Colour = 0xdd_dddd;

struct Plot<'a> {
    memory: &'a ProcessMemory,
    end: f64,
    top: f64,
}

impl<'a> Plot<'a> {
    fn of(memory: &'a ProcessMemory) -> Self {
        let end = memory.total.last().map_or(0, |&(time, _)| time.0);
        let peak = memory.peak.map_or(0, |(_, bytes)| bytes.0);
        Self { memory, end: (end as f64 / 1e9).max(1e-3), top: (peak as f64 / MEBIBYTE).max(1.0) * 1.05 }
    }

    fn x(&self, time: Timestamp) -> f64 {
        LEFT + (time.0 as f64 / 1e9 / self.end) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, bytes: Bytes) -> f64 {
        HEIGHT - BOTTOM - (bytes.0 as f64 / MEBIBYTE / self.top) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, title: &str) -> String {
        let mut drawing = Drawing::new(WIDTH, HEIGHT);
        drawing.text(LEFT, 22.0, Anchor::Start, title);
        self.axes(&mut drawing);
        let mut processes: Vec<_> = self.memory.processes.iter().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.peak()));
        if processes.len() > 1 {
            for (process, colour) in processes.iter().zip(COLOURS) {
                let label = format!("{} {}: peak {}", process.pid, process.name, process.peak());
                drawing.lines(&self.curve(&process.points), colour, 1.2, Some(&label));
            }
        }
        drawing.lines(&self.curve(&self.memory.total), BLACK, 1.8, Some("all processes"));
        legend(&mut drawing, &processes.iter().map(|process| process.name.as_str()).collect::<Vec<_>>());
        if let Some((time, bytes)) = self.memory.peak {
            let (x, y) = (self.x(time), self.y(bytes));
            let anchor = if x > WIDTH * 0.7 { Anchor::End } else { Anchor::Start };
            drawing.dot(x, y, COLOURS[3]);
            drawing.text(x, y - 8.0, anchor, &format!("peak {bytes} at {:.2} s", time.0 as f64 / 1e9));
        }
        drawing.finish()
    }

    fn axes(&self, drawing: &mut Drawing) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for value in ticks(self.top) {
            let y = self.y(Bytes((value * MEBIBYTE) as i64));
            drawing.lines(&[(LEFT, y), (right, y)], GREY, 1.0, None);
            drawing.text(LEFT - 6.0, y + 4.0, Anchor::End, &short(value));
        }
        for value in ticks(self.end) {
            let x = self.x(Timestamp((value * 1e9) as i64));
            drawing.lines(&[(x, bottom), (x, bottom + 5.0)], BLACK, 1.0, None);
            drawing.text(x, bottom + 18.0, Anchor::Middle, &short(value));
        }
        drawing.lines(&[(LEFT, TOP), (LEFT, bottom), (right, bottom)], BLACK, 1.0, None);
        drawing.text(LEFT.midpoint(right), HEIGHT - 12.0, Anchor::Middle, "time (s)");
        drawing.text_upwards(16.0, TOP.midpoint(bottom), "resident memory (MiB)");
    }

    fn curve(&self, points: &[(Timestamp, Bytes)]) -> Vec<(f64, f64)> {
        let per_point = points.len().div_ceil(MOST_POINTS).max(1);
        let largest = |group: &[(Timestamp, Bytes)]| group.iter().max_by_key(|&&(_, bytes)| bytes).copied();
        let points = points.chunks(per_point).filter_map(largest);
        points.map(|(time, bytes)| (self.x(time), self.y(bytes))).collect()
    }
}

fn legend(drawing: &mut Drawing, names: &[&str]) {
    let mut x = LEFT;
    let mut entry = |colour: Colour, name: &str| {
        let name: String = name.chars().take(16).collect();
        drawing.lines(&[(x, 38.0), (x + 14.0, 38.0)], colour, 2.0, None);
        drawing.text(x + 18.0, 42.0, Anchor::Start, &name);
        x += 30.0 + 7.5 * name.chars().count() as f64;
    };
    entry(BLACK, "all processes");
    if names.len() > 1 {
        for (name, colour) in names.iter().zip(COLOURS) {
            entry(colour, name);
        }
        if names.len() > MOST_PROCESSES {
            entry(WHITE, &format!("and {} more", names.len() - MOST_PROCESSES));
        }
    }
}

const MEBIBYTE: f64 = 1_048_576.0;

/// Round numbers from 0 to `end`, four to ten of them.
fn ticks(end: f64) -> Vec<f64> {
    let magnitude = 10_f64.powf((end / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
    let step = steps.into_iter().find(|step| end / step <= 8.0).unwrap_or(end);
    (0..=10).map(|index| f64::from(index) * step).take_while(|value| *value <= end).collect()
}

/// A round number without the noise of binary fractions.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.9), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8]);
        assert_eq!(short(0.6000000000000001), "0.6");
        for end in [1e-3, 0.5, 1.0, 37.0, 99.0, 12_345.0, 1e9] {
            assert!((4..=10).contains(&ticks(end).len()), "{end}: {:?}", ticks(end));
        }
    }
}
