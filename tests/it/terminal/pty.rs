//! A pseudo terminal with the program on it.

use std::io::{Read, Write};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::sandbox::Sandbox;

/// What stands after everything that a program wrote to the terminal.
const END: &[u8] = b"\0end\0";

/// What the terminal is like.
#[derive(Clone, Copy)]
pub(crate) struct Terminal {
    /// In columns.
    pub(crate) width: u16,
    pub(crate) color: bool,
}

impl Terminal {
    /// Runs a command as a shell would, with both outputs on the terminal, and gives what is seen.
    pub(crate) fn run(self, sandbox: &Sandbox, command: &str) -> String {
        self.dialogue(sandbox, command, None).0
    }

    /// The same with standard input on the terminal as well, where this is typed. Gives the exit status, too.
    pub(crate) fn dialogue(self, sandbox: &Sandbox, command: &str, typed: Option<&str>) -> (String, i32) {
        self.shown(sandbox, command, typed, "")
    }

    /// The same with a pager.
    pub(crate) fn with_pager(self, sandbox: &Sandbox, command: &str, pager: &str) -> (String, i32) {
        self.shown(sandbox, command, None, pager)
    }

    fn shown(self, sandbox: &Sandbox, command: &str, typed: Option<&str>, pager: &str) -> (String, i32) {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let size = Winsize { ws_row: 50, ws_col: self.width, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let user = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut program = sandbox.command();
        program
            .args(words(command))
            .env("TERM", "xterm-256color")
            .env("RUNVAULT_ACTOR", "dana")
            .env("RUNVAULT_PAGER", pager);
        // The programs of the pager.
        program.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        if !self.color {
            program.env("NO_COLOR", "1");
        }
        program.stdin(Stdio::null());
        let mut screen = std::fs::File::from(controller);
        if let Some(typed) = typed {
            program.stdin(user.try_clone().unwrap());
            screen.write_all(typed.as_bytes()).unwrap();
        }
        program.stdout(user.try_clone().unwrap()).stderr(user.try_clone().unwrap());
        let mut child = program.spawn().unwrap();
        // When the last program closes a terminal, unread output can be lost. So this end stays open, and marks
        // the end of what the program wrote.
        let mut user = std::fs::File::from(user);
        let ended = std::thread::spawn(move || {
            let status = child.wait().unwrap();
            user.write_all(END).unwrap();
            status
        });
        let mut seen = Vec::new();
        let mut chunk = [0; 4096];
        while !seen.ends_with(END) {
            let read = screen.read(&mut chunk).unwrap();
            assert!(read > 0, "the terminal was closed");
            seen.extend_from_slice(&chunk[..read]);
        }
        seen.truncate(seen.len() - END.len());
        let status = ended.join().unwrap().code().unwrap();
        (last_states(&String::from_utf8(seen).unwrap().replace("\r\n", "\n")), status)
    }
}

/// The words of a command: between spaces, or in single quotes.
fn words(command: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, piece) in command.split('\'').enumerate() {
        if index % 2 == 1 { words.push(piece) } else { words.extend(piece.split_whitespace()) }
    }
    words
}

/// Progress is drawn over and over in one line: what is seen in the end is what was written last.
fn last_states(text: &str) -> String {
    let line = |line: &str| {
        let shown = line.rsplit('\r').next().unwrap_or_default();
        shown.rsplit("\u{1b}[2K").next().unwrap_or_default().to_owned()
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// `text` as it is seen.
pub(crate) fn without_colors(text: &str) -> String {
    let mut seen = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        seen.push_str(before);
        // Only colors control the terminal.
        let end = after.find('m').unwrap();
        assert!(after[..end].bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{after:?}");
        rest = &after[end + 1..];
    }
    seen + rest
}
