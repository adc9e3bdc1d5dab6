//! Where text goes: data to standard output, everything else to standard error. Colour only on terminals.

use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use super::escape::{escaped, is_plain};
use super::exit::Failure;

/// For hashes.
pub(crate) const HASH: Style = AnsiColor::Yellow.on_default();
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
    let _ = text().write_all(styled.replace('`', "").as_bytes());
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

/// Writes a line to standard error. Nobody can be told if that fails.
pub(crate) fn note(line: &str) {
    // In one piece, so that lines of several processes do not mix.
    let _ = anstream::stderr().lock().write_all(format!("{line}\n").as_bytes());
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
