//! Which packages the program spent its imports on, and which of its lines led to them.

use hashbrown::HashMap;
use hotspan_store::{Duration, FrameKind, StackId, Trace, TrackId};

use crate::overview::folder::ProgramFolder;
use crate::overview::hot::program_line;
use crate::report::Table;
use crate::report::schema::{Schema, share, unless_empty};
use crate::wall_time::is_importing;

/// Imports below this share of the wall time, in percent, are not worth a table.
const LEAST: f64 = 3.0;
const ROWS: usize = 6;

/// The time of importing one package.
#[derive(Debug, Default)]
struct Package {
    /// In its own modules.
    own: Duration,
    /// In these and in all that they import.
    total: Duration,
    /// The same by the line of the program that led to it.
    by_line: HashMap<String, Duration>,
}

impl Package {
    /// The line that most of the time belongs to; empty where no line of the program did.
    fn line(&self) -> &str {
        let most = self.by_line.iter().max_by(|left, right| (left.1, right.0).cmp(&(right.1, left.0)));
        most.map_or("", |(line, _)| line)
    }
}

/// Packages by the time of importing them: their own modules, and all that these import.
pub(super) fn imports(trace: &Trace, main: Option<TrackId>, whole: Duration) -> Option<Table> {
    let folder = ProgramFolder::of(trace);
    let mut packages: HashMap<String, Package> = HashMap::new();
    let mut by_stack: HashMap<StackId, Option<Vec<Import>>> = HashMap::new();
    let mut all = Duration::ZERO;
    for sample in trace.profile().samples.rows().filter(|row| Some(row.track) == main) {
        let imports = by_stack.entry(sample.stack).or_insert_with(|| imported(trace, sample.stack));
        let Some(imports) = imports else { continue };
        let weight = Duration(sample.weight.0.max(0));
        all += weight;
        if let Some(innermost) = imports.first() {
            packages.entry_ref(innermost.package.as_str()).or_default().own += weight;
        }
        for (place, import) in imports.iter().enumerate() {
            // What is further out imported the package first.
            if imports[place + 1..].iter().any(|outer| outer.package == import.package) {
                continue;
            }
            let package = packages.entry_ref(import.package.as_str()).or_default();
            package.total += weight;
            if let Some(line) = line_of(trace, &folder, import.from) {
                *package.by_line.entry(line).or_default() += weight;
            }
        }
    }
    if all.0 as f64 * 100.0 < whole.0 as f64 * LEAST {
        return None;
    }
    let mut rows: Vec<(String, Package)> = packages.into_iter().collect();
    rows.sort_by(|(left, mine), (right, other)| {
        (other.total, other.own, left).cmp(&(mine.total, mine.own, right))
    });
    rows.truncate(ROWS);
    let table = Schema::<(String, Package)>::new("imports", "Imports that cost most")
        .duration("total", "Total", |row| row.1.total)
        .help("Time of the main thread in the package's modules and in all that these import.")
        .percent("share", "Share", move |row| share(row.1.total, whole))
        .help("The same as a share of the wall time.")
        .duration("own", "Self", |row| row.1.own)
        .help("Time of the main thread in the package's own modules.")
        .text("package", "Package", |row| &row.0)
        .help("The package, as import calls it.")
        .text("line", "Imported in", |row| unless_empty(row.1.line()))
        .help(
            "The line of the program that led to most of this time, by its own import or by what it imports.",
        )
        .if_any()
        .table(&rows);
    Some(table)
}

/// The innermost line of the program in a stack, as tables show it.
fn line_of(trace: &Trace, folder: &ProgramFolder, stack: StackId) -> Option<String> {
    let row = trace.profile().frames.row(program_line(trace, stack)?);
    Some(format!("{}:{}", folder.shorten(trace.str(row.file)), row.line))
}

/// A module that is being imported.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) package: String,
    /// The stack that it is imported from.
    from: StackId,
}

/// The modules that are being imported by their packages, innermost first; `None` when none is.
pub(super) fn imported(trace: &Trace, stack: StackId) -> Option<Vec<Import>> {
    if !is_importing(trace, stack) {
        return None;
    }
    let profile = trace.profile();
    let stacks = std::iter::successors(Some(stack), |&inner| profile.stacks.parent(inner));
    let rows: Vec<_> = stacks.map(|stack| (stack, profile.frames.row(profile.stacks.frame(stack)))).collect();
    let outermost = rows.iter().rposition(|(_, row)| trace.str(row.name) == "_find_and_load")?;
    let modules = rows[..outermost].iter().filter(|(_, row)| row.kind == FrameKind::Python);
    let modules = modules.filter(|(_, row)| trace.str(row.name) == "<module>");
    let import = |(stack, row): &(StackId, hotspan_store::FrameRow)| {
        let package = package_of_module(trace.str(row.file))?;
        Some(Import { package, from: profile.stacks.parent(*stack).unwrap_or(StackId::NONE) })
    };
    Some(modules.filter_map(import).collect())
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
