//! Output files: compressed by suffix, written beside their final name and renamed when whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 << 10;

/// A file that is being written.
pub(crate) struct Output {
    encoder: Option<Encoder>,
    /// None when what has the name is no file, such as a pipe: that is written to, not replaced.
    temporary: Option<PathBuf>,
    path: PathBuf,
}

enum Encoder {
    Plain(BufWriter<File>),
    Gzip(BufWriter<flate2::write::GzEncoder<File>>),
    Zstd(BufWriter<zstd::Encoder<'static, File>>),
}

impl Output {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file"));
        };
        let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let temporary = (!is_special).then(|| {
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".{}.tmp", std::process::id()));
            path.with_file_name(temporary)
        });
        let file = File::create(temporary.as_deref().unwrap_or(path))?;
        let encoder = match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => {
                let gzip = flate2::write::GzEncoder::new(file, flate2::Compression::new(5));
                Encoder::Gzip(BufWriter::with_capacity(BUFFER, gzip))
            }
            Some("zst") => Encoder::Zstd(BufWriter::with_capacity(BUFFER, zstd::Encoder::new(file, 3)?)),
            _ => Encoder::Plain(BufWriter::with_capacity(BUFFER, file)),
        };
        Ok(Self { encoder: Some(encoder), temporary, path: path.to_owned() })
    }

    /// Finishes the file and gives it its name.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        match self.encoder.take() {
            Some(Encoder::Plain(mut writer)) => writer.flush()?,
            Some(Encoder::Gzip(writer)) => drop(writer.into_inner().map_err(io::Error::from)?.finish()?),
            Some(Encoder::Zstd(writer)) => drop(writer.into_inner().map_err(io::Error::from)?.finish()?),
            None => {}
        }
        match &self.temporary {
            Some(temporary) => fs::rename(temporary, &self.path),
            None => Ok(()),
        }
    }

    fn writer(&mut self) -> io::Result<&mut dyn Write> {
        match &mut self.encoder {
            Some(Encoder::Plain(writer)) => Ok(writer),
            Some(Encoder::Gzip(writer)) => Ok(writer),
            Some(Encoder::Zstd(writer)) => Ok(writer),
            None => Err(io::Error::other("the file is already finished")),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer()?.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}
