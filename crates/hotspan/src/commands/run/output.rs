//! Where a recording goes: a name that nobody has, and the folder that the processes write to meanwhile.
//!
//! Who makes the folder `NAME.hotspan.spool` has the name. It goes away only after the recording is written, so of two runs that
//! start at once each gets a name of its own, and none replaces a recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hotspan_formats::{ExportError, save_by};
use hotspan_store::file::FileError;
use serde_json::Value;

use super::spool;
use crate::error::CommandError;
use crate::files::check_place;
use crate::run_folder::Recordings;

/// How many recordings of one program lie in a folder at most.
const MOST: u32 = 10_000;

/// A recording to be.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) path: PathBuf,
    pub(super) spool: PathBuf,
    /// What the program is called, where nobody has said how to call the file.
    name: Option<String>,
}

impl Output {
    /// The file that was asked for. It is replaced, as with other tools.
    pub(super) fn asked_for(path: &Path) -> Result<Self, CommandError> {
        Ok(Self { path: path.to_owned(), spool: spool::make(path)?, name: None })
    }

    /// A file in this folder, named after the program: `train.hotspan`, or `train-2.hotspan` where that is taken.
    pub(super) fn named(name: &str) -> Result<Self, CommandError> {
        let (path, spool) = claim(name).map_err(|source| CommandError::Unwritable {
            place: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            source,
        })?;
        check_place(&path).inspect_err(|_| drop(fs::remove_dir(&spool)))?;
        // The program may change its directory.
        let spool = spool.canonicalize().unwrap_or(spool);
        Ok(Self { path, spool, name: Some(name.to_owned()) })
    }

    /// Writes the recording, under another name when the program has made a file of that name meanwhile.
    pub(super) fn save(&mut self, recordings: &Recordings, facts: &Value) -> Result<(), ExportError> {
        let mut second = None;
        if let Some(name) = self.name.as_ref().filter(|_| self.path.exists())
            && let Ok((path, spool)) = claim(name)
        {
            self.path = path;
            second = Some(spool);
        }
        let saved = save_by(&self.path, |output| {
            recordings.write(facts, output).map_err(|error| match error {
                FileError::Write { error } => error,
                other => io::Error::other(other),
            })
        });
        if let Some(spool) = second {
            let _ = fs::remove_dir(spool);
        }
        saved
    }

    /// Takes away what the processes wrote, once the recording has it.
    pub(super) fn remove_spool(&self) {
        let _ = fs::remove_dir_all(&self.spool);
    }

    /// Takes away what was made, since nothing will be recorded.
    pub(super) fn abandon(&self) {
        self.remove_spool();
    }
}

/// The first name that nobody has, and its folder.
fn claim(name: &str) -> io::Result<(PathBuf, PathBuf)> {
    for number in 1..MOST {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = PathBuf::from(format!("{name}{suffix}.hotspan"));
        let spool = PathBuf::from(format!("{name}{suffix}.hotspan.spool"));
        match spool::make_folder(&spool) {
            // Only now: who had the folder before has written the file.
            Ok(()) if fs::symlink_metadata(&path).is_ok() => fs::remove_dir(&spool)?,
            Ok(()) => return Ok((path, spool)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("too many recordings like {name}-2.hotspan: remove some")))
}
