//! Output streams: data on standard output, everything else on standard error. Color only on terminals.

use std::io::{self, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use runvault::display::{escaped, is_plain};

pub(crate) use runvault::display::{counted, size};

use super::terminal;
use crate::cli::output::exit::CommandError;
use crate::cli::output::passwords::without_passwords;
use crate::cli::output::terminal::{CHOICE, is_terminal, width, width_of_notes};
use crate::cli::output::{fit, pager};

/// Style of hashes.
pub(crate) const HASH: Style = AnsiColor::Yellow.on_default();
/// Style of user-defined names.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// Style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Style of failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// Style of warnings.
pub(crate) const CAUTION: Style = AnsiColor::Magenta.on_default();
/// Style of secondary text.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Returns standard output for text. Colors are removed where they are not supported.
pub(crate) fn text() -> impl Write {
    PagedStdout(AutoStream::new(io::stdout().lock(), *CHOICE))
}

/// Standard output, before whose first write a pager is started if there is to be one.
struct PagedStdout<W>(W);

impl<W: Write> Write for PagedStdout<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pager::begin();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints help. It is created from documentation that marks code; a terminal shows code unmarked.
pub(crate) fn help(styled: &str) -> io::Result<()> {
    let mut out = text();
    out.write_all(plain(styled).as_bytes())?;
    out.flush()
}

/// Returns `documentation` without its code marks.
pub(crate) fn plain(documentation: &str) -> String {
    documentation.replace('`', "")
}

/// Returns standard output for bytes that must not be changed.
pub(crate) fn raw() -> impl Write {
    PagedStdout(io::stdout().lock())
}

/// Writes a line, wrapped if it is too long for the terminal.
pub(crate) fn line(out: &mut dyn Write, line: &str) -> io::Result<()> {
    match width() {
        Some(width) => writeln!(out, "{}", fit::hang(line, width)),
        None => writeln!(out, "{line}"),
    }
}

/// Writes untrusted bytes to standard output unchanged. On a terminal, control characters are an error unless `force`
/// is set; the error names `what` the bytes are and what to use `instead`.
pub(crate) fn write_exactly(
    bytes: &[u8],
    what: &str,
    instead: &str,
    force: bool,
) -> Result<(), CommandError> {
    if is_terminal() && !force && !is_plain(bytes) {
        let message = format!("{what} contains terminal control characters; use {instead}");
        return Err(CommandError::CouldNotRun(message));
    }
    let mut out = raw();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes a summary or a note to standard error, unless `--quiet` is set.
pub(crate) fn note(lines: &str) {
    if !terminal::is_quiet() {
        message(lines);
    }
}

/// Writes a line to standard error, wrapped and without passwords. Write errors are ignored.
pub(crate) fn message(lines: &str) {
    let mut text = String::new();
    for line in without_passwords(lines).split('\n') {
        // JSON documents are not wrapped.
        let width = width_of_notes().filter(|_| !line.starts_with('{'));
        text += &width.map_or_else(|| line.to_owned(), |width| fit::hang(line, width));
        text.push('\n');
    }
    // Written at once, so that lines of several processes do not interleave.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes an error to standard error.
pub(crate) fn error(text: &str) {
    message(&format!("{BAD}error:{BAD:#} {}", escaped(text)));
}

/// Writes a warning to standard error.
pub(crate) fn warning(text: &str) {
    message(&format!("{CAUTION}warning:{CAUTION:#} {}", escaped(text)));
}
