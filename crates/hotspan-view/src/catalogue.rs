//! The traces that can be opened: files as named, and what is in named folders, looked at anew on each listing.
//!
//! Requests name a trace by its number here, so nothing outside of what the user opened can be asked for.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use hotspan_formats::{trace_stem, worker};

use crate::api::{Run, RunList};
use crate::dropped::Dropped;
use crate::error::ViewError;

/// More than anybody reads; a folder of data that is no log directory must not stop the server.
const MOST: usize = 10_000;
const DEEPEST: usize = 12;

/// The opened paths and the numbers of their traces.
#[derive(Debug)]
pub(crate) struct Catalogue {
    roots: Vec<PathBuf>,
    pub(crate) dropped: Dropped,
    numbered: Mutex<NumberedPaths>,
}

#[derive(Debug, Default)]
struct NumberedPaths {
    paths: Vec<PathBuf>,
    ids: HashMap<PathBuf, u32>,
}

impl Catalogue {
    /// Of these files and folders.
    pub(crate) fn of(paths: &[PathBuf]) -> Result<Self, ViewError> {
        let mut roots = Vec::new();
        for path in paths {
            let whole = path
                .canonicalize()
                .map_err(|error| ViewError::Missing { path: path.display().to_string(), error })?;
            roots.push(whole);
        }
        Ok(Self { roots, dropped: Dropped::default(), numbered: Mutex::default() })
    }

    /// Whether the first of the paths is a trace by itself, and no folder.
    pub(crate) fn begins_with_a_file(&self) -> bool {
        self.roots.first().is_some_and(|root| !root.is_dir())
    }

    /// The file of a number that was listed.
    pub(crate) fn path(&self, id: u32) -> Option<PathBuf> {
        let numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        numbered.paths.get(id as usize).cloned()
    }

    /// What there is now.
    pub(crate) fn list(&self) -> RunList {
        let mut runs = Vec::new();
        let mut unreadable = Vec::new();
        for root in &self.roots {
            if root.is_dir() {
                let mut files = Vec::new();
                walk(root, DEEPEST, &mut files, &mut unreadable);
                files.sort();
                runs.extend(files.iter().map(|file| self.describe(root, file)));
            } else {
                runs.push(self.describe(root.parent().unwrap_or(root), root));
            }
        }
        runs.extend(self.dropped.list().iter().map(|(path, name)| self.describe_dropped(path, name)));
        let mut notes = Vec::new();
        if runs.len() >= MOST {
            notes.push(format!("Only the first {MOST} traces are listed; open a folder further down."));
        }
        if let Some(first) = unreadable.first() {
            notes.push(format!("{} folders cannot be read, {first} for one.", unreadable.len()));
        }
        if runs.is_empty() {
            notes.push(
                "There is no trace here yet. Those that a program writes appear by themselves.".to_owned(),
            );
        }
        RunList { runs, note: (!notes.is_empty()).then(|| notes.join(" ")) }
    }

    /// A file that was dropped onto the page.
    pub(crate) fn describe_dropped(&self, path: &Path, name: &str) -> Run {
        Run { run: "dropped".to_owned(), ..self.numbered(path, name) }
    }

    /// Words about a file, with the name that people know it by.
    pub(crate) fn with_names(&self, words: String, path: &Path) -> String {
        match self.dropped.name(path) {
            Some(name) => words.replace(&path.display().to_string(), &name),
            None => words,
        }
    }

    fn describe(&self, root: &Path, path: &Path) -> Run {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = path.parent().and_then(|parent| parent.strip_prefix(root).ok());
        let run = match folder.map(|folder| folder.to_string_lossy().into_owned()) {
            Some(folder) if !folder.is_empty() => folder,
            _ => root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        Run { run, ..self.numbered(path, &file) }
    }

    /// A file with its number.
    fn numbered(&self, path: &Path, file: &str) -> Run {
        let (bytes, modified) = stamp(path).unwrap_or_default();
        let (worker, cycle) = worker(file);
        let (worker, cycle) = (worker.to_owned(), cycle.map(str::to_owned));
        let mut numbered = self.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        let id = match numbered.ids.get(path) {
            Some(&id) => id,
            None => {
                let id = numbered.paths.len() as u32;
                numbered.paths.push(path.to_owned());
                numbered.ids.insert(path.to_owned(), id);
                id
            }
        };
        let (run, file) = (String::new(), file.to_owned());
        Run { id, run, worker, cycle, file, bytes, modified: modified.as_secs() }
    }
}

/// Size and time of the last change; both change when a file is written again.
pub(crate) fn stamp(path: &Path) -> std::io::Result<(u64, Duration)> {
    let metadata = fs::metadata(path)?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok((metadata.len(), modified.unwrap_or_default()))
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, unreadable: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        unreadable.push(folder.display().to_string());
        return;
    };
    for entry in entries.flatten() {
        if files.len() >= MOST {
            return;
        }
        // Links are not followed: they may lead out of what was opened.
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() && depth > 0 && !name.starts_with('.') {
            walk(&entry.path(), depth - 1, files, unreadable);
        } else if kind.is_file() && trace_stem(&name).is_some() {
            files.push(entry.path());
        }
    }
}
