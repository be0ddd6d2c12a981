//! The `.hotspan` file.
use std::io::Read;
/// e
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct FileError;
impl FileError {
    /// h
    pub fn hint(&self) -> Option<&'static str> { None }
}
/// s
pub fn is_hotspan(_head: &[u8]) -> bool { false }
/// r
pub fn read_into(_r: &mut impl Read, _b: &mut crate::TraceBuilder) -> Result<(), FileError> { Err(FileError) }
/// w
pub fn write_trace(_t: &crate::Trace, _w: impl std::io::Write) -> Result<(), FileError> { Err(FileError) }
impl From<FileError> for std::io::Error { fn from(_e: FileError) -> Self { std::io::Error::other("x") } }
