//! The order of functions and which of them are shown: pstats' sort keys and restrictions.

use std::cmp::Ordering;

use regex_lite::Regex;

use super::{FunctionRow, Functions};
use crate::report::schema::SortError;

/// Keys, what they sort by, and what pstats calls that. The order matters: a beginning that several share belongs to
/// nobody.
const KEYS: [(&str, &[Field], &str); 13] = [
    ("calls", &[Field::Calls], "call count"),
    ("ncalls", &[Field::Calls], "call count"),
    ("cumtime", &[Field::Total], "cumulative time"),
    ("cumulative", &[Field::Total], "cumulative time"),
    ("filename", &[Field::File], "file name"),
    ("line", &[Field::Line], "line number"),
    ("module", &[Field::File], "file name"),
    ("name", &[Field::Name], "function name"),
    ("nfl", &[Field::Name, Field::File, Field::Line], "name/file/line"),
    ("pcalls", &[Field::Primitive], "primitive call count"),
    ("stdname", &[Field::Standard], "standard name"),
    ("time", &[Field::Own], "internal time"),
    ("tottime", &[Field::Own], "internal time"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Calls,
    Primitive,
    Own,
    Total,
    File,
    Line,
    Name,
    Standard,
}

impl Field {
    fn compare(self, left: &FunctionRow, right: &FunctionRow) -> Ordering {
        match self {
            Self::Calls => right.sums.calls.cmp(&left.sums.calls),
            Self::Primitive => right.sums.primitive.cmp(&left.sums.primitive),
            Self::Own => right.sums.own.cmp(&left.sums.own),
            Self::Total => right.sums.total.cmp(&left.sums.total),
            Self::File => left.function.file.cmp(&right.function.file),
            Self::Line => left.function.line.cmp(&right.function.line),
            Self::Name => left.function.name.cmp(&right.function.name),
            Self::Standard => left.function.text().cmp(&right.function.text()),
        }
    }
}

/// The fields of a key or of an unambiguous beginning of one; -1, 0, 1 and 2 are pstats' old numbers.
fn fields(key: &str) -> Option<(&'static [Field], &'static str)> {
    let key = match key {
        "-1" => "stdname",
        "0" => "calls",
        "1" => "time",
        "2" => "cumulative",
        other => other,
    };
    let mut owner = None;
    for &(word, fields, description) in &KEYS {
        // As in pstats, a word claims its beginnings from the longest down to the first that is taken.
        if word.starts_with(key) && !key.is_empty() {
            let free = (key.len()..=word.len()).rev().all(|length| {
                let beginning = &word[..length];
                let earlier = KEYS.iter().take_while(|(other, _, _)| *other != word);
                length == key.len() || !earlier.into_iter().any(|(other, _, _)| other.starts_with(beginning))
            });
            if free {
                if owner.is_some() {
                    return None;
                }
                owner = Some((fields, description));
            }
        }
    }
    owner
}

impl Functions {
    /// Sorts by pstats' keys, separated by commas; what is equal by all of them keeps its order.
    ///
    /// # Errors
    /// When a key is none, with those there are.
    pub fn sort(&mut self, keys: &str) -> Result<(), SortError> {
        let mut all = Vec::new();
        let mut descriptions = Vec::new();
        for key in keys.split(',').map(str::trim) {
            let Some((fields, description)) = fields(key) else {
                let valid = KEYS.iter().map(|(word, _, _)| *word).collect();
                let note = ", or a beginning that only one has";
                return Err(SortError { key: key.to_owned(), valid, note });
            };
            all.extend_from_slice(fields);
            descriptions.push(description);
        }
        self.rows.sort_by(|left, right| {
            all.iter()
                .map(|field| field.compare(left, right))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        });
        self.indices =
            self.rows.iter().enumerate().map(|(index, row)| (row.function.clone(), index)).collect();
        self.order = descriptions.join(", ");
        Ok(())
    }

    /// What the rows are sorted by, in words; empty when they are not.
    #[must_use]
    pub fn order(&self) -> &str {
        &self.order
    }

    /// The rows that pass all restrictions, and what pstats says about each that left some out.
    #[must_use]
    pub fn restrict(&self, restrictions: &[Restriction]) -> (Vec<&FunctionRow>, String) {
        let mut rows: Vec<&FunctionRow> = self.rows.iter().collect();
        let mut said = String::new();
        for restriction in restrictions {
            let before = rows.len();
            match restriction {
                Restriction::Count(count) => rows.truncate(*count),
                Restriction::Fraction(share) => {
                    let count = (rows.len() as f64 * share + 0.5) as usize;
                    rows.truncate(count);
                }
                Restriction::Pattern(pattern) => match Regex::new(pattern) {
                    Ok(regex) => rows.retain(|row| regex.is_match(&row.function.text())),
                    Err(_) => said += &format!("   <Invalid regular expression {}>\n", quoted(pattern)),
                },
            }
            if rows.len() != before {
                let after = rows.len();
                said +=
                    &format!("   List reduced from {before} to {after} due to restriction <{restriction}>\n");
            }
        }
        (rows, said)
    }

    /// The same with only the functions that pass all restrictions.
    #[must_use]
    pub fn restricted(&self, restrictions: &[Restriction]) -> Self {
        let rows: Vec<FunctionRow> = self.restrict(restrictions).0.into_iter().cloned().collect();
        let indices = rows.iter().enumerate().map(|(index, row)| (row.function.clone(), index)).collect();
        Self { rows, indices, order: self.order.clone() }
    }
}

/// Which functions to show, as pstats takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Restriction {
    /// The first so many.
    Count(usize),
    /// The first so many of all, from 0 to 1.
    Fraction(f64),
    /// Those whose `file:line(name)` matches.
    Pattern(String),
}

