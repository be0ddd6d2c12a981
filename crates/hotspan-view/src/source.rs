//! Source text beside its numbers: files that the trace names, read when the page asks for one.
//!
//! What a trace names is not to be trusted: whoever made it may name any file. So only Python source is read, only a file whose
//! whole path is the place of a function in this trace, only a plain file, and only for the page of the user who started the server, who
//! may read the file anyway. The page cannot send it on: it may ask no other host. A page made to be shared has no source in it,
//! unless the one who makes it says so.

use hotspan_analyze::Model;
use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use axum::http::StatusCode;
use hotspan_store::FrameKind;

use crate::api::SourceData;
use crate::error::Refusal;

/// Larger files are data, not source.
const LARGEST: u64 = 4 << 20;

/// The text of a file that the trace names.
pub(crate) fn source(model: &Model, file: &str) -> Result<SourceData, Refusal> {
    let refuse =
        |status, message: String, hint: &str| Refusal { status, message, hint: Some(hint.to_owned()) };
    if !is_named(model, file) {
        let hint = "Only files that the trace itself names can be shown.";
        return Err(refuse(StatusCode::NOT_FOUND, format!("The trace does not name {file}."), hint));
    }
    let missing = |why: String| {
        let hint = "Look at the trace on the machine it was recorded on to see its source.";
        refuse(StatusCode::NOT_FOUND, format!("{file} cannot be shown: {why}."), hint)
    };
    let path = Path::new(file);
    if !path.is_absolute() {
        return Err(missing("the trace does not say in which folder it is".to_owned()));
    }
    // Links are followed, and what they lead to must be source as well.
    let whole = path.canonicalize().map_err(|error| missing(error.to_string()))?;
    let metadata = fs::metadata(&whole).map_err(|error| missing(error.to_string()))?;
    if !is_python(&whole) || !metadata.is_file() || metadata.len() > LARGEST {
        return Err(missing("it is no Python source".to_owned()));
    }
    let bytes = fs::read(&whole).map_err(|error| missing(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| missing("it is no text".to_owned()))?;
    let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let recorded = model.clock().unix_origin().filter(|&origin| origin > 0);
    let changed = written
        .zip(recorded)
        .is_some_and(|(written, recorded)| written.as_nanos() > u128::from(recorded.unsigned_abs()));
    Ok(SourceData { file: file.to_owned(), lines: text.lines().map(str::to_owned).collect(), changed })
}

/// Whether a function of this trace is in the file.
fn is_named(model: &Model, file: &str) -> bool {
    let is_frame = || {
        let mut rows = model.profile().frames.rows();
        rows.any(|row| row.kind == FrameKind::Python && model.str(row.file) == file)
    };
    // torch writes a function as `path/file.py(12): name`.
    let is_function = |text: &str| text.strip_prefix(file).is_some_and(|rest| rest.starts_with('('));
    is_python(Path::new(file)) && (is_frame() || model.strings().iter().any(is_function))
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}
