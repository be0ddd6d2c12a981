//! The files of the web app, embedded when the program was built.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

const UNBUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>hotspan</title>\
<h1>The web app is not in this build</h1>\
<p>hotspan was built without Node, so the dashboard has no pages. In a clone of hotspan, with Node 20 or newer, run \
<code>make dev</code>, then <code>hotspan view</code> again.</p>\
<p>The same numbers are printed by <code>hotspan report</code>, <code>stats</code>, <code>steps</code>, <code>gpu</code> \
and <code>advise</code>.</p></html>";

/// A file and its content type; the empty name is the page itself.
pub(crate) fn file(name: &str) -> Option<(&'static [u8], &'static str)> {
    let name = if name.is_empty() { "index.html" } else { name };
    if FILES.is_empty() && name == "index.html" {
        return Some((UNBUILT.as_bytes(), "text/html; charset=utf-8"));
    }
    let (_, bytes) = FILES.iter().find(|(known, _)| *known == name)?;
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    Some((bytes, kind))
}

/// The text of the first file with this ending: the build makes one script and one style.
pub(crate) fn with_ending(ending: &str) -> Option<&'static str> {
    let (_, bytes) = FILES.iter().find(|(name, _)| name.ends_with(ending))?;
    std::str::from_utf8(bytes).ok()
}
