//! Downloads: the trace, or a stretch of it, in the formats of other viewers.

use axum::body::Bytes;
use axum::http::StatusCode;
use hotspan_analyze::Model;
use hotspan_formats::EXPORTERS;
use hotspan_formats::export::gzipped;

use crate::error::Refusal;
use crate::routes::Content;

/// What the page offers, by the names of the exporters. JSON is compressed: viewers open it so, and it is ten times smaller.
const OFFERED: [(&str, bool); 4] =
    [("chrome", true), ("speedscope", true), ("collapsed", false), ("hotspan", false)];

/// A trace in the format of this name.
pub(crate) fn export(model: &Model, format: &str) -> Result<Content, Refusal> {
    let unknown = || Refusal::not_found(format!("There is no download {format}."));
    let (_, compressed) = OFFERED.into_iter().find(|(name, _)| *name == format).ok_or_else(unknown)?;
    let exporter = EXPORTERS.iter().find(|exporter| exporter.name() == format).ok_or_else(unknown)?;
    let mut bytes = Vec::new();
    let written = match compressed {
        true => gzipped(model, *exporter).map(|compressed| bytes = compressed),
        false => exporter.write(model, &mut bytes),
    };
    written.map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Content { kind: "application/octet-stream", bytes: Bytes::from(bytes) })
}
