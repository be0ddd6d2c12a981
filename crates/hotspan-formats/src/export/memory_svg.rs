//! A plot of the memory of processes over time, as SVG: their sum, and a line for each of the largest.

use std::fmt::Write as _;
use std::io::{self, Write};

use hotspan_analyze::process_memory::{ProcessMemory, process_memory};
use hotspan_store::{Bytes, Timestamp, Trace};

use super::Exporter;
use super::xml_text::escaped;

/// The exporter of memory plots.
pub struct MemorySvg;

impl Exporter for MemorySvg {
    fn name(&self) -> &'static str {
        "memory-svg"
    }

    fn help(&self) -> &'static str {
        "a plot of the memory of processes over time"
    }

    fn write(&self, trace: &Trace, output: &mut dyn Write) -> io::Result<()> {
        let command = trace.metadata().value("command");
        let title = command.as_ref().and_then(|value| value.as_str()).unwrap_or("Memory over time");
        output.write_all(Plot::of(&process_memory(trace)).draw(title).as_bytes())
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
const COLOURS: [&str; MOST_PROCESSES] =
    ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#17becf"];

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
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{}</text>\n",
            escaped(title)
        );
        self.axes(&mut svg);
        let mut processes: Vec<_> = self.memory.processes.iter().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.peak()));
        if processes.len() > 1 {
            let shown = processes.iter().zip(COLOURS);
            for (process, colour) in shown {
                let label = format!("{} {}: peak {}", process.pid, process.name, process.peak());
                self.line(&mut svg, &process.points, colour, 1.2, &label);
            }
        }
        self.line(&mut svg, &self.memory.total, "black", 1.8, "all processes");
        self.legend(&mut svg, &processes.iter().map(|process| process.name.as_str()).collect::<Vec<_>>());
        if let Some((time, bytes)) = self.memory.peak {
            let (x, y) = (self.x(time), self.y(bytes));
            let anchor = if x > WIDTH * 0.7 { "end" } else { "start" };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#d62728\"/>\n\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">peak {bytes} at {:.2} s</text>",
                y - 8.0,
                time.0 as f64 / 1e9
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, svg: &mut String) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for value in ticks(self.top) {
            let y = self.y(Bytes((value * MEBIBYTE) as i64));
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                short(value)
            );
        }
        for value in ticks(self.end) {
            let x = self.x(Timestamp((value * 1e9) as i64));
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {bottom}v5\" stroke=\"black\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                short(value)
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">time (s)</text>\n\
             <text x=\"16\" y=\"{:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {:.1})\">resident memory (MiB)</text>",
            LEFT.midpoint(right),
            HEIGHT - 12.0,
            TOP.midpoint(bottom),
            TOP.midpoint(bottom)
        );
    }

    fn line(&self, svg: &mut String, points: &[(Timestamp, Bytes)], colour: &str, width: f64, label: &str) {
        let per_point = points.len().div_ceil(MOST_POINTS).max(1);
        let mut path = String::new();
        for group in points.chunks(per_point) {
            if let Some(&(time, bytes)) = group.iter().max_by_key(|&&(_, bytes)| bytes) {
                let step = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{step}{:.1} {:.1}", self.x(time), self.y(bytes));
            }
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"><title>{}</title></path>",
            escaped(label)
        );
    }

    fn legend(&self, svg: &mut String, names: &[&str]) {
        let mut x = LEFT;
        let mut entry = |colour: &str, text: &str| {
            let text: String = text.chars().take(16).collect();
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} 38h14\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{:.1}\" y=\"42\">{}</text>",
                x + 18.0,
                escaped(&text)
            );
            x += 30.0 + 7.5 * text.chars().count() as f64;
        };
        entry("black", "all processes");
        if names.len() > 1 {
            for (name, colour) in names.iter().zip(COLOURS) {
                entry(colour, name);
            }
            if names.len() > MOST_PROCESSES {
                entry("white", &format!("and {} more", names.len() - MOST_PROCESSES));
            }
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
