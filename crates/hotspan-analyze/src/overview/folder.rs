//! One spelling for each file: `./train.py`, `train.py` and `/home/me/train.py` are one file, shown as seen from the folder that the
//! program was started in.

use std::borrow::Cow;

use hotspan_store::Trace;

use crate::wall_time::RUN_KEY;

/// The folder that the program was started in, where the recording knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramFolder(Option<String>);

impl ProgramFolder {
    pub(crate) fn of(trace: &Trace) -> Self {
        let run = trace.metadata().value(RUN_KEY);
        Self(run.and_then(|run| run.get("folder")?.as_str().map(|folder| format!("{folder}/"))))
    }

    /// The path of a file from the root on, without detours. What is no file stays as it is.
    pub(crate) fn whole<'a>(&self, file: &'a str) -> Cow<'a, str> {
        if file.is_empty() || file.starts_with('<') {
            return Cow::Borrowed(file);
        }
        let absolute = match &self.0 {
            Some(folder) if !file.starts_with('/') => Cow::Owned(format!("{folder}{file}")),
            _ => Cow::Borrowed(file),
        };
        let has_detours = absolute.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
        if !has_detours && !absolute.starts_with('.') {
            return absolute;
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in absolute.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                _ => parts.push(part),
            }
        }
        let root = if absolute.starts_with('/') { "/" } else { "" };
        Cow::Owned(format!("{root}{}", parts.join("/")))
    }

    /// The same as seen from the folder.
    pub(crate) fn shorten(&self, file: &str) -> String {
        let whole = self.whole(file);
        let inside = self.0.as_ref().and_then(|folder| whole.strip_prefix(folder.as_str()));
        inside.unwrap_or(&whole).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_spelling() {
        let folder = ProgramFolder(Some("/home/me/".to_owned()));
        for file in
            ["train.py", "./train.py", "/home/me/train.py", "/home/me/./train.py", "/home/me/x/../train.py"]
        {
            assert_eq!(folder.shorten(file), "train.py", "{file}");
            assert_eq!(folder.whole(file), "/home/me/train.py", "{file}");
        }
        assert_eq!(folder.shorten("/usr/lib/x.py"), "/usr/lib/x.py");
        assert_eq!(folder.shorten("../x.py"), "/home/x.py");
        assert_eq!(folder.shorten("<string>"), "<string>");
        assert_eq!(ProgramFolder(None).shorten("./a/b.py"), "a/b.py");
    }
}
