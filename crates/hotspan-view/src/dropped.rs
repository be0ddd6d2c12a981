//! Files that were dropped onto the page.
//!
//! Their bytes go to files that have no name: nobody else can open them, and they are gone when the server ends, however it ends. They are
//! opened again by their number in `/proc/self/fd`, so each remains open here.

use std::fs::{File, OpenOptions};
use std::future::poll_fn;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use hyper::body::Body as _;

use crate::error::Refusal;

/// What all of them may take together, and how many there may be. They last as long as the server.
const MOST_BYTES: u64 = 8 << 30;
const MOST_FILES: usize = 16;
/// Letters of a name.
const LONGEST_NAME: usize = 200;
/// So much is written at once.
const BLOCK: usize = 1 << 20;
/// Where a process finds what it has open.
const OPEN_FILES: &str = "/proc/self/fd";

/// A file that was dropped.
#[derive(Debug)]
struct DroppedFile {
    name: String,
    bytes: u64,
    path: PathBuf,
    /// While it is open, the path leads to it.
    _open: File,
}

/// All files that were dropped.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    files: Mutex<Vec<DroppedFile>>,
}

impl Dropped {
    /// Takes a file in, and says where it can be read.
    pub(crate) async fn receive(&self, name: &str, body: Body) -> Result<PathBuf, Refusal> {
        let taken = self.room()?;
        let (open, bytes) = stored(body, MOST_BYTES - taken).await?;
        let path = path_of(&open)?;
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push(DroppedFile { name: plain_name(name), bytes, path: path.clone(), _open: open });
        Ok(path)
    }

    /// Their paths and names, in the order they came.
    pub(crate) fn list(&self) -> Vec<(PathBuf, String)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().map(|file| (file.path.clone(), file.name.clone())).collect()
    }

    /// The name of the file at a path.
    pub(crate) fn name(&self, path: &Path) -> Option<String> {
        self.list().into_iter().find(|(known, _)| known == path).map(|(_, name)| name)
    }

    /// The bytes that are taken, where there is room for another file.
    fn room(&self) -> Result<u64, Refusal> {
        if !Path::new(OPEN_FILES).is_dir() {
            return Err(refused("Files can be dropped on Linux only.", "Open it with `hotspan view FILE`."));
        }
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= MOST_FILES {
            let message = format!("{MOST_FILES} files were dropped already.");
            return Err(refused(&message, "Start `hotspan view` again, or name the files there."));
        }
        Ok(files.iter().map(|file| file.bytes).sum())
    }
}

fn refused(message: &str, hint: &str) -> Refusal {
    Refusal { hint: Some(hint.to_owned()), ..Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message) }
}

fn in_storing(error: &io::Error) -> Refusal {
    Refusal::new(StatusCode::INSUFFICIENT_STORAGE, format!("The file cannot be stored: {error}."))
}

/// Writes what comes to a file without a name, as long as it is not too much.
async fn stored(mut body: Body, room: u64) -> Result<(File, u64), Refusal> {
    let mut file = nameless_file().map_err(|error| in_storing(&error))?;
    let (mut block, mut bytes) = (Vec::new(), 0_u64);
    loop {
        let next = next_bytes(&mut body).await?;
        let is_end = next.is_none();
        let data = next.unwrap_or_default();
        bytes = bytes.saturating_add(data.len() as u64);
        if bytes > room {
            let message = format!("Dropped files may take {} GiB together.", MOST_BYTES >> 30);
            return Err(refused(&message, "Open it with `hotspan view FILE`."));
        }
        block.extend_from_slice(&data);
        if is_end || block.len() >= BLOCK {
            let ready = std::mem::take(&mut block);
            // A disk may take its time; other requests do not wait for it.
            let write = move || file.write_all(&ready).map(|()| file);
            let written = tokio::task::spawn_blocking(write).await.map_err(io::Error::other);
            file = written.and_then(|written| written).map_err(|error| in_storing(&error))?;
        }
        if is_end {
            return Ok((file, bytes));
        }
    }
}

async fn next_bytes(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(error)) => {
                let message = format!("The file did not arrive as a whole: {error}.");
                return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
            }
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// A file that only this program can reach: its random name is taken away at once.
fn nameless_file() -> io::Result<File> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let path = std::env::temp_dir().join(format!("hotspan-{:032x}", u128::from_le_bytes(random)));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(unix)]
fn path_of(file: &File) -> Result<PathBuf, Refusal> {
    use std::os::fd::AsRawFd;
    Ok(Path::new(OPEN_FILES).join(file.as_raw_fd().to_string()))
}

#[cfg(not(unix))]
fn path_of(_: &File) -> Result<PathBuf, Refusal> {
    Err(refused("Files can be dropped on Linux only.", "Open it with `hotspan view FILE`."))
}

/// The last part of a name, without what is no letter.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|letter| !letter.is_control()).take(LONGEST_NAME).collect();
    if plain.is_empty() { "dropped".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_last_part_without_controls() {
        assert_eq!(plain_name("../../etc/pass\nwd"), "passwd");
        assert_eq!(plain_name("C:\\a\\b.json"), "b.json");
        assert_eq!(plain_name(""), "dropped");
        assert_eq!(plain_name(&"ä".repeat(500)).chars().count(), LONGEST_NAME);
    }

    #[test]
    fn what_is_too_much_is_refused() -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
        runtime.block_on(async {
            let fits = stored(Body::from("abcdef"), 6).await.map(|(_, bytes)| bytes);
            assert_eq!(fits.map_err(|refusal| refusal.message), Ok(6));
            let refusal = stored(Body::from("abcdef"), 5).await.map(|_| ()).map_err(|refusal| refusal.status);
            assert_eq!(refusal, Err(StatusCode::PAYLOAD_TOO_LARGE));
        });
        Ok(())
    }

    #[test]
    fn a_file_has_no_name_and_is_read_by_its_number() -> io::Result<()> {
        let mut file = nameless_file()?;
        file.write_all(b"abc")?;
        let path = path_of(&file).map_err(|refusal| io::Error::other(refusal.message))?;
        if path.exists() {
            assert_eq!(std::fs::read(&path)?, b"abc");
            assert!(std::fs::read_link(&path)?.to_string_lossy().ends_with("(deleted)"));
        }
        Ok(())
    }
}
