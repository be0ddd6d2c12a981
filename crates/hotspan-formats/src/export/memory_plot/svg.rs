//! The plot as SVG.

use std::fmt::Write as _;

use super::{Anchor, HEIGHT, Shape, WIDTH};
use crate::export::xml_text::escaped;

pub(super) fn draw(shapes: &[Shape]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for shape in shapes {
        // Writing to a text cannot fail.
        let _ = match shape {
            Shape::Lines { points, colour, width, label } => {
                let mut path = String::new();
                for (index, (x, y)) in points.iter().enumerate() {
                    let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
                }
                let title = if label.is_empty() {
                    String::new()
                } else {
                    format!("<title>{}</title>", escaped(label))
                };
                writeln!(
                    svg,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"#{colour:06x}\" stroke-width=\"{width}\">{title}</path>"
                )
            }
            Shape::Dot { x, y, colour } => {
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#{colour:06x}\"/>")
            }
            Shape::Text { x, y, anchor, upwards, text } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let rotated = if *upwards {
                    format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
                } else {
                    String::new()
                };
                writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{rotated}>{}</text>",
                    escaped(text)
                )
            }
        };
    }
    svg.push_str("</svg>\n");
    svg
}
