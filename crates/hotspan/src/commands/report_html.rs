//! `hotspan report --html`: the dashboard with its data in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::CommandError;
use crate::{destination, files};
use hotspan_analyze::Model;

/// Writes the page of some traces. A file appears whole or not at all.
pub(crate) fn write(traces: &[(PathBuf, Model)], with_source: bool, html: &Path) -> Result<(), CommandError> {
    let page = hotspan_view::static_page(traces, with_source)
        .ok_or_else(|| CommandError::Usage("this hotspan was built without the web app".to_owned()))?;
    destination::write(html, page.as_ref())
}

/// The page of one trace, for a frame in a notebook; `None` when the program was built without the web app.
#[must_use]
pub fn shared_page(model: &Model, name: &str) -> Option<String> {
    hotspan_view::static_page(&[(PathBuf::from(name), Model::new(Arc::clone(model.trace())))], false)
}

/// The traces that a path names: those of a folder are the ranks of a job or runs to compare, each on its own.
pub(crate) fn traces(path: &Path) -> Result<Vec<(PathBuf, Model)>, CommandError> {
    let mut traces = Vec::new();
    files::for_each(&[path.to_owned()], |path, model, _| {
        traces.push((path.to_owned(), Model::new(Arc::clone(model.trace()))));
        Ok(())
    })?;
    Ok(traces)
}
