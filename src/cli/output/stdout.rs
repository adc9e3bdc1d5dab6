//! Output streams: data on standard output, everything else on standard error. Colour only on terminals.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

pub(crate) use runvault::display::{counted, size};

use crate::cli::output::escape::{escaped, is_plain};
use crate::cli::output::exit::Failure;
use crate::cli::output::{fit, pager, verbosity};

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

/// Whether standard output has colours. Determining it costs several system calls, and the result does not change.
static CHOICE: LazyLock<ColorChoice> = LazyLock::new(|| AutoStream::choice(&io::stdout()));

/// The measured width of the terminal on standard output.
static MEASURED: LazyLock<Option<usize>> =
    LazyLock::new(|| terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0)));

/// Determines everything about the terminal on standard output, before standard output is redirected to a pager.
pub(crate) fn remember() {
    let _ = (is_terminal(), *CHOICE, *MEASURED);
}

/// Returns standard output for text. Colours are removed where they are not supported.
pub(crate) fn text() -> impl Write {
    Paged(AutoStream::new(io::stdout().lock(), *CHOICE))
}

/// Standard output, before whose first write a pager is started if there is to be one.
struct Paged<W>(W);

impl<W: Write> Write for Paged<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pager::begin();
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints help. It is created from documentation that marks code; a terminal shows code unmarked.
pub(crate) fn help(styled: &str) {
    // A failure here cannot be reported.
    let _ = text().write_all(plain(styled).as_bytes());
}

/// Returns `documentation` without its code marks.
pub(crate) fn plain(documentation: &str) -> String {
    documentation.replace('`', "")
}

/// Returns standard output for bytes that must not be changed.
pub(crate) fn raw() -> impl Write {
    Paged(io::stdout().lock())
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    *IS_TERMINAL
}

/// Returns the width of standard output: that of COLUMNS, otherwise that of the terminal. `None` if unlimited, as in a
/// pipe or a file.
pub(crate) fn width() -> Option<usize> {
    stated_width().or_else(|| *MEASURED).and_then(sensible)
}

fn stated_width() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
}

/// Returns the width of standard error; text is not wrapped in files.
fn width_of_notes() -> Option<usize> {
    let (measured, _) = terminal_size::terminal_size_of(io::stderr())?;
    sensible(stated_width().unwrap_or(usize::from(measured.0)))
}

/// Returns the width unless it is invalid: a terminal that does not know its width reports 0.
fn sensible(width: usize) -> Option<usize> {
    const WIDEST: usize = 10_000;
    (width > 0).then_some(width.min(WIDEST))
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
pub(crate) fn write_exactly(bytes: &[u8], what: &str, instead: &str, force: bool) -> Result<(), Failure> {
    if is_terminal() && !force && !is_plain(bytes) {
        let message = format!("{what} contains terminal control characters; use {instead}");
        return Err(Failure::CouldNotRun(message));
    }
    let mut out = raw();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes a summary or a note to standard error, unless `--quiet` is set.
pub(crate) fn note(lines: &str) {
    if !verbosity::is_quiet() {
        message(lines);
    }
}

/// Writes a line to standard error, wrapped. Write errors are ignored.
pub(crate) fn message(lines: &str) {
    let mut text = String::new();
    for line in lines.split('\n') {
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
