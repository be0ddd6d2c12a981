//! The plot as a picture: a small painter of lines, dots and letters, and as much of PNG as it needs.

use std::io::{self, Write};

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::{Anchor, BLACK, Colour, HEIGHT, Shape, WIDTH, font};

/// Pixels for each unit of the plot: enough for a screen of today.
const SCALE: f64 = 2.0;
/// Pixels for each dot of a letter.
const LETTER_SCALE: i64 = 2;

pub(super) fn draw(shapes: &[Shape], output: &mut dyn Write) -> io::Result<()> {
    let mut picture = Picture::new((WIDTH * SCALE) as usize, (HEIGHT * SCALE) as usize);
    for shape in shapes {
        match shape {
            Shape::Lines { points, colour, width, .. } => {
                for ends in points.windows(2) {
                    picture.line(ends[0], ends[1], width * SCALE, *colour);
                }
            }
            Shape::Dot { x, y, colour } => picture.disc(x * SCALE, y * SCALE, 4.0 * SCALE, *colour),
            Shape::Text { x, y, anchor, upwards, text } => picture.text((*x, *y), *anchor, *upwards, text),
        }
    }
    picture.write(output)
}

struct Picture {
    width: usize,
    height: usize,
    /// Three bytes a pixel.
    bytes: Vec<u8>,
}

impl Picture {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, bytes: vec![0xff; width * height * 3] }
    }

    fn set(&mut self, x: i64, y: i64, colour: Colour) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x < self.width && y < self.height {
            let at = (y * self.width + x) * 3;
            self.bytes[at..at + 3].copy_from_slice(&colour.to_be_bytes()[1..]);
        }
    }

    fn disc(&mut self, x: f64, y: f64, radius: f64, colour: Colour) {
        let reach = radius.ceil() as i64;
        for down in -reach..=reach {
            for right in -reach..=reach {
                let (column, row) = (x.floor() as i64 + right, y.floor() as i64 + down);
                let distance = (column as f64 + 0.5 - x).hypot(row as f64 + 0.5 - y);
                if distance <= radius {
                    self.set(column, row, colour);
                }
            }
        }
    }

    /// A line as wide as a pen that goes from one end to the other.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        let ((x, y), (right, down)) = (from, (to.0 - from.0, to.1 - from.1));
        let steps = (right.hypot(down) * SCALE).ceil().max(1.0);
        for step in 0..=steps as u64 {
            let part = step as f64 / steps;
            self.disc((x + right * part) * SCALE, (y + down * part) * SCALE, width / 2.0, colour);
        }
    }

    fn text(&mut self, place: (f64, f64), anchor: Anchor, upwards: bool, text: &str) {
        let advance = (font::WIDTH as i64 + 1) * LETTER_SCALE;
        let length = text.chars().count() as i64 * advance;
        let before = match anchor {
            Anchor::Start => 0,
            Anchor::Middle => length / 2,
            Anchor::End => length,
        };
        let (x, y) = ((place.0 * SCALE) as i64, (place.1 * SCALE) as i64);
        for (index, letter) in text.chars().enumerate() {
            for (column, row) in
                (0..font::WIDTH).flat_map(|column| (0..font::HEIGHT).map(move |row| (column, row)))
            {
                if !font::has_dot(letter, column, row) {
                    continue;
                }
                let along = index as i64 * advance - before + column as i64 * LETTER_SCALE;
                let above = (row as i64 - font::HEIGHT as i64) * LETTER_SCALE;
                for (one, other) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let (along, above) = (along + one, above + other);
                    let (column, row) = if upwards { (x + above, y - along) } else { (x + along, y + above) };
                    self.set(column, row, BLACK);
                }
            }
        }
    }

    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        output.write_all(b"\x89PNG\r\n\x1a\n")?;
        let mut header = Vec::with_capacity(13);
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        // Eight bits of red, green and blue; the one compression and filter there is; rows in order.
        header.extend([8, 2, 0, 0, 0]);
        chunk(output, *b"IHDR", &header)?;
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        for row in self.bytes.chunks(self.width * 3) {
            // Each row says how it is filtered: not at all.
            packed.write_all(&[0])?;
            packed.write_all(row)?;
        }
        chunk(output, *b"IDAT", &packed.finish()?)?;
        chunk(output, *b"IEND", &[])
    }
}

fn chunk(output: &mut dyn Write, kind: [u8; 4], content: &[u8]) -> io::Result<()> {
    let mut sum = Crc::new();
    sum.update(&kind);
    sum.update(content);
    output.write_all(&(content.len() as u32).to_be_bytes())?;
    output.write_all(&kind)?;
    output.write_all(content)?;
    output.write_all(&sum.sum().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_is_not_painted() {
        let mut picture = Picture::new(20, 10);
        picture.line((-1e3, -1e3), (-5.0, -5.0), 3.0, 0);
        picture.text((-50.0, 500.0), Anchor::End, true, "outside");
        assert!(picture.bytes.iter().all(|&byte| byte == 0xff));
        picture.line((0.0, 2.0), (10.0, 2.0), 2.0, 0x12_3456);
        assert_eq!(picture.bytes[(4 * 20 + 10) * 3..][..3], [0x12, 0x34, 0x56]);
        assert_eq!(picture.bytes[..3], [0xff; 3]);
    }
}
