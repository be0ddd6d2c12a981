//! A program that `hotspan top` starts. The screen is ours, so that what the program prints waits in a file, and is shown if it fails.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Duration;

use hotspan_collect::launch::Program;
use hotspan_collect::sampler::ProcessNumber;

use crate::error::CommandError;
use crate::progress::say;

/// More than this of what a program printed is not shown.
const MOST_SHOWN: u64 = 64 << 10;

/// A program that runs.
pub(super) struct Started {
    program: Program,
    printed: File,
}

impl Started {
    /// Starts a program, where there is one.
    pub(super) fn from_command(command: &[OsString]) -> Result<Option<Self>, CommandError> {
        let Some((name, rest)) = command.split_first() else { return Ok(None) };
        let printed = unnamed_file()?;
        let mut command = Command::new(name);
        command.args(rest).stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(printed.try_clone()?);
        let failed = |source| CommandError::Start { program: name.to_string_lossy().into_owned(), source };
        Ok(Some(Self { program: Program::start(&mut command).map_err(failed)?, printed }))
    }

    pub(super) fn process(&self) -> ProcessNumber {
        ProcessNumber(self.program.id())
    }

    /// Ends the program. One that has failed before says why.
    pub(super) fn end(mut self) -> Result<(), CommandError> {
        if let Some(status) = self.program.wait(Duration::ZERO)?
            && !status.success()
        {
            let mut text = Vec::new();
            self.printed.rewind()?;
            self.printed.take(MOST_SHOWN).read_to_end(&mut text)?;
            for line in String::from_utf8_lossy(&text).lines() {
                say(line);
            }
            say(&format!("note: the program ended with {status}"));
            return Ok(());
        }
        Ok(self.program.stop()?)
    }
}

/// A file that is gone when nobody has it open any more.
fn unnamed_file() -> Result<File, CommandError> {
    let path = std::env::temp_dir().join(format!("hotspan-top-{}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}
