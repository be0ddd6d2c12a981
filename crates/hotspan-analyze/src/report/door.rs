//! Doors: what a row of a table stands for, in words that an address can hold. [`crate::thing`] opens them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// Longer ones would not fit into the first line of a request.
const LONGEST: usize = 3000;

/// What a row stands for: a kind of thing, and what tells it from others of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Door {
    /// The kind: `operator`, `kernel` …
    pub kind: String,
    /// What tells it from others, by name.
    pub fields: BTreeMap<String, String>,
}

impl Door {
    /// To a thing of this kind.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), fields: BTreeMap::new() }
    }

    /// The same with one more thing that tells it from others.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The same, where there is something to tell.
    #[must_use]
    pub fn with_any(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// What it says under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The door as the query of an address: `kind=operator&name=aten%3A%3Amm`. `None` where that would be too long.
    #[must_use]
    pub fn query(&self) -> Option<String> {
        let mut out = String::from("kind=");
        encode(&self.kind, &mut out);
        for (name, value) in &self.fields {
            out.push('&');
            encode(name, &mut out);
            out.push('=');
            encode(value, &mut out);
            if out.len() > LONGEST {
                return None;
            }
        }
        Some(out)
    }
}

/// A door leads to one thing: those that several rows have lead nowhere.
pub(crate) fn unless_shared(doors: Vec<Option<Door>>) -> Vec<Option<Door>> {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for door in doors.iter().flatten() {
        if !seen.insert(door) {
            shared.insert(door.clone());
        }
    }
    doors.into_iter().map(|door| door.filter(|door| !shared.contains(door))).collect()
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_fits_an_address() {
        let door = Door::new("operator").with("name", "aten::mm ü&").with_any("module", None::<String>);
        assert_eq!(door.query().as_deref(), Some("kind=operator&name=aten%3A%3Amm%20%C3%BC%26"));
        assert_eq!(Door::new("kernel").with("name", "x".repeat(LONGEST)).query(), None);
    }

    #[test]
    fn a_door_leads_to_one_thing() {
        let (one, two) = (Some(Door::new("one")), Some(Door::new("two")));
        assert_eq!(unless_shared(vec![one.clone(), two.clone(), None, one]), [None, two, None, None]);
    }
}
