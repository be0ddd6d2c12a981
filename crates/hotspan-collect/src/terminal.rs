//! The terminal, for live screens: keys without waiting for a line, and its size. What is drawn is not decided here.

/// The terminal as it was is put back when this is dropped.
#[derive(Debug)]
pub struct RawTerminal {
    before: Option<libc::termios>,
}

impl RawTerminal {
    /// Has keys handed on one by one and not shown. Does nothing where there is no terminal.
    #[must_use]
    pub fn enter() -> Self {
        // SAFETY: a zeroed termios is valid to be filled; both calls only touch it.
        unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(libc::STDIN_FILENO, &raw mut settings) != 0 {
                return Self { before: None };
            }
            let before = settings;
            settings.c_lflag &= !(libc::ICANON | libc::ECHO);
            // Stopped with Ctrl-Z, the screen would stay in the way of the shell.
            settings.c_cc[libc::VSUSP] = libc::_POSIX_VDISABLE;
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const settings);
            Self { before: Some(before) }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: these are settings that the terminal had.
            unsafe {
                libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, before);
            }
        }
    }
}

/// Columns and rows of the terminal that output goes to.
#[must_use]
pub fn size() -> (usize, usize) {
    // SAFETY: a zeroed winsize is valid, and the call fills it.
    let (found, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) == 0, size)
    };
    if found && size.ws_col > 0 && size.ws_row > 0 {
        (usize::from(size.ws_col), usize::from(size.ws_row))
    } else {
        (80, 24)
    }
}
