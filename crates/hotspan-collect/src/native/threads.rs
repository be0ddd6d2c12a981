//! The threads of this process: who is there, how long each ran, waited for a processor, and slept.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotspan_store::SampleState;

use super::rows::StackNumber;
use super::signal::SIGNAL;
use super::timer::{ThreadTimer, cpu_time};
use crate::cpython::Address;
use crate::own_file::OwnFile;
use crate::syscalls::Blocked;

/// The first signal that the C library keeps for itself.
const C_LIBRARY_SIGNAL: i32 = 32;

/// A wait that goes on: the thread has not run since it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenWait {
    /// The index of its sample, which holds until rows are taken the next time.
    pub(crate) sample: usize,
    pub(crate) taken: u64,
    pub(crate) stack: StackNumber,
    pub(crate) state: SampleState,
}

const SYSCALL: &str = "syscall";
const SCHEDSTAT: &str = "schedstat";

/// How many threads have their files open all the time. The program's limit of open files is its own, and it may have a
/// thousand threads: most of them wait, and nothing is read of those.
const THREADS_WITH_OPEN_FILES: usize = 3;
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// What the system tells of a thread: kept open for a few threads, opened when it is read for others.
#[derive(Debug)]
struct ThreadFiles {
    number: i32,
    open: Option<(OwnFile, OwnFile)>,
}

impl ThreadFiles {
    fn of(number: i32) -> Self {
        let mut files = Self { number, open: None };
        let has_room = |count: usize| (count < THREADS_WITH_OPEN_FILES).then_some(count + 1);
        if OPEN.fetch_update(Ordering::AcqRel, Ordering::Acquire, has_room).is_ok() {
            let open = |name| OwnFile::open(files.path(name).as_ref()).ok();
            files.open = open(SYSCALL).zip(open(SCHEDSTAT));
            if files.open.is_none() {
                OPEN.fetch_sub(1, Ordering::AcqRel);
            }
        }
        files
    }

    fn path(&self, name: &str) -> String {
        format!("/proc/self/task/{}/{name}", self.number)
    }

    /// Reads one of the two; how many bytes there are.
    fn read(&self, name: &str, into: &mut [u8]) -> Option<usize> {
        match &self.open {
            Some((syscall, _)) if name == SYSCALL => syscall.read(into).ok(),
            Some((_, schedstat)) => schedstat.read(into).ok(),
            None => OwnFile::open(self.path(name).as_ref()).ok()?.read(into).ok(),
        }
    }
}

impl Drop for ThreadFiles {
    fn drop(&mut self) {
        if self.open.is_some() {
            OPEN.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// One thread, and what it had done when it was last looked at.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) number: i32,
    pub(crate) timer: Option<ThreadTimer>,
    files: ThreadFiles,
    cpu: i64,
    delay: i64,
    looked: i64,
    /// Time off the processor that no sample stands for yet.
    pub(crate) waited: i64,
    /// Time ready for a processor that no sample stands for yet.
    pub(crate) ready: i64,
    /// Processor time since its last signal.
    pub(crate) unsignalled: i64,
    /// Whether a signal of it was taken in this turn.
    pub(crate) is_heard: bool,
    /// Processor time that no sample stands for yet; less than nothing after a sample that stood for more.
    pub(crate) owed: i64,
    /// Whether it blocks the signal. It has no timer then: the signal would wait for whoever asks for waiting ones.
    pub(crate) is_deaf: bool,
    /// Whether it was counted as such.
    pub(crate) is_counted: bool,
    pub(crate) open: Option<OpenWait>,
    pub(crate) python: Option<Address>,
}

impl Thread {
    /// A thread without a timer.
    pub(crate) fn new(number: i32, now: i64) -> Option<Self> {
        let mut thread = Self {
            number,
            timer: None,
            files: ThreadFiles::of(number),
            cpu: cpu_time(number)?,
            delay: 0,
            looked: now,
            waited: 0,
            ready: 0,
            unsignalled: 0,
            is_heard: false,
            owed: 0,
            is_deaf: false,
            is_counted: false,
            open: None,
            python: None,
        };
        thread.delay = thread.read_delay().unwrap_or(0);
        Some(thread)
    }

    /// Reads the clocks; returns the processor time since the last look, or `None` when the thread is gone. Sums stay exact:
    /// what is neither run nor ready was waited.
    pub(crate) fn look(&mut self, now: i64) -> Option<i64> {
        // Less than before is another thread with the same number.
        let cpu = cpu_time(self.number).filter(|&cpu| cpu >= self.cpu)?;
        let (ran, wall) = (cpu - self.cpu, now - self.looked);
        (self.cpu, self.looked) = (cpu, now);
        let mut delay = 0;
        if ran > 0 {
            let all = self.read_delay().unwrap_or(self.delay);
            delay = (all - self.delay).max(0);
            self.delay = all;
        }
        self.ready += delay;
        self.unsignalled += ran;
        self.owed += ran;
        self.waited += wall - ran - delay;
        Some(ran)
    }

    /// Nanoseconds ready for a processor but without one: the second number of the file.
    fn read_delay(&self) -> Option<i64> {
        let mut text = [0; 64];
        let length = self.files.read(SCHEDSTAT, &mut text)?;
        std::str::from_utf8(text.get(..length)?).ok()?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Where the thread is blocked; `None` when it runs or the system does not tell.
    pub(crate) fn blocked(&self) -> Option<Blocked> {
        let mut text = [0; 256];
        let length = self.files.read(SYSCALL, &mut text)?;
        Blocked::parse(std::str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Whether the thread did not run since the last look.
    pub(crate) fn is_still(&self) -> bool {
        cpu_time(self.number) == Some(self.cpu)
    }

    /// Whether the thread had ever run at the last look.
    pub(crate) fn has_begun(&self) -> bool {
        self.cpu > 0
    }

    /// Whether the thread ran since the last look.
    pub(crate) fn has_run(&self) -> bool {
        cpu_time(self.number).is_some_and(|cpu| cpu > self.cpu)
    }

    /// Whether it blocks the signal, as far as the system tells.
    pub(crate) fn blocks_signal(&self) -> bool {
        let status =
            fs::read_to_string(format!("/proc/self/task/{}/status", self.number)).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        // The C library lets threads begin with all signals blocked, its own too, which no program can block.
        let is_starting = mask >> (C_LIBRARY_SIGNAL - 1) & 1 == 1;
        mask >> (SIGNAL - 1) & 1 == 1 && !is_starting
    }
}

/// The numbers of all threads.
pub(crate) fn list() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// How many threads there are, by the cheapest question.
pub(crate) fn count() -> Option<u64> {
    fs::metadata("/proc/self/task").ok().map(|about| about.nlink().saturating_sub(2))
}

/// The name that the system has for a thread.
pub(crate) fn name(number: i32) -> String {
    let name = fs::read_to_string(format!("/proc/self/task/{number}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
