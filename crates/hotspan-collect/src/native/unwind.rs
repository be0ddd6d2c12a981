//! Native stacks: from registers and a copy of the stack to addresses, and from addresses to functions.

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64, UnwinderAarch64 as Machine};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64, UnwinderX86_64 as Machine};
use framehop::{FrameAddress, Unwinder as _};
use hashbrown::HashSet;

#[cfg(target_arch = "x86_64")]
use super::guess;
use super::library::{Library, Piece};
use super::memory::Subject;
use super::merge::Role;
use super::slots::Registers;
use super::symbols::nameless;
use crate::memory_map::MappedRange;

/// How long code that belongs to no file is believed to stay so: the list of mappings takes a millisecond to read.
const STRANGE_FOR: Duration = Duration::from_secs(5);
/// No stack is followed further than this.
const MOST_FRAMES: usize = 512;

/// Addresses of a stack, innermost first, each inside the instruction that was executing.
#[derive(Debug, Default)]
pub(crate) struct NativeStack {
    pub(crate) addresses: Vec<u64>,
    /// Whether the beginning of the thread was reached.
    pub(crate) is_whole: bool,
}

/// A function, and what it is for the stack.
#[derive(Debug)]
pub(crate) struct NativeFunction {
    pub(crate) name: String,
    pub(crate) library: Arc<str>,
    pub(crate) role: Role,
}

/// Follows stacks. Belongs to one thread.
pub(crate) struct Unwinder {
    subject: Subject,
    machine: Machine<Piece>,
    cache: Cache,
    libraries: Vec<Library>,
    /// Where those begin whose tables the unwinder has.
    learned: HashSet<u64>,
    /// Counts changes of the list of libraries.
    pub(crate) changes: u64,
    asked: bool,
    /// Pages of code that belong to no file, such as what oneDNN compiles while the program runs.
    strange: HashSet<u64>,
    forgot: Instant,
}

impl Unwinder {
    /// Knows no library yet: they are read when the first stack is followed, not while the program waits for the start.
    pub(crate) fn new(subject: Subject) -> Self {
        Self {
            subject,
            machine: Machine::new(),
            cache: Cache::new(),
            libraries: Vec::new(),
            learned: HashSet::new(),
            changes: 0,
            asked: false,
            strange: HashSet::new(),
            forgot: Instant::now(),
        }
    }

    /// Begins a batch: the list of libraries may be read again, once.
    pub(crate) fn next_batch(&mut self) {
        self.asked = false;
        // A library may be loaded where such code was.
        if self.forgot.elapsed() > STRANGE_FOR {
            self.forgot = Instant::now();
            self.strange.clear();
        }
    }

    /// Reads anew what is mapped.
    fn reload(&mut self) {
        self.asked = true;
        let is_library =
            |mapped: &MappedRange| mapped.is_code && (mapped.is_file() || mapped.path == "[vdso]");
        let mappings: Vec<MappedRange> = self.subject.memory_map().into_iter().filter(is_library).collect();
        if mappings.iter().eq(self.libraries.iter().map(|library| &library.mapping)) {
            return;
        }
        self.changes += 1;
        self.cache = Cache::new();
        let mut known = std::mem::take(&mut self.libraries);
        let mut kept = Vec::with_capacity(mappings.len());
        for mapping in mappings {
            if let Some(index) = known.iter().position(|library| library.mapping == mapping) {
                kept.push(known.swap_remove(index));
                continue;
            }
            kept.push(Library::new(self.subject, mapping));
        }
        for gone in known {
            let start = gone.mapping.range.start;
            if self.learned.remove(&start) {
                self.machine.remove_module(start);
            }
        }
        self.libraries = kept;
    }

    fn find(&self, address: u64) -> Option<&Library> {
        let after = self.libraries.partition_point(|library| library.mapping.range.start <= address);
        self.libraries.get(after.checked_sub(1)?).filter(|library| library.mapping.range.contains(&address))
    }

    /// Gives the unwinder the tables of the library at an address, once.
    fn learn(&mut self, address: u64) {
        let Some(library) = self.find(address) else { return };
        let start = library.mapping.range.start;
        if self.learned.contains(&start) {
            return;
        }
        if let Some(module) = library.module() {
            self.machine.add_module(module);
        }
        self.learned.insert(start);
    }

    /// The function at an address. The name may be left for later, but not those of the interpreter: what its functions
    /// do for the stack is known by their names.
    pub(crate) fn function(&self, address: u64, is_interpreter: bool, can_wait: bool) -> NativeFunction {
        let found = self.find(address);
        let name = found.and_then(|library| library.function(address, can_wait && !is_interpreter));
        let library = found.map_or_else(|| "".into(), |library| Arc::clone(&library.path));
        let name = match name {
            Some(name) => name,
            None if library.is_empty() => "[unknown code]".to_owned(),
            None => nameless(&library),
        };
        NativeFunction { role: Role::of(&name, is_interpreter), name, library }
    }

