//! How short a stretch of time must be for a thread not to have changed the memory of its process in it.
//!
//! Memory comes with a page fault and goes with a system call, and the quickest of these takes a while: 0.3 us on a good day,
//! 1 us on a virtual machine. A line that took less than half of the quickest one ever seen here did neither, so that
//! what was read before it is still true, and reading it again (another 1 us) would only say so.

use std::ptr::null_mut;
use std::sync::OnceLock;

use crate::clock;

const ROUNDS: usize = 64;

/// Ticks within which no memory can have come or gone; 0 where that could not be measured. The first call measures, which
/// takes less than a millisecond.
pub(crate) fn quiet_ticks() -> u64 {
    static TICKS: OnceLock<u64> = OnceLock::new();
    *TICKS.get_or_init(|| (0..ROUNDS).map(|_| quickest_of_one_page()).min().unwrap_or(0) / 2)
}

/// The shortest of the ways that memory comes and goes: a page that is read, one that is written, one that is given back
/// with its address and without. Larger ones take longer.
fn quickest_of_one_page() -> u64 {
    let size = super::resident::page_size() as usize;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the two pages are new and ours, are used inside their bounds only, and are given back once.
    unsafe {
        let pages = libc::mmap(null_mut(), 2 * size, protection, flags, -1, 0);
        if pages == libc::MAP_FAILED {
            return 0;
        }
        let (first, second) = (pages.cast::<u8>(), pages.byte_add(size).cast::<u8>());
        let times = [
            ticks_of(|| first.read_volatile()),
            ticks_of(|| second.write_volatile(1)),
            ticks_of(|| libc::madvise(second.cast(), size, libc::MADV_DONTNEED)),
            {
                second.write_volatile(1);
                ticks_of(|| libc::munmap(pages, 2 * size))
            },
        ];
        times.into_iter().min().unwrap_or(0)
    }
}

fn ticks_of<T>(act: impl FnOnce() -> T) -> u64 {
    let before = clock::now().0;
    std::hint::black_box(act());
    clock::now().0.wrapping_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_comes_within_the_time() {
        let quiet = quiet_ticks();
        assert!(quiet > 0);
        let size = super::super::resident::page_size() as usize;
        // SAFETY: new memory of our own, used inside its bounds; small pages, so that every touch brings one.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(null_mut(), 1_000 * size, libc::PROT_WRITE, flags, -1, 0).cast::<u8>();
            libc::madvise(pages.cast(), 1_000 * size, libc::MADV_NOHUGEPAGE);
            for page in 0..1_000 {
                let took = ticks_of(|| pages.add(page * size).write_volatile(1));
                assert!(took > quiet, "page {page} came in {took} ticks, {quiet} count as quiet");
            }
            libc::munmap(pages.cast(), 1_000 * size);
        }
    }
}
