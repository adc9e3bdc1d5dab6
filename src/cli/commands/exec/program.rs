//! Runs a program to its end, whatever signals arrive meanwhile.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// Runs a program. SIGTERM, which `timeout` and supervisors send to a process, is passed on to the program; Ctrl-C, which
/// a terminal sends to both, is left to it.
pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    flag::register(SIGINT, Arc::default())?;
    system::run(command)
}

#[cfg(unix)]
mod system {
    use std::io::{self, Read};
    use std::os::unix::net::UnixStream;
    use std::process::{Command, ExitStatus};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;

    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    use signal_hook::consts::SIGTERM;
    use signal_hook::low_level::pipe;

    /// The program, until it has ended: its identifier may then be that of another one.
    type Running = Mutex<Option<Pid>>;

    pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
        let (signals, sender) = UnixStream::pair()?;
        pipe::register(SIGTERM, sender)?;
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let running = Arc::new(Running::new(Some(pid)));
        let for_thread = Arc::clone(&running);
        thread::Builder::new().spawn(move || pass_on(signals, &for_thread))?;
        // It stays a process that has ended until the call of `wait`.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(pid), ended))?;
        running.lock().unwrap_or_else(PoisonError::into_inner).take();
        child.wait()
    }

    /// Sends the program a signal for each byte.
    fn pass_on(mut signals: UnixStream, running: &Running) {
        while signals.read_exact(&mut [0]).is_ok() {
            if let Some(pid) = *running.lock().unwrap_or_else(PoisonError::into_inner) {
                // It can have ended by itself.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::process::{Command, ExitStatus};

    pub(super) fn run(command: &mut Command) -> io::Result<ExitStatus> {
        command.status()
    }
}
