//! The page: one stacked picture, a legend with the bytes at the peak, and a table of who held them. No library, no
//! network: a few lines of script follow the pointer.

use std::fmt::Write as _;
use std::io::{self, Write};

use hotspan_analyze::memory_timeline::{DeviceTimeline, Holder};
use hotspan_analyze::{MemoryCategory, Series};
use hotspan_store::{Bytes, Duration};
use serde_json::json;

use super::super::xml_text::escaped;
use super::colour;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 420.0;
/// Room for the labels of the axes.
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 30.0;
const HOLDERS: usize = 50;

const STYLE: &str = "\
body{font:14px/1.5 system-ui,sans-serif;margin:2em;max-width:1300px;color:#1c1e21;background:#fff}
h1{font-size:1.3em}h2{font-size:1.05em;margin-top:2em}
svg{width:100%;height:auto}svg text{font-size:12px;fill:currentColor}
table{border-collapse:collapse}td,th{padding:.2em .9em .2em 0;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.c{display:inline-block;width:.8em;height:.8em;margin-right:.5em}
#at{min-height:1.5em;font-variant-numeric:tabular-nums}code{white-space:pre-wrap}
@media(prefers-color-scheme:dark){body{color:#e4e6eb;background:#18191c}}";

/// Shows the values under the pointer. `d` is the data: times in milliseconds, lines, the picture's measures.
const SCRIPT: &str = "\
const s=document.querySelector('svg'),l=document.getElementById('line'),o=document.getElementById('at');
const size=b=>{const u=['B','KB','MB','GB','TB'];let i=0;while(Math.abs(b)>=1024&&i<4){b/=1024;i++}return (i?b.toFixed(2):b)+' '+u[i]};
s.addEventListener('pointermove',e=>{
  if(!d.times.length)return;
  const p=new DOMPoint(e.clientX,e.clientY).matrixTransform(s.getScreenCTM().inverse());
  const t=d.begin+(p.x-d.left)/d.scale;
  let a=0,b=d.times.length-1;while(a<b){const m=(a+b+1)>>1;d.times[m]<=t?a=m:b=m-1}
  const x=d.left+(d.times[a]-d.begin)*d.scale;l.setAttribute('x1',x);l.setAttribute('x2',x);
  const total=d.lines.reduce((n,k)=>n+k.values[a],0);
  o.textContent=d.times[a].toFixed(3)+' ms: '+size(total)+' = '+d.lines.filter(k=>k.values[a]).map(k=>k.title+' '+size(k.values[a])).join(' + ');
});";

pub(super) fn write(timeline: &DeviceTimeline, output: &mut dyn Write) -> io::Result<()> {
    let series = timeline.series(WIDTH as usize);
    let device = escaped(&timeline.device.name());
    let peak_time = Duration(timeline.peak_time.0);
    writeln!(
        output,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Memory of {device}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>Memory of {device}</h1>\n<p>Most was held {peak_time} after the start of the trace: <b>{}</b>.</p>",
        timeline.peak
    )?;
    let picture = Picture::of(&series);
    writeln!(output, "{}\n<p id=\"at\"></p>", picture.svg(&series))?;
    writeln!(
        output,
        "<h2>The peak by use</h2>\n<table><tr><th>Used for</th><th class=\"n\">Bytes</th></tr>"
    )?;
    for category in MemoryCategory::ALL {
        let bytes = timeline.peak_use[category.index()];
        let shown = series.lines.iter().any(|line| line.key == category.key());
        if shown {
            let (colour, title) = (colour(category), category.title());
            writeln!(
                output,
                "<tr><td><span class=\"c\" style=\"background:{colour}\"></span>{title}</td><td class=\"n\">{bytes}</td></tr>"
            )?;
        }
    }
    writeln!(output, "</table>\n<h2>Who held it</h2>\n<table>")?;
    writeln!(
        output,
        "<tr><th>Allocated by</th><th>Used for</th><th class=\"n\">Bytes</th><th class=\"n\">Blocks</th><th>Called from</th></tr>"
    )?;
    for holder in timeline.holders.iter().take(HOLDERS) {
        writeln!(output, "{}", row(holder))?;
    }
    let rest: Vec<&Holder> = timeline.holders.iter().skip(HOLDERS).collect();
    if !rest.is_empty() {
        let bytes: Bytes = rest.iter().map(|holder| holder.bytes).sum();
        writeln!(output, "<tr><td>{} others</td><td></td><td class=\"n\">{bytes}</td></tr>", rest.len())?;
    }
    let millis: Vec<f64> = series.times.iter().map(|time| time.0 as f64 / 1e6).collect();
    let lines: Vec<_> =
        series.lines.iter().map(|line| json!({"title": line.title, "values": line.values})).collect();
    let data = json!({
        "times": millis, "lines": lines,
        "left": LEFT, "begin": picture.begin / 1e6, "scale": picture.scale * 1e6,
    });
    // Titles are our own words, so the data cannot end the script.
    writeln!(output, "</table>\n<script>const d={data};\n{SCRIPT}</script>\n</body>\n</html>")
}

fn row(holder: &Holder) -> String {
    let operator = if holder.operator.is_empty() { "(outside of operators)" } else { &holder.operator };
    let mut stack = String::new();
    if let Some((top, rest)) = holder.stack.split_first() {
        let _ = match rest {
            [] => write!(stack, "<code>{}</code>", escaped(top)),
            rest => write!(
                stack,
                "<details><summary><code>{}</code></summary><code>{}</code></details>",
                escaped(top),
                rest.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\n")
            ),
        };
    }
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{stack}</td></tr>",
        escaped(operator),
        holder.category.title(),
        holder.bytes,
        holder.blocks
    )
}

/// How times and bytes become places.
struct Picture {
    begin: f64,
    /// Units of the picture in a nanosecond.
    scale: f64,
    most: f64,
}

impl Picture {
    fn of(series: &Series) -> Self {
        let bounds = series.times.first().zip(series.times.last());
        let (begin, end) = bounds.map_or((0.0, 1.0), |(first, last)| (first.0 as f64, last.0 as f64));
        let sums = (0..series.times.len()).map(|at| {
            series.lines.iter().map(|line| line.values.get(at).copied().unwrap_or(0) as f64).sum::<f64>()
        });
        let most = sums.fold(1.0, f64::max);
        Self { begin, scale: (WIDTH - LEFT) / (end - begin).max(1.0), most }
    }

    fn x(&self, time: i64) -> f64 {
        LEFT + (time as f64 - self.begin) * self.scale
    }

    fn y(&self, bytes: f64) -> f64 {
        (HEIGHT - BOTTOM) * (1.0 - bytes / self.most * 0.96)
    }

    fn svg(&self, series: &Series) -> String {
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
        let mut below = vec![0.0; series.times.len()];
        for line in &series.lines {
            let above: Vec<f64> = below
                .iter()
                .zip(&line.values)
                .map(|(below, &value): (&f64, _)| below + value as f64)
                .collect();
            // Steps: a value holds until the next.
            let mut path = String::from("M");
            let mut edge = |sums: &[f64], forward: bool| {
                let count = sums.len();
                let places: Box<dyn Iterator<Item = usize>> =
                    if forward { Box::new(0..count) } else { Box::new((0..count).rev()) };
                for at in places {
                    let y = self.y(sums[at]);
                    let begin = self.x(series.times[at].0);
                    let end = self.x(series.times[(at + 1).min(count - 1)].0);
                    let (first, second) = if forward { (begin, end) } else { (end, begin) };
                    let _ = write!(path, "{first:.1} {y:.1} {second:.1} {y:.1} ");
                }
            };
            edge(&above, true);
            edge(&below, false);
            let category = MemoryCategory::ALL.into_iter().find(|category| category.key() == line.key);
            let fill = colour(category.unwrap_or_default());
            let _ = write!(
                svg,
                "<path d=\"{path}Z\" fill=\"{fill}\" fill-opacity=\".85\"><title>{}</title></path>",
                line.title
            );
            below = above;
        }
        for part in 0..=4 {
            let bytes = self.most * f64::from(part) / 4.0;
            let y = self.y(bytes);
            let label = Bytes(bytes as i64);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"currentColor\" stroke-opacity=\".15\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        for part in 0..=5 {
            let x = LEFT + (WIDTH - LEFT) * f64::from(part) / 5.0;
            let time = Duration((self.begin + (x - LEFT) / self.scale) as i64);
            let anchor = if part == 5 { "end" } else { "start" };
            let _ = write!(
                svg,
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{time}</text>",
                HEIGHT - 8.0
            );
        }
        let _ = write!(
            svg,
            "<line id=\"line\" x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"0\" y2=\"{}\" stroke=\"currentColor\" stroke-opacity=\".5\"/></svg>",
            HEIGHT - BOTTOM
        );
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        let holder = Holder {
            operator: "<script>&".to_owned(),
            bytes: Bytes(1),
            blocks: 1,
            category: MemoryCategory::Unknown,
            stack: vec!["<a>".to_owned(), "\"b\"".to_owned()],
        };
        let row = row(&holder);
        assert!(row.contains("&lt;script&gt;&amp;") && row.contains("&quot;b&quot;"), "{row}");
        assert!(!row.contains("<a>") && !row.contains("<script>"), "{row}");
    }
}
