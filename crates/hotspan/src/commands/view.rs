//! `hotspan view`: the dashboard, in the browser.

use std::fs::OpenOptions;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use hotspan_view::{Options, Server};

use crate::error::CommandError;
use crate::progress::say;

/// After what opens the browser has ended, the browser may still start.
const TIME_TO_READ: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  hotspan view train.hotspan
  hotspan view runs/                 # a log directory: traces appear while a job writes them
  hotspan view a.json.gz b.json.gz   # two traces to compare

The page is served to this machine only, at an address with a secret in it. From elsewhere:
  ssh -L 8765:127.0.0.1:8765 machine hotspan view --port 8765 --no-open runs/";

/// Open traces as a dashboard in the browser
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Traces, or folders of traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Serve on this port; a free one otherwise
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let server = Server::start(&Options { paths: arguments.files.clone(), port: arguments.port })?;
    say(&format!("hotspan is at {} (Ctrl-C ends it)", server.address()));
    if !arguments.no_open {
        open_browser(server.address());
    }
    Ok(server.run()?)
}

/// Opens a browser where there is a screen. The address is printed anyway, so a failure needs no words.
///
/// Everybody on the machine can read the words of a command, and the address has the secret: the browser is given a file that
/// only its user can read, and that sends it on.
fn open_browser(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        _ if has_screen => "xdg-open",
        _ => return,
    };
    let Ok(file) = redirecting_file(address) else { return };
    let mut command = Command::new(program);
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn();
    std::thread::spawn(move || {
        if let Ok(mut child) = started {
            let _ = child.wait();
            std::thread::sleep(TIME_TO_READ);
        }
        let _ = std::fs::remove_file(file);
    });
}

/// A page that only this user can read and that leads to an address.
fn redirecting_file(address: &str) -> io::Result<PathBuf> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let path = folder.join(format!("hotspan-{:016x}.html", RandomState::new().hash_one(address)));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(
        options.open(&path)?,
        "<!doctype html><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><a href=\"{address}\">hotspan</a>"
    )?;
    Ok(path)
}
