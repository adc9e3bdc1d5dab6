//! A pager for long listings on a terminal.

use std::sync::atomic::{AtomicBool, Ordering};

/// Commands whose output may be long. Commands that write bytes or act on artifacts are not among them, except for "forget",
/// which forbids the pager unless it only lists.
const PAGED: [&str; 21] = [
    "assert",
    "audit",
    "config",
    "diff",
    "find",
    "forget",
    "forks",
    "label",
    "link",
    "links",
    "list",
    "log",
    "pin",
    "rules",
    "search",
    "show",
    "sql",
    "stats",
    "tag",
    "unresolved",
    "view",
];

/// Whether the pager is started at the first output.
static IS_ALLOWED: AtomicBool = AtomicBool::new(false);

/// Allows a pager if `command` is one of those with long output.
pub(crate) fn allow_for(command: &str) {
    IS_ALLOWED.store(PAGED.contains(&command), Ordering::Relaxed);
}

/// Forbids a pager for the rest of the command.
pub(crate) fn forbid() {
    IS_ALLOWED.store(false, Ordering::Relaxed);
}

/// Starts the pager if it is allowed, not started yet, and standard output is a terminal. Called before the first
/// output, so that a command that is still computing can be interrupted.
pub(crate) fn begin() {
    if IS_ALLOWED.swap(false, Ordering::Relaxed) {
        system::start();
    }
}

/// Waits until the pager ends, if there is one. Nothing can be printed after that.
pub(crate) fn finish() {
    system::finish();
}

/// Returns the pager: the first of these variables that is set, otherwise less. `None` if it is empty or cat.
#[cfg(any(unix, test))]
fn chosen(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = ["RUNVAULT_PAGER", "PAGER"].into_iter().find_map(variable);
    let pager = set.unwrap_or_else(|| "less".to_owned());
    let pager = pager.trim();
    (!pager.is_empty() && pager != "cat").then(|| pager.to_owned())
}

#[cfg(unix)]
mod system {
    use std::fs::OpenOptions;
    use std::io::{self, IsTerminal, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::process::{Child, Command, Stdio};
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};

    use rustix::stdio::{dup2_stderr, dup2_stdout};
    use signal_hook::consts::SIGINT;
    use signal_hook::flag;

    use crate::cli::output::terminal;

    /// A running pager, and the terminal as standard error, if it was one.
    struct Pager {
        child: Child,
        stderr: Option<OwnedFd>,
    }

    static RUNNING: Mutex<Option<Pager>> = Mutex::new(None);

    /// Options of less: end if everything fits on one screen, show colors, leave the text on the screen.
    const LESS: &str = "FRX";

    /// Characters for which a pager is started by a shell.
    const OF_SHELLS: &[char] =
        &['|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '*', '?', '[', '~', '='];

    pub(super) fn start() {
        if !terminal::is_terminal() {
            return;
        }
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let Some(pager) = super::chosen(variable) else { return };
        // Without a pager, output goes to the terminal as it is.
        let Ok(mut child) = command(&pager).stdin(Stdio::piped()).spawn() else { return };
        let Some(input) = child.stdin.take() else { return };
        // What depends on the terminal is determined now: afterwards, standard output is a pipe.
        terminal::remember();
        let stderr = io::stderr();
        let saved = stderr.is_terminal().then(|| stderr.as_fd().try_clone_to_owned().ok()).flatten();
        if dup2_stdout(&input).is_err() {
            return;
        }
        if saved.is_some() {
            // Otherwise, notes would be written over what the pager shows.
            let _ = dup2_stderr(&input);
        }
        // Ctrl-C is for the pager. It ends this program by closing the pipe.
        let _ = flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
        if let Ok(mut running) = RUNNING.lock() {
            *running = Some(Pager { child, stderr: saved });
        }
    }

    fn command(pager: &str) -> Command {
        let mut words = pager.split_whitespace();
        let mut command = if let Some(program) = words.next().filter(|_| !pager.contains(OF_SHELLS)) {
            let mut command = Command::new(program);
            command.args(words);
            command
        } else {
            let mut command = Command::new("sh");
            command.args(["-c", pager]);
            command
        };
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        command
    }

    pub(super) fn finish() {
        let Some(Pager { mut child, stderr }) = RUNNING.lock().ok().and_then(|mut running| running.take())
        else {
            return;
        };
        // A write error means that the pager has ended.
        let _ = io::stdout().flush();
        if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
            let _ = dup2_stdout(null);
        }
        if let Some(stderr) = stderr {
            let _ = dup2_stderr(stderr);
        }
        let _ = child.wait();
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn start() {}

    pub(super) fn finish() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_that_of_the_first_variable() {
        let with = |own: Option<&str>, general: Option<&str>| {
            let (own, general) = (own.map(str::to_owned), general.map(str::to_owned));
            chosen(|name| if name == "PAGER" { general.clone() } else { own.clone() })
        };
        assert_eq!(with(None, None).as_deref(), Some("less"));
        assert_eq!(with(None, Some("more")).as_deref(), Some("more"));
        assert_eq!(with(Some("bat -p"), Some("more")).as_deref(), Some("bat -p"));
        assert_eq!(
            (with(Some(""), Some("more")), with(Some("cat"), None), with(None, Some(" "))),
            (None, None, None)
        );
    }

    #[test]
    fn paged_commands_exist() {
        use clap::CommandFactory;
        let root = crate::cli::Cli::command();
        assert!(PAGED.iter().all(|name| root.find_subcommand(name).is_some()));
    }
}
