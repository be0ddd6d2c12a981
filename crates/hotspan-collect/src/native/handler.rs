//! The signal handler: copies registers, stack and Python frames of the thread it interrupts, and returns. It takes no
//! lock, allocates nothing, keeps `errno`, and reads only memory that the kernel vouches for.
//!
//! The signal is a real-time one that the program does not use. Its handler stays installed for good, since a late
//! signal without one would end the process; when nothing records it does nothing.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, Ordering};

use super::memory;
use super::python::{Interpreter, MemoryWindow};
use super::slots::{self, Copied, Registers, STACK_BYTES};
use crate::clock;

/// The number of the recording that runs, 0 for none.
pub(crate) static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether stacks are copied, or only Python frames.
pub(crate) static COPY_STACKS: AtomicBool = AtomicBool::new(true);
/// The interpreter of this process; null while there is none. Set once, never freed.
pub(crate) static INTERPRETER: AtomicPtr<Interpreter> = AtomicPtr::new(ptr::null_mut());

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Chooses a signal and installs the handler, unless it is in place. `None`: the program uses every real-time signal.
pub(crate) fn install() -> Option<i32> {
    if is_installed() {
        return Some(SIGNAL.load(Ordering::Acquire));
    }
    // From above, since programs that use them begin from below.
    let is_unused =
        |signal: &i32| current(*signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL);
    let signal = (libc::SIGRTMIN()..libc::SIGRTMAX()).rev().find(is_unused)?;
    // SAFETY: zeros are a valid action, filled in below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_timer as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: a valid signal and action; the handler is a function of this library, which is never unloaded.
    let result = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    SIGNAL.store(signal, Ordering::Release);
    (result == 0).then_some(signal)
}

fn current(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: zeros are a valid action, and the call fills it in.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: only asks.
    let result = unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) };
    (result == 0).then_some(action)
}

/// Whether the handler is still the one of the signal: the program may have taken it.
pub(crate) fn is_installed() -> bool {
    let signal = SIGNAL.load(Ordering::Acquire);
    signal != 0 && current(signal).is_some_and(|action| action.sa_sigaction == on_timer as *const () as usize)
}

extern "C" fn on_timer(_signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let generation = GENERATION.load(Ordering::Acquire);
    if generation == 0 || info.is_null() || context.is_null() {
        return;
    }
    // SAFETY: the kernel passes a valid record.
    if unsafe { (*info).si_code } != libc::SI_TIMER {
        return;
    }
    // SAFETY: every thread has an errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address is that of this thread's errno, which lives as long as the thread.
    let kept = unsafe { *errno };
    if let Some(slot) = slots::claim() {
        if let Some(content) = slots::content(slot) {
            // SAFETY: the slot is ours until it is published; the kernel passed both records.
            unsafe { fill(content, generation, info, context) };
        }
        slots::publish(slot);
    }
    // SAFETY: the handler runs on the thread whose errno this is, and nobody else writes it.
    unsafe { *errno = kept };
}

/// # Safety
/// The slot belongs to the caller; both records are those of a signal handler.
unsafe fn fill(slot: *mut Copied, generation: u64, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: as the caller promises; no other reference to the slot exists.
    let slot = unsafe { &mut *slot };
    slot.generation = generation;
    slot.ticks = clock::now().0;
    // SAFETY: takes nothing.
    slot.thread = unsafe { libc::gettid() };
    // The record of a timer: signal, error, code, padding, timer, overrun.
    // SAFETY: within the record, and aligned.
    let overrun = unsafe { *info.cast::<i32>().add(5) };
    slot.overrun = u32::try_from(overrun).unwrap_or(0);
    // SAFETY: the third argument of such a handler is the interrupted context.
    slot.registers = unsafe { registers(context.cast()) };
    slot.stack_length = 0;
    if COPY_STACKS.load(Ordering::Relaxed) {
        let from = slot.registers.stack as usize;
        // SAFETY: the slot has room for as much.
        slot.stack_length = unsafe { memory::copy_from(from, slot.stack.as_mut_ptr(), STACK_BYTES) };
    }
    slot.python_count = 0;
    slot.code.clear();
    slot.has_gil = false;
    slot.has_python = false;
    // SAFETY: set once to a leaked box.
    if let Some(interpreter) = unsafe { INTERPRETER.load(Ordering::Acquire).as_ref() }
        && let Some(thread) = interpreter.this_thread()
    {
        slot.has_python = true;
        slot.has_gil = interpreter.holds_gil(thread);
        let stack = slot.stack.get(..slot.stack_length).unwrap_or_default();
        let window = MemoryWindow::new(stack, slot.registers.stack, &mut slot.window);
        slot.python_count = window.copy_frames(&interpreter.offsets, thread, &mut slot.python);
        slot.code.fill(interpreter, slot.python.get(..slot.python_count).unwrap_or_default());
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *const libc::ucontext_t) -> Registers {
    // SAFETY: the caller passes a valid context.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    Registers {
        instruction: registers[libc::REG_RIP as usize] as u64,
        stack: registers[libc::REG_RSP as usize] as u64,
        frame: registers[libc::REG_RBP as usize] as u64,
        link: 0,
    }
}

#[cfg(target_arch = "aarch64")]
unsafe fn registers(context: *const libc::ucontext_t) -> Registers {
    // SAFETY: the caller passes a valid context.
    let machine = unsafe { &(*context).uc_mcontext };
    Registers { instruction: machine.pc, stack: machine.sp, frame: machine.regs[29], link: machine.regs[30] }
}
