//! The terminal: whether output goes to one, its width, which messages are shown, the signals that interrupt a command, and
//! a pager for long listings.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::exit::CommandError;

/// Whether standard output has colors. Determining it costs several system calls, and the result does not change.
pub(super) static CHOICE: LazyLock<ColorChoice> = LazyLock::new(|| AutoStream::choice(&io::stdout()));

/// The measured width of the terminal on standard output.
static MEASURED: LazyLock<Option<usize>> =
    LazyLock::new(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)));

/// Determines everything about the terminal on standard output, before standard output is redirected to a pager.
pub(crate) fn remember() {
    let _ = (is_terminal(), *CHOICE, *MEASURED);
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    *IS_TERMINAL
}

/// Returns the width of standard output: that of COLUMNS, otherwise that of the terminal. `None` if unlimited, as in a
/// pipe or a file.
pub(crate) fn width() -> Option<usize> {
    width_from_env().or_else(|| *MEASURED).and_then(sensible)
}

fn width_from_env() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
}

/// Returns the width of standard error; text is not wrapped in files.
pub(super) fn width_of_notes() -> Option<usize> {
    let (measured, _) = terminal_size::terminal_size_of(io::stderr())?;
    sensible(width_from_env().unwrap_or(usize::from(measured.0)))
}

/// Returns the width unless it is invalid: a terminal that does not know its width reports 0.
fn sensible(width: usize) -> Option<usize> {
    const WIDEST: usize = 10_000;
    (width > 0).then_some(width.min(WIDEST))
}

static QUIET: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Sets the options for this process.
pub(crate) fn set_verbosity(quiet: bool, verbose: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Returns whether summaries, notes and progress are omitted.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Returns whether details are printed.
pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// The polling interval, too short to notice.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The conventional exit status of an interrupted program.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether termination was requested.
pub(crate) struct Stop {
    requested: Arc<AtomicBool>,
    /// Whether inputs were omitted for it.
    ended_inputs: Arc<AtomicBool>,
}

impl Stop {
    /// Handles SIGINT and SIGTERM. A second signal ends the process immediately, which stored data survives. SIGHUP is
    /// not handled, so that `nohup` works.
    pub(crate) fn on_signals() -> Result<Self, CommandError> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: at the first signal, the flag is not yet set when it is checked.
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&requested))
                .and_then(|_| flag::register(signal, Arc::clone(&requested)))
                .map_err(|error| CommandError::CouldNotRun(format!("cannot wait for Ctrl-C: {error}")))?;
        }
        Ok(Self { requested, ended_inputs: Arc::default() })
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Returns the inputs up to the moment at which termination is requested.
    pub(crate) fn until_requested<I: Iterator>(&self, inputs: I) -> impl Iterator<Item = I::Item> + use<I> {
        let (requested, ended) = (Arc::clone(&self.requested), Arc::clone(&self.ended_inputs));
        inputs.take_while(move |_| {
            let goes_on = !requested.load(Ordering::Relaxed);
            ended.fetch_or(!goes_on, Ordering::Relaxed);
            goes_on
        })
    }

    /// Returns whether termination was requested before all inputs of [`Stop::until_requested`] were read.
    pub(crate) fn has_ended_inputs(&self) -> bool {
        self.ended_inputs.load(Ordering::Relaxed)
    }

    /// Returns the request for library functions that can be interrupted.
    pub(crate) fn control(&self) -> ControlFlow<()> {
        if self.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Waits for this duration, or until termination is requested.
    pub(crate) fn wait(&self, length: Duration) {
        let began = Instant::now();
        while let Some(rest) = length.checked_sub(began.elapsed()).filter(|rest| !rest.is_zero()) {
            if self.is_requested() {
                return;
            }
            thread::sleep(rest.min(AT_ONCE));
        }
    }
}

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
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use parking_lot::Mutex;
    use rustix::stdio::{dup2_stderr, dup2_stdout};
    use signal_hook::consts::SIGINT;
    use signal_hook::flag;

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
        if !super::is_terminal() {
            return;
        }
        let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let Some(pager) = super::chosen(variable) else { return };
        // Without a pager, output goes to the terminal as it is.
        let Ok(mut child) = command(&pager).stdin(Stdio::piped()).spawn() else { return };
        let Some(input) = child.stdin.take() else { return };
        // What depends on the terminal is determined now: afterwards, standard output is a pipe.
        super::remember();
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
        *RUNNING.lock() = Some(Pager { child, stderr: saved });
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
        let Some(Pager { mut child, stderr }) = RUNNING.lock().take() else {
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
