//! Which files the user means: files as they are, folders as all traces in them.

use std::path::{Path, PathBuf};

use hotspan_analyze::Model;
use hotspan_formats::{open_with, trace_stem};
use hotspan_store::visible;

use crate::error::CommandError;
use crate::progress::Bar;
use crate::run_folder::ABOUT;

/// The traces that `paths` name, folders expanded, in order.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            files[before..].sort();
            if files.len() == before {
                return Err(CommandError::NoTraces(path.display().to_string()));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let in_folder = |error| hotspan_formats::OpenError {
        path: folder.to_owned(),
        error: hotspan_formats::ImportError::Io(error),
    };
    for entry in std::fs::read_dir(folder).map_err(in_folder)? {
        let entry = entry.map_err(in_folder)?;
        let path = entry.path();
        // Links are not followed, so a folder that contains itself ends.
        let kind = entry.file_type().map_err(in_folder)?;
        if kind.is_dir() {
            walk(&path, files)?;
        } else if kind.is_file()
            && trace_stem(&entry.file_name().to_string_lossy()).is_some()
            && !is_about_a_run(&path)
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file is what a run that was killed says of itself, beside its recordings.
fn is_about_a_run(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    path.file_name().is_some_and(|name| name == ABOUT) && folder.to_string_lossy().contains(".spool")
}

/// Opens the traces that `paths` name, one after the other. One of several that cannot be opened is reported and
/// passed over, and makes the whole fail in the end.
pub(crate) fn for_each(
    paths: &[PathBuf],
    mut action: impl FnMut(&Path, &Model, Position) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let paths = expand(paths)?;
    let several = paths.len() > 1;
    let (mut opened, mut failed) = (0, 0);
    for path in &paths {
        match open(path) {
            Ok(model) => {
                action(path, &model, Position { first: opened == 0, several })?;
                opened += 1;
            }
            Err(error) if several => {
                crate::error::report(&error);
                failed += 1;
            }
            Err(error) => return Err(error),
        }
    }
    if failed > 0 { Err(CommandError::SomeFailed { failed, of: paths.len() }) } else { Ok(()) }
}

/// Which of several traces one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// Nothing was shown before it.
    pub(crate) first: bool,
    /// There are more.
    pub(crate) several: bool,
}

/// Opens one trace with a progress bar, and says on stderr what is missing in it.
pub(crate) fn open(path: &Path) -> Result<Model, CommandError> {
    let mut bar = Bar::new(&path.display().to_string());
    let trace = open_with(path, &mut bar);
    bar.clear();
    let trace = trace?;
    for loss in trace.losses().serious() {
        crate::progress::say(&format!("note: {}: {loss}", path.display()));
    }
    Ok(Model::new(trace))
}

/// How a trace is headed when there are several.
pub(crate) fn heading(path: &Path, model: &Model) -> String {
    let distributed = model.distributed().unwrap_or_default();
    let path = path.display().to_string();
    let path = visible(&path);
    match (distributed.rank, distributed.world_size) {
        (Some(rank), Some(size)) => format!("{path} (rank {rank} of {size})"),
        (Some(rank), None) => format!("{path} (rank {rank})"),
        _ => path.into_owned(),
    }
}

/// Whether a recording can be written there: asked before the program starts, not when it has ended.
#[cfg(feature = "collect")]
pub(crate) fn check_place(path: &Path) -> Result<(), CommandError> {
    hotspan_formats::check_place(path)
        .map_err(|refused| CommandError::Unwritable { place: refused.path, source: refused.error })
}
