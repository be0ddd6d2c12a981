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
