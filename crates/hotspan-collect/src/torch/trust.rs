//! Whether another user could have put something into a folder, or could before it is loaded.
//!
//! That takes more than the folder: who can write to one above it can put another in its place. So every folder on the way must be
//! ours or the system's, and be closed to others, or be such that others cannot move what is ours (the sticky bit of `/tmp`). They
//! are looked at from the top: what was found to be closed stays as it was found.

use std::ffi::{CStr, OsStr};
use std::fs::{Metadata, symlink_metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Nobody but its owner and root can write.
const OTHERS_WRITE: u32 = 0o022;
const OUTSIDERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
/// Who owns what has no owner in this namespace, unless the system says otherwise.
const NOBODY: u32 = 65_534;

/// A file, without links in its path, that only this user or root can have written.
pub(super) fn check_file(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is no plain file"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = check_folder(folder)?.join(name);
    let metadata = symlink_metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    check_contents(&metadata)?;
    Ok(path)
}

/// A folder, without links in its path, that only this user or root can write to or replace.
pub(super) fn check_folder(folder: &Path) -> io::Result<PathBuf> {
    // A link is followed where it stands in a folder of the user's own, not where everybody can make one.
    let link = symlink_metadata(folder)?;
    if link.is_symlink() && !is_ours_or_root(&link) {
        return Err(io::Error::other("it is a link of another user"));
    }
    let folder = folder.canonicalize()?;
    let ancestors: Vec<&Path> = folder.ancestors().skip(1).collect();
    for ancestor in ancestors.iter().rev() {
        check_above(&symlink_metadata(ancestor)?)
            .map_err(|error| io::Error::other(format!("{}: {error}", ancestor.display())))?;
    }
    let metadata = symlink_metadata(&folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("it is no folder"));
    }
    check_contents(&metadata)?;
    Ok(folder)
}

/// What is loaded, or the folder around it.
fn check_contents(metadata: &Metadata) -> io::Result<()> {
    if !is_ours_or_root(metadata) {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & OTHERS_WRITE != 0 {
        return Err(io::Error::other("other users can write to it"));
    }
    Ok(())
}

/// A folder further up: others must not be able to move what is in it.
fn check_above(metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_dir() {
        return Err(io::Error::other("it was replaced"));
    }
    if !is_ours_or_root(metadata) && !is_unmapped(metadata.uid()) {
        return Err(io::Error::other("it belongs to another user"));
    }
    let mode = metadata.mode();
    // Many systems give each user a group of the same number, and leave folders open to that group.
    let own_group = metadata.uid() == user() && metadata.gid() == metadata.uid();
    let opened = mode & if own_group { OUTSIDERS_WRITE } else { OTHERS_WRITE };
    if opened != 0 && mode & STICKY == 0 {
        return Err(io::Error::other("other users can write to it"));
    }
    Ok(())
}

/// The user that this process acts for.
pub(super) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

fn is_ours_or_root(metadata: &Metadata) -> bool {
    metadata.uid() == user() || metadata.uid() == 0
}

/// Whether a user has no number in this container: then it is the system around it, which nobody in here can act for.
fn is_unmapped(owner: u32) -> bool {
    let number = |text: String| text.trim().parse().ok();
    let nobody = std::fs::read_to_string("/proc/sys/fs/overflowuid").ok().and_then(number).unwrap_or(NOBODY);
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return false };
    owner == nobody && !is_mapped(&map, owner)
}

/// Whether a map of users has one: lines of first number inside, first number outside, count.
fn is_mapped(map: &str, owner: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
        let (first, count) = (numbers.next(), numbers.nth(1));
        matches!((first, count), (Some(first), Some(count)) if (first..first + count).contains(&owner.into()))
    })
}

/// The home that the system knows of this user, for programs that run without HOME.
pub(super) fn home() -> Option<PathBuf> {
    let mut buffer = vec![0_u8; 16 << 10];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: there is room for the entry and, of the length that is told, for its texts.
    let status = unsafe {
        libc::getpwuid_r(user(), entry.as_mut_ptr(), buffer.as_mut_ptr().cast(), buffer.len(), &raw mut found)
    };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: it was found, so the entry was written.
    let home = unsafe { entry.assume_init() }.pw_dir;
    if home.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a text in the buffer, which ends in a zero and lives here.
    let home = PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(home) }.to_bytes()));
    (home.is_absolute() && home != Path::new("/")).then_some(home)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hotspan-trust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("above/cache")).unwrap();
        folder
    }

    #[test]
    fn who_can_replace_a_folder_above_is_not_trusted() {
        let folder = scratch("above");
        let cache = folder.join("above/cache");
        check_folder(&cache).unwrap();
        fs::set_permissions(folder.join("above"), Permissions::from_mode(0o777)).unwrap();
        assert!(check_folder(&cache).unwrap_err().to_string().contains("above: other users can write"));
        fs::set_permissions(folder.join("above"), Permissions::from_mode(0o1777)).unwrap();
        check_folder(&cache).unwrap();
        if user() == 0 {
            std::os::unix::fs::chown(folder.join("above"), Some(12_345), None).unwrap();
            assert!(check_folder(&cache).unwrap_err().to_string().contains("another user"));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_are_resolved_once() {
        let folder = scratch("links");
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("above/cache"), &link).unwrap();
        assert_eq!(check_folder(&link).unwrap(), folder.join("above/cache").canonicalize().unwrap());
        if user() == 0 {
            std::os::unix::fs::lchown(&link, Some(12_345), None).unwrap();
            assert!(check_folder(&link).unwrap_err().to_string().contains("link of another user"));
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn users_of_a_container_are_told_from_those_outside() {
        assert!(is_mapped("         0          0 4294967295\n", NOBODY));
        assert!(!is_mapped("      1000       1000          1\n", NOBODY));
        assert!(is_mapped("0 100000 1000\n65534 200000 1\n", NOBODY));
    }
}