impl Restriction {
    /// Reads what a person typed: a whole number, a fraction below 1, or a regular expression.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if let Ok(count) = text.parse() {
            return Self::Count(count);
        }
        match text.parse::<f64>() {
            Ok(share) if (0.0..1.0).contains(&share) => Self::Fraction(share),
            _ => Self::Pattern(text.to_owned()),
        }
    }
}

impl std::fmt::Display for Restriction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Fraction(share) => write!(f, "{share:?}"),
            Self::Pattern(pattern) => f.write_str(&quoted(pattern)),
        }
    }
}

/// A text as Python's `repr` shows it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if letter == quote => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_keys_are_pstats_own() {
        // What pstats of Python 3.11 makes of each beginning.
        for (key, meant) in [
            ("cumulative", "cumulative time"),
            ("cumu", "cumulative time"),
            ("cu", "cumulative time"),
            ("ca", "call count"),
            ("nc", "call count"),
            ("t", ""),
            ("ti", "internal time"),
            ("to", "internal time"),
            ("f", "file name"),
            ("n", ""),
            ("na", "function name"),
            ("nf", "name/file/line"),
            ("p", "primitive call count"),
            ("s", "standard name"),
            ("c", ""),
            ("cum", ""),
            ("-1", "standard name"),
            ("", ""),
            ("times", ""),
        ] {
            assert_eq!(fields(key).map_or("", |(_, description)| description), meant, "{key}");
        }
    }

    #[test]
    fn restrictions_are_read_as_pstats_reads_them() {
        assert_eq!(Restriction::parse("10"), Restriction::Count(10));
        assert_eq!(Restriction::parse(".5"), Restriction::Fraction(0.5));
        assert_eq!(Restriction::parse("1.5"), Restriction::Pattern("1.5".into()));
        assert_eq!(Restriction::parse("foo|bar").to_string(), "'foo|bar'");
        assert_eq!(Restriction::parse("it's \\d").to_string(), "\"it's \\\\d\"");
    }
}
