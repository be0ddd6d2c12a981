//! Which thread a thread is: its number in the system, and its name.

use std::time::{Duration, Instant};

use super::super::error::SamplerError;
use super::super::memory::ProcessMemory;
use super::super::state::{ThreadNumber, system_name, thread_seen_from_here};
use super::ProcessReader;
use crate::cpython::{Address, Memory, thread_names};

/// How often names of threads are read again when one without a name appears.
const NAMES_AGAIN: Duration = Duration::from_millis(200);

impl ProcessReader {
    /// Names a thread that was not met before.
    pub(super) fn identify(
        &mut self,
        index: usize,
        state: Address,
        now: Instant,
    ) -> Result<(), SamplerError> {
        let offsets = self.interpreter.offsets;
        let process = self.memory.process;
        let thread = &mut self.threads[index];
        thread.ident = self.memory.word(thread.address.field(offsets.thread_ident))?;
        let number = match offsets.thread_number {
            Some(offset) => {
                thread.python_number = self.memory.word(thread.address.field(offset))?;
                thread.python_number as u32
            }
            None => number_of_pthread(&self.memory, Address(thread.ident)),
        };
        thread.number = thread_seen_from_here(process, ThreadNumber(number));
        self.name(index, state, now);
        Ok(())
    }

    /// Gives a thread the name it has in `threading`, or else in the operating system.
    pub(super) fn name(&mut self, index: usize, state: Address, now: Instant) {
        let process = self.memory.process;
        if !self.names.contains_key(&self.threads[index].ident)
            && self.named.is_none_or(|named| now.duration_since(named) > NAMES_AGAIN)
        {
            self.named = Some(now);
            // Names are a kindness: without them there are still numbers.
            self.names = thread_names(&self.objects(), state).unwrap_or_default();
        }
        let thread = &mut self.threads[index];
        match self.names.get(&thread.ident) {
            Some(name) => {
                thread.name.clone_from(name);
                thread.named = true;
            }
            None if thread.name.is_empty() => {
                thread.name =
                    thread.number.and_then(|number| system_name(process, number)).unwrap_or_default();
            }
            None => {}
        }
    }
}

/// The operating system's number of a thread, from glibc's `struct pthread`, for a Python that does not keep it; 0 where it
/// cannot be told.
fn number_of_pthread(memory: &ProcessMemory, pthread: Address) -> u32 {
    let offset = if cfg!(target_arch = "aarch64") { 0xd0 } else { 0x2d0 };
    let mut bytes = [0; 4];
    memory.read(pthread.plus(offset), &mut bytes).map_or(0, |()| u32::from_le_bytes(bytes))
}
