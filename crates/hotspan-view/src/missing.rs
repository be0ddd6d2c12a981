//! What is missing from a trace, in the words of the report: every view says it.

use hotspan_analyze::Model;
use hotspan_analyze::overview::missing;

use crate::api::MissingData;

/// What is missing from a trace.
pub(crate) fn missing_data(model: &Model) -> MissingData {
    let missing = missing(model);
    MissingData { damage: missing.damage, unrecorded: missing.unrecorded }
}
