//! What a process has mapped where: lines of `/proc/<process>/maps`.

use std::ops::Range;

/// A stretch of memory that has a name: a file, or something of the kernel's such as `[vdso]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MappedRange {
    pub(crate) range: Range<u64>,
    /// Whether it may be executed.
    pub(crate) is_code: bool,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    pub(crate) inode: u64,
    pub(crate) path: String,
}

impl MappedRange {
    /// Reads a line, such as `7f00-7f01 r-xp 00001000 08:01 123   /usr/lib/x.so`; `None` when it has no name.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let is_code = fields.next()?.contains('x');
        let offset = hex(fields.next()?)?;
        let inode = fields.nth(1)?.parse().ok()?;
        let path = fields.next()?.trim_start();
        let range = hex(start)?..hex(end)?;
        (!path.is_empty()).then(|| Self { range, is_code, offset, inode, path: path.to_owned() })
    }

    /// Whether it is a file.
    pub(crate) fn is_file(&self) -> bool {
        self.path.starts_with('/')
    }
}

/// What this process has mapped; nothing where the system does not say.
pub(crate) fn own_memory_map() -> Vec<MappedRange> {
    memory_map(&"self")
}

/// What a process has mapped; nothing where the system does not say.
pub(crate) fn memory_map(process: &dyn std::fmt::Display) -> Vec<MappedRange> {
    let lines = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&lines).lines().filter_map(MappedRange::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let line = "7f0000001000-7f0000002000 r-xp 00001000 08:01 12345    /usr/lib/a b.so (deleted)";
        let mapped = MappedRange::parse(line).unwrap();
        assert_eq!(mapped.range, 0x7f00_0000_1000..0x7f00_0000_2000);
        assert_eq!((mapped.offset, mapped.inode), (0x1000, 12345));
        assert_eq!(mapped.path, "/usr/lib/a b.so (deleted)");
        assert!(mapped.is_code && mapped.is_file());
        assert!(!MappedRange::parse("7f00-7fff r--p 0 08:01 1 /usr/lib/a.so").unwrap().is_code);
        assert!(!MappedRange::parse("7f00-7f01 rw-p 00000000 00:00 0    [heap]").unwrap().is_file());
        assert!(MappedRange::parse("7f00-7f01 rw-p 00000000 00:00 0 ").is_none());
        assert!(MappedRange::parse("7f00-7fff r-xp 0 00:00 0").is_none());
    }
}
