//! Short names of Python files, as py-spy writes them: the part that names the package, such as `json/decoder.py`.

use std::collections::HashMap;
use std::path::Path;

/// Shortens names; remembers what it has found, since files are asked for many times.
#[derive(Debug, Default)]
pub(crate) struct ShortNames {
    known: HashMap<String, String>,
}

impl ShortNames {
    /// The name from the outermost folder of the package on, or that of the file alone.
    pub(crate) fn of(&mut self, file: &str) -> String {
        if let Some(short) = self.known.get(file) {
            return short.clone();
        }
        let path = Path::new(file);
        let outside = path.ancestors().skip(1).find(|folder| !folder.join("__init__.py").exists());
        let short = outside.and_then(|outside| path.strip_prefix(outside).ok()).unwrap_or(path);
        let short = short.to_string_lossy().into_owned();
        self.known.insert(file.to_owned(), short.clone());
        short
    }
}

#[cfg(test)]
mod tests {
    use super::ShortNames;

    #[test]
    fn packages_keep_their_folders() {
        let folder = std::env::temp_dir().join(format!("hotspan-short-names-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("package/inner")).unwrap();
        for package in ["package", "package/inner"] {
            std::fs::write(folder.join(package).join("__init__.py"), "").unwrap();
        }
        let mut names = ShortNames::default();
        let at = |name: &str| folder.join(name).display().to_string();
        assert_eq!(names.of(&at("package/inner/module.py")), "package/inner/module.py");
        assert_eq!(names.of(&at("script.py")), "script.py");
        assert_eq!(names.of("<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
        assert_eq!(names.of(""), "");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
