//! Which packages the program spent its imports on.

use hashbrown::{HashMap, HashSet};
use hotspan_store::{Duration, FrameKind, StackId, Trace, TrackId};

use crate::report::Table;
use crate::report::schema::{Schema, share};
use crate::wall_time::is_importing;

/// Imports below this share of the wall time, in percent, are not worth a table.
const LEAST: f64 = 3.0;
const ROWS: usize = 6;

/// Packages by the time of importing them: their own modules, and all that these import.
pub(super) fn imports(trace: &Trace, main: Option<TrackId>, whole: Duration) -> Option<Table> {
    let mut times: HashMap<String, (Duration, Duration)> = HashMap::new();
    let mut by_stack: HashMap<StackId, Option<Vec<String>>> = HashMap::new();
    let mut all = Duration::ZERO;
    for sample in trace.profile().samples.rows().filter(|row| Some(row.track) == main) {
        let packages = by_stack.entry(sample.stack).or_insert_with(|| imported(trace, sample.stack));
        let Some(packages) = packages else { continue };
        let weight = Duration(sample.weight.0.max(0));
        all += weight;
        if let Some(innermost) = packages.first() {
            times.entry_ref(innermost.as_str()).or_default().0 += weight;
        }
        for package in packages.iter().collect::<HashSet<_>>() {
            times.entry_ref(package.as_str()).or_default().1 += weight;
        }
    }
    if all.0 as f64 * 100.0 < whole.0 as f64 * LEAST {
        return None;
    }
    let mut rows: Vec<_> = times.into_iter().collect();
    rows.sort_by(|(left, mine), (right, other)| (other.1, other.0, left).cmp(&(mine.1, mine.0, right)));
    rows.truncate(ROWS);
    let table = Schema::<(String, (Duration, Duration))>::new("imports", "Imports that cost most")
        .duration("total", "Total", |row| row.1.1)
        .help("Time of the main thread in the package's modules and in all that these import.")
        .percent("share", "Share", move |row| share(row.1.1, whole))
        .help("The same as a share of the wall time.")
        .duration("own", "Self", |row| row.1.0)
        .help("Time of the main thread in the package's own modules.")
        .text("package", "Package", |row| &row.0)
        .help("The package, as import calls it.")
        .table(&rows);
    Some(table)
}

/// The packages whose modules are being imported, innermost first; `None` when none is.
pub(super) fn imported(trace: &Trace, stack: StackId) -> Option<Vec<String>> {
    if !is_importing(trace, stack) {
        return None;
    }
    let profile = trace.profile();
    let frames: Vec<_> = profile.stacks.frames(stack).map(|frame| profile.frames.row(frame)).collect();
    let is_python = |row: &&hotspan_store::FrameRow| row.kind == FrameKind::Python;
    let outermost = frames.iter().rposition(|row| trace.str(row.name) == "_find_and_load")?;
    let modules = frames[..outermost].iter().filter(is_python);
    let modules = modules.filter(|row| trace.str(row.name) == "<module>").map(|row| trace.str(row.file));
    Some(modules.filter_map(package_of_module).collect())
}

/// The package of a source file: what people write after `import`. Text that modules make and run is of no package.
fn package_of_module(file: &str) -> Option<String> {
    let installed = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| file.split_once(folder));
    if let Some((_, inside)) = installed {
        return Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".py").to_owned());
    }
    if file.contains("/lib/python3") || file.starts_with("<frozen ") {
        return Some("standard library".to_owned());
    }
    (!file.starts_with('<')).then(|| file.rsplit('/').next().unwrap_or(file).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_called_as_in_import() {
        let package = |file| package_of_module(file).unwrap_or_default();
        assert_eq!(package("/v/lib/python3.11/site-packages/torch/nn/__init__.py"), "torch");
        assert_eq!(package("/v/lib/python3.11/site-packages/six.py"), "six");
        assert_eq!(package("/usr/lib/python3.11/json/decoder.py"), "standard library");
        assert_eq!(package("/home/me/model.py"), "model.py");
        assert_eq!(package_of_module("<string>"), None);
    }
}
