//! `hotspan view`: the dashboard, in the browser.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use hotspan_view::{Options, Server};

use crate::error::CommandError;
use crate::progress::say;

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
fn open_browser(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let program = match std::env::consts::OS {
        "macos" => "open",
        _ if has_screen => "xdg-open",
        _ => return,
    };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}