    /// Whether an address is in the library of this file.
    pub(crate) fn is_in_library(&self, address: u64, path: &str) -> bool {
        self.find(address).is_some_and(|library| &*library.path == path)
    }

    /// Whether an address is in the same library as another.
    pub(crate) fn is_same_library(&self, address: u64, other: u64) -> bool {
        self.find(address).is_some_and(|library| library.mapping.range.contains(&other))
    }

    /// Follows a stack.
    pub(crate) fn follow(&mut self, registers: &Registers, stack: &[u8]) -> NativeStack {
        let found = self.attempt(registers, stack);
        let is_new = |&address: &u64| self.find(address).is_none() && !self.strange.contains(&page(address));
        if self.asked || !found.addresses.iter().any(is_new) {
            return found;
        }
        // A library may have been loaded since.
        let changes = self.changes;
        self.reload();
        let found = if self.changes == changes { found } else { self.attempt(registers, stack) };
        let strange: Vec<u64> = found
            .addresses
            .iter()
            .filter(|&&address| self.find(address).is_none())
            .map(|&at| page(at))
            .collect();
        self.strange.extend(strange);
        found
    }

    fn attempt(&mut self, registers: &Registers, stack: &[u8]) -> NativeStack {
        let start = registers.stack;
        let mut read = |address: u64| {
            let offset = usize::try_from(address.checked_sub(start).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.get(offset..offset.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
        };
        #[cfg(target_arch = "x86_64")]
        let mut known = UnwindRegsX86_64::new(registers.instruction, registers.stack, registers.frame);
        #[cfg(target_arch = "aarch64")]
        let mut known = UnwindRegsAarch64::new(registers.link, registers.stack, registers.frame);
        let mut frame = FrameAddress::from_instruction_pointer(registers.instruction);
        let mut found = NativeStack::default();
        // The system tells no frame pointer of a thread that waits.
        #[cfg(target_arch = "x86_64")]
        let mut is_frame_unknown = known.bp() == 0;
        while found.addresses.len() < MOST_FRAMES {
            let address = frame.address_for_lookup();
            found.addresses.push(address);
            self.learn(address);
            #[cfg(target_arch = "x86_64")]
            {
                is_frame_unknown &= known.bp() == 0;
            }
            #[cfg(target_arch = "x86_64")]
            if !self.find(address).is_some_and(|library| library.is_covered(address)) {
                let code = |address| self.find(address)?.code_before(address);
                let Some(next) = go_to(guess::caller(stack, start, known.sp(), code), &mut known) else {
                    break;
                };
                frame = next;
                continue;
            }
            match self.machine.unwind_frame(frame, &mut known, &mut self.cache, &mut read) {
                Ok(Some(address)) => {
                    let Some(next) = FrameAddress::from_return_address(address) else { break };
                    frame = next;
                }
                end => {
                    // Without a frame pointer some stacks seem to end.
                    #[cfg(target_arch = "x86_64")]
                    if is_frame_unknown {
                        let code = |address| self.find(address)?.code_before(address);
                        let caller = guess::caller_by_saved_frame(stack, start, known.sp(), code);
                        if let Some(next) = go_to(caller, &mut known) {
                            frame = next;
                            continue;
                        }
                    }
                    found.is_whole = end.is_ok();
                    break;
                }
            }
        }
        found
    }
}

/// Goes on from a guessed caller.
#[cfg(target_arch = "x86_64")]
fn go_to(caller: Option<guess::Caller>, known: &mut UnwindRegsX86_64) -> Option<FrameAddress> {
    let caller = caller?;
    known.set_sp(caller.stack);
    known.set_bp(caller.frame.unwrap_or(known.bp()));
    known.set_ip(caller.return_address);
    FrameAddress::from_return_address(caller.return_address)
}

fn page(address: u64) -> u64 {
    address >> 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_where_functions_are() {
        let mut unwinder = Unwinder::new(Subject::Own);
        unwinder.reload();
        let here = libc::malloc as *const () as u64;
        let function = unwinder.function(here + 1, false, false);
        assert!(function.library.contains("/libc.so"), "{function:?}");
        assert!(function.name.contains("malloc") && function.role == Role::Plain);
        assert!(unwinder.is_in_library(here, &function.library));
        assert_eq!(unwinder.function(16, false, false).name, "[unknown code]");
    }
}
