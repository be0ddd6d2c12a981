//! One thread at a time changes what the interpreter tells about; the others wait without the GIL.
//!
//! Python code runs meanwhile, and may come back here on the same thread: a recorder that the garbage collector finds is closed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

/// The process and the thread whose turn it is; 0: nobody's.
static OWNER: AtomicU64 = AtomicU64::new(0);

/// How often those who wait look again.
const PAUSE: Duration = Duration::from_micros(50);

/// Gives the turn back, unless it belongs to a turn around this one.
struct Turn {
    is_outermost: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_outermost {
            OWNER.store(0, Ordering::Release);
        }
    }
}

/// Runs `act` when no other thread does.
pub(super) fn in_turn<T>(py: Python<'_>, act: impl FnOnce() -> T) -> T {
    let own = own_number();
    let mut owner = OWNER.load(Ordering::Acquire);
    let mut is_outermost = true;
    loop {
        if owner == own {
            is_outermost = false;
            break;
        }
        // A fork leaves behind the threads of another process, which will not give the turn back.
        let is_free = owner == 0 || owner >> 32 != own >> 32;
        if is_free {
            match OWNER.compare_exchange(owner, own, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => owner = now,
            }
        } else {
            py.detach(|| std::thread::sleep(PAUSE));
            owner = OWNER.load(Ordering::Acquire);
        }
    }
    let _turn = Turn { is_outermost };
    act()
}

/// The number of this process, and one that no other thread of it has.
fn own_number() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static OWN: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    (u64::from(std::process::id()) << 32) | u64::from(OWN.with(|own| *own))
}
