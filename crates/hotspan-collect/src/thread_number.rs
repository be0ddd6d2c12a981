//! The system's number of the calling thread, on systems whose C library has no function for it.

/// `gettid`, which glibc has since 2.30. Wheels run on glibc 2.28 too: with a function of this name among our own, nothing
/// in them asks the C library for it. It may be called in signal handlers, like the one it stands in for.
// SAFETY: it has the type and the meaning of the C library's function of this name.
#[unsafe(no_mangle)]
extern "C" fn gettid() -> libc::pid_t {
    // SAFETY: the call takes nothing and cannot fail.
    let number = unsafe { libc::syscall(libc::SYS_gettid) };
    libc::pid_t::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_says_what_the_system_says() {
        // SAFETY: takes nothing and cannot fail.
        let own = unsafe { libc::gettid() };
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        assert_eq!(link.file_name().unwrap().to_string_lossy(), own.to_string());
        let other = std::thread::spawn(|| {
            // SAFETY: takes nothing and cannot fail.
            unsafe { libc::gettid() }
        });
        assert_ne!(other.join().unwrap(), own);
    }
}
