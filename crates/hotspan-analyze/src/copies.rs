//! Copies and fills by kind: how many bytes, how fast, from which memory to which.

use hashbrown::HashMap;
use hotspan_store::{Bytes, Category, Duration, StringId};

use crate::model::Model;
/// Copies of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyRow {
    /// `HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH`, or `Fill`.
    pub kind: String,
    /// The memory it reads: `Pageable`, `Pinned`, `Device`, …; empty when the trace does not say.
    pub from: String,
    /// The memory it writes.
    pub to: String,
    /// How many.
    pub count: u64,
    /// How long in all.
    pub total: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// How many bytes in all; `None` when no copy says.
    pub bytes: Option<Bytes>,
    /// The smallest and the largest.
    pub sizes: Option<(Bytes, Bytes)>,
    /// The slowest and the fastest in GB (10^9 bytes) a second, of copies that took measurable time.
    pub rates: Option<(f64, f64)>,
    /// The time of the copies that say how many bytes.
    timed: Duration,
}

impl CopyRow {
    /// All bytes over all time, in GB a second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.bytes?, self.timed)
    }
}

/// Bytes per nanosecond are GB per second.
fn rate(bytes: Bytes, time: Duration) -> Option<f64> {
    (time.0 > 0).then(|| bytes.0 as f64 / time.0 as f64)
}

/// Sums up the copies and fills of a trace, most time first.
#[must_use]
pub fn copies(model: &Model) -> Vec<CopyRow> {
    let (spans, bytes_of) = (model.spans(), model.copy_bytes());
    let mut by_name: HashMap<(Category, StringId), usize> = HashMap::new();
    let mut rows: Vec<CopyRow> = Vec::new();
    for span in spans.ids() {
        let category = model.span_category(span);
        if !matches!(category, Category::Memcpy | Category::Memset) {
            continue;
        }
        let (name, duration) = (spans.name(span), spans.duration(span));
        let index = *by_name.entry((category, name)).or_insert_with(|| {
            let (kind, from, to) = parse(category, model.str(name));
            rows.push(CopyRow {
                kind,
                from,
                to,
                count: 0,
                total: Duration::ZERO,
                min: duration,
                max: duration,
                bytes: None,
                sizes: None,
                rates: None,
                timed: Duration::ZERO,
            });
            rows.len() - 1
        });
        let row = &mut rows[index];
        row.count += 1;
        row.total += duration;
        row.min = row.min.min(duration);
        row.max = row.max.max(duration);
        let Some(bytes) = bytes_of.of(span).map(Bytes) else { continue };
        row.timed += duration;
        row.bytes = Some(row.bytes.unwrap_or_default() + bytes);
        let (smallest, largest) = row.sizes.unwrap_or((bytes, bytes));
        row.sizes = Some((smallest.min(bytes), largest.max(bytes)));
        if let Some(rate) = rate(bytes, duration) {
            let (slowest, fastest) = row.rates.unwrap_or((rate, rate));
            row.rates = Some((slowest.min(rate), fastest.max(rate)));
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.total));
    rows
}

/// `Memcpy HtoD (Pageable -> Device)` is of kind `HtoD`, from pageable memory to the device.
fn parse(category: Category, name: &str) -> (String, String, String) {
    let words = name.strip_prefix("Memcpy ").or_else(|| name.strip_prefix("Memset ")).unwrap_or(name);
    let (kind, places) = words.split_once('(').unwrap_or((words, ""));
    let places = places.trim_end().trim_end_matches(')');
    let (from, to) = match places.split_once("->") {
        Some((from, to)) => (from.trim(), to.trim()),
        None => ("", places.trim()),
    };
    let kind = if category == Category::Memset { "Fill" } else { kind.trim() };
    (kind.to_owned(), from.to_owned(), to.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_kind_and_places() {
        let parsed = |category, name| {
            let (kind, from, to) = parse(category, name);
            format!("{kind}|{from}|{to}")
        };
        let copy = Category::Memcpy;
        assert_eq!(parsed(copy, "Memcpy HtoD (Pageable -> Device)"), "HtoD|Pageable|Device");
        assert_eq!(parsed(copy, "Memcpy PtoP (Device -> Device)"), "PtoP|Device|Device");
        assert_eq!(parsed(copy, "CopyHostToDevice"), "CopyHostToDevice||");
        assert_eq!(parsed(Category::Memset, "Memset (Device)"), "Fill||Device");
    }
}
