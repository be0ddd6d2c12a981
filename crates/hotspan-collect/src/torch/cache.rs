//! Where compiled hooks are kept: in a folder that nobody else can write to, for what lies there is loaded and run.
//!
//! Whether that is so is [`trust`]'s to say.

use std::fs::{DirBuilder, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::torch::trust;

/// The folders that may hold compiled hooks, the best one first. One that a person named stands alone.
pub(super) fn folders() -> Vec<PathBuf> {
    folders_of(|name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

fn folders_of(variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    if let Some(named) = variable("HOTSPAN_CACHE_DIR") {
        return vec![named];
    }
    // A home that is not there is not ours to make.
    let home = variable("HOME").or_else(trust::home).filter(|home| home.is_dir());
    let home = home.map(|home| home.join(".cache/hotspan"));
    let caches = variable("XDG_CACHE_HOME").map(|caches| caches.join("hotspan"));
    let temporary = variable("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    // Everybody can foresee this name, and make something of that name first: then it is not used.
    let own = temporary.join(format!("hotspan-{}", trust::user()));
    let folders = caches.into_iter().chain(home).chain([own]);
    folders.filter(|folder| folder.is_absolute()).collect()
}

/// Makes the folder, when it is not there, and says why hooks cannot be kept in it.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A folder of our own may have been made with a lax umask; what others put there is refused file by file.
    let metadata = std::fs::symlink_metadata(folder)?;
    if metadata.is_dir()
        && metadata.uid() == trust::user()
        && metadata.mode() & 0o022 != 0
        && is_ours_by_name(folder)
    {
        std::fs::set_permissions(folder, Permissions::from_mode(metadata.mode() & 0o755))?;
    }
    trust::check_folder(folder)?;
    if !runs_programs(folder)? {
        return Err(io::Error::other("its file system runs no programs (noexec)"));
    }
    Ok(())
}

/// The compiled hooks of that name, where they lie in one of the folders and can be trusted.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    folders().into_iter().find_map(|folder| trust::check_file(&folder.join(name)).ok())
}

/// A new folder to work in, which is there for nobody else and was not there before.
pub(super) fn make_work_folder(folder: &Path) -> io::Result<PathBuf> {
    let random = RandomState::new().hash_one(folder);
    let work = folder.join(format!("build-{random:016x}"));
    DirBuilder::new().mode(0o700).create(&work)?;
    Ok(work)
}

/// Whether hotspan gave the folder its name, and may change who can write to it.
fn is_ours_by_name(folder: &Path) -> bool {
    std::env::var_os("HOTSPAN_CACHE_DIR").is_none_or(|named| Path::new(&named) != folder)
}

fn runs_programs(folder: &Path) -> io::Result<bool> {
    let name = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the name ends in a zero, and there is room for the answer.
    if unsafe { libc::statvfs(name.as_ptr(), facts.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it wrote the answer.
    Ok(unsafe { facts.assume_init() }.f_flag & libc::ST_NOEXEC == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("hotspan-cache-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        make(&folder).unwrap();
        folder
    }

    #[test]
    fn the_folder_that_is_named_stands_alone_and_without_a_home_there_is_another() {
        let named = |name: &str| (name == "HOTSPAN_CACHE_DIR").then(|| PathBuf::from("/named"));
        assert_eq!(folders_of(named), [Path::new("/named")]);
        let homeless = folders_of(|name| (name == "TMPDIR").then(|| PathBuf::from("/scratch")));
        // The home that the system knows comes first, where there is one.
        assert!(homeless.last().unwrap().starts_with("/scratch"), "{homeless:?}");
        let usual = folders_of(|name| (name == "HOME").then(std::env::temp_dir));
        assert_eq!(usual[0], std::env::temp_dir().join(".cache/hotspan"));
        assert_eq!(usual.len(), 2);
        let missing = folders_of(|name| (name == "HOME").then(|| PathBuf::from("/nonexistent")));
        assert_eq!(missing.len(), 1);
    }

    #[test]
    fn what_others_can_write_is_not_trusted() {
        let folder = scratch("others");
        let file = folder.join("hooks.so");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        trust::check_file(&file).unwrap();

        std::fs::set_permissions(&file, Permissions::from_mode(0o777)).unwrap();
        assert!(trust::check_file(&file).unwrap_err().to_string().contains("can write"));
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();

        std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert!(trust::check_file(&file).unwrap_err().to_string().contains("can write"));
        make(&folder).unwrap(); // ours: closed to others again
        trust::check_file(&file).unwrap();

        let link = folder.join("link.so");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(trust::check_file(&link).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_of_another_user_is_not_trusted() {
        // SAFETY: takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return; // only root can give a folder away
        }
        let folder = scratch("foreign");
        let file = folder.join("hooks.so");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&folder, Some(12_345), None).unwrap();
        assert!(trust::check_file(&file).unwrap_err().to_string().contains("another user"));
        assert!(make(&folder).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
