//! The signal handler: copies registers, stack and Python frames of the thread it interrupts, and returns. It takes no
//! lock, allocates nothing, keeps `errno`, and reads only memory that the kernel vouches for.
//!
//! Whose the signal is decides [`super::signal`]; when nothing records, the handler does nothing.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::memory;
use super::python::{Interpreter, MemoryWindow};
use super::signal;
use super::slots::{self, Copied, Registers, STACK_BYTES};
use crate::clock;

/// The number of the recording that runs, 0 for none.
pub(crate) static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether stacks are copied, or only Python frames.
pub(crate) static COPY_STACKS: AtomicBool = AtomicBool::new(true);
/// The interpreter of this process; null while there is none. Set once, never freed.
pub(crate) static INTERPRETER: AtomicPtr<Interpreter> = AtomicPtr::new(ptr::null_mut());

/// Copies what the thread that it interrupts is doing, when a timer of ours sent the signal.
pub(crate) extern "C" fn on_timer(_signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let generation = GENERATION.load(Ordering::Acquire);
    if generation == 0 || info.is_null() || context.is_null() {
        return;
    }
    // SAFETY: the kernel passes a valid record; that of a timer has a value.
    let is_ours =
        unsafe { (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr == signal::mark() };
    if !is_ours {
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
