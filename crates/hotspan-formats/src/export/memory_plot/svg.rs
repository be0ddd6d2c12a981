//! Lines, dots and texts as SVG.

use std::fmt::Write as _;

use crate::export::xml_text::escaped;

/// A red, a green and a blue byte.
pub(super) type Colour = u32;

/// The end of a text that its position is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing that grows.
#[derive(Debug)]
pub(super) struct Drawing(String);

// Writing to a text cannot fail.
impl Drawing {
    /// An empty one of this size.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ))
    }

    /// Lines from point to point; the label is shown under the pointer.
    pub(super) fn lines(&mut self, points: &[(f64, f64)], colour: Colour, width: f64, label: Option<&str>) {
        self.0.push_str("<path d=\"");
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(self.0, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        let title = label.map_or_else(String::new, |label| format!("<title>{}</title>", escaped(label)));
        let _ = writeln!(
            self.0,
            "\" fill=\"none\" stroke=\"#{colour:06x}\" stroke-width=\"{width}\">{title}</path>"
        );
    }

    pub(super) fn dot(&mut self, x: f64, y: f64, colour: Colour) {
        let _ = writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#{colour:06x}\"/>");
    }

    /// A text on a base line.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str) {
        self.write(x, y, anchor, "", text);
    }

    /// A text that reads upwards, centred.
    pub(super) fn text_upwards(&mut self, x: f64, y: f64, text: &str) {
        self.write(x, y, Anchor::Middle, &format!(" transform=\"rotate(-90 {x:.1} {y:.1})\""), text);
    }

    fn write(&mut self, x: f64, y: f64, anchor: Anchor, rotation: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{rotation}>{text}</text>"
        );
    }

    /// The whole file.
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}
