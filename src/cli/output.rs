//! Where text goes: data to standard output, everything else to standard error. Colour only on terminals.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use super::escape::{escaped, is_plain};
use super::exit::Failure;
use super::fit;

/// For hashes.
pub(crate) const HASH: Style = AnsiColor::Yellow.on_default();
/// For names that people gave.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// For what is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// For what is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// For what deserves a look.
pub(crate) const CAUTION: Style = AnsiColor::Magenta.on_default();
/// For what matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Standard output for text. Colours are taken out where they are not wanted.
pub(crate) fn text() -> impl Write {
    // The answer costs several system calls and does not change.
    static CHOICE: LazyLock<ColorChoice> = LazyLock::new(|| AutoStream::choice(&io::stdout()));
    AutoStream::new(io::stdout().lock(), *CHOICE)
}

/// Prints help. What it is made of is documentation as well, which marks code; a terminal shows code as it is.
pub(crate) fn help(styled: &str) {
    // There is nobody left to tell if this fails.
    let _ = text().write_all(plain(styled).as_bytes());
}

/// `documentation` without its marks of code.
pub(crate) fn plain(documentation: &str) -> String {
    documentation.replace('`', "")
}

/// Standard output for bytes that must arrive as they are.
pub(crate) fn raw() -> impl Write {
    io::stdout().lock()
}

/// Whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    static IS_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    *IS_TERMINAL
}

/// How many columns there are for text on standard output: what COLUMNS says, else what the terminal says. Nothing where
/// there is no end, as in a pipe or a file.
pub(crate) fn width() -> Option<usize> {
    let measured = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    stated_width().or_else(measured).and_then(sensible)
}

fn stated_width() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok())
}

/// The same for standard error, where nothing is folded that goes to a file.
fn width_of_notes() -> Option<usize> {
    let (measured, _) = terminal_size::terminal_size_of(io::stderr())?;
    sensible(stated_width().unwrap_or(usize::from(measured.0)))
}

/// A width without those that are none: a terminal that does not know its own says 0.
fn sensible(width: usize) -> Option<usize> {
    const WIDEST: usize = 10_000;
    (width > 0).then_some(width.min(WIDEST))
}

/// Writes a line, or several where it is too long for the terminal.
pub(crate) fn line(out: &mut dyn Write, line: &str) -> io::Result<()> {
    match width() {
        Some(width) => writeln!(out, "{}", fit::hang(line, width)),
        None => writeln!(out, "{line}"),
    }
}

/// Writes bytes that somebody else wrote to standard output, as they are. A terminal gets only what does not control it,
/// unless `force` says otherwise; `what` they are and what to use `instead` is said then.
pub(crate) fn write_exactly(bytes: &[u8], what: &str, instead: &str, force: bool) -> Result<(), Failure> {
    if is_terminal() && !force && !is_plain(bytes) {
        let message = format!("{what} has characters that may control the terminal; use {instead}");
        return Err(Failure::CouldNotRun(message));
    }
    let mut out = raw();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Writes a line to standard error, or several. Nobody can be told if that fails.
pub(crate) fn note(lines: &str) {
    let mut text = String::new();
    for line in lines.split('\n') {
        // A document for programs stays on its line.
        let width = width_of_notes().filter(|_| !line.starts_with('{'));
        text += &width.map_or_else(|| line.to_owned(), |width| fit::hang(line, width));
        text.push('\n');
    }
    // In one piece, so that lines of several processes do not mix.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes an error to standard error.
pub(crate) fn error(message: &str) {
    note(&format!("{BAD}error:{BAD:#} {}", escaped(message)));
}

/// Writes to standard error what deserves attention, though the command did what it was asked to.
pub(crate) fn warning(message: &str) {
    note(&format!("{CAUTION}warning:{CAUTION:#} {}", escaped(message)));
}

/// `count` and `thing`, with an `s` if there is not exactly one.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes as people read it.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
