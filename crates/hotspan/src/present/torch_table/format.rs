//! Numbers and texts as torch's tables write them.

use hotspan_analyze::averages::Average;
use hotspan_store::{Bytes, Duration};

use super::TimeUnit;

/// A time in the unit that suits it, or in the one asked for.
pub(super) fn time(micros: f64, unit: Option<TimeUnit>) -> String {
    let unit = unit.unwrap_or(match micros {
        seconds if seconds >= 1e6 => TimeUnit::Seconds,
        millis if millis >= 1e3 => TimeUnit::Milliseconds,
        _ => TimeUnit::Microseconds,
    });
    match unit {
        TimeUnit::Seconds => format!("{:.3}s", micros / 1e6),
        TimeUnit::Milliseconds => format!("{:.3}ms", micros / 1e3),
        TimeUnit::Microseconds => format!("{micros:.3}us"),
    }
}

/// A share in percent; `NaN` of nothing.
pub(super) fn share(part: Duration, whole: Duration) -> String {
    if whole.0 == 0 {
        return "NaN".to_owned();
    }
    format!("{:.2}%", part.as_micros() * 100.0 / whole.as_micros())
}

/// An amount of memory in units of 1024.
pub(super) fn memory(bytes: Bytes) -> String {
    let amount = bytes.0 as f64;
    match bytes.0.unsigned_abs() {
        0..0x400 => format!("{} B", bytes.0),
        0x400..0x10_0000 => format!("{:.2} KB", amount / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.2} MB", amount / 1_048_576.0),
        _ => format!("{:.2} GB", amount / 1_073_741_824.0),
    }
}

/// The unit that FLOPs are shown in.
pub(super) struct FlopsScale {
    pub(super) factor: f64,
    pub(super) unit: &'static str,
}

/// The unit in which the smallest amount has digits before the point. `None` when there are no operations.
pub(super) fn flops_scale(flops: impl Iterator<Item = u64>) -> Option<FlopsScale> {
    const UNITS: [&str; 6] = ["FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"];
    let least = flops.filter(|&flops| flops > 0).min()?;
    let power = ((least as f64).log10() / 3.0).clamp(0.0, 5.0).floor();
    Some(FlopsScale { factor: 10_f64.powf(power * -3.0), unit: UNITS[power as usize] })
}

/// A name that fits: too long ones end in dots.
pub(super) fn shorten(name: &str, limit: Option<usize>) -> String {
    match limit.map(|limit| limit.saturating_sub(3)) {
        Some(room) if name.chars().count() >= room => name.chars().take(room).chain("...".chars()).collect(),
        _ => name.to_owned(),
    }
}

/// A path that fits: too long ones begin with dots, for the end tells most.
pub(super) fn trim_path(path: &str, width: usize) -> String {
    let length = path.chars().count();
    if length <= width {
        return path.to_owned();
    }
    let end: String = path.chars().skip(length - width).collect();
    if width > 3 {
        end.chars().skip(3).fold("...".to_owned(), |mut text, letter| {
            text.push(letter);
            text
        })
    } else {
        end
    }
}

/// The shapes of a row as Python prints a list of lists; nothing when not grouped by shapes.
pub(super) fn shapes(row: &Average) -> String {
    row.input_shapes.as_ref().map_or_else(String::new, |shapes| format!("{shapes:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(time(999.9994, None), "999.999us");
        assert_eq!(time(1_000.0, None), "1.000ms");
        assert_eq!(time(-5_000.0, None), "-5000.000us");
        assert_eq!(time(2_500_000.0, None), "2.500s");
        assert_eq!(time(1_500.0, Some(TimeUnit::Seconds)), "0.002s");
    }

    #[test]
    fn memory_is_in_units_of_1024() {
        let amounts = [0, -1023, 1024, -1_572_864, 3_221_225_472].map(|bytes| memory(Bytes(bytes)));
        assert_eq!(amounts, ["0 B", "-1023 B", "1.00 KB", "-1.50 MB", "3.00 GB"]);
    }

    #[test]
    fn the_least_flops_choose_the_unit() {
        let scale = |flops: &[u64]| flops_scale(flops.iter().copied()).map(|scale| scale.unit);
        assert_eq!(scale(&[0, 5_000, 2_000_000]), Some("KFLOPs"));
        assert_eq!(scale(&[0]), None);
        assert_eq!(scale(&[u64::MAX]), Some("PFLOPs"));
    }

    #[test]
    fn long_texts_are_cut_where_they_say_least() {
        assert_eq!(shorten("abcdefghij", Some(10)), "abcdefg...");
        assert_eq!(shorten("abcdef", Some(10)), "abcdef");
        assert_eq!(trim_path("abcdefghij", 6), "...hij");
        assert_eq!(trim_path("abcdefghij", 2), "ij");
    }
}
