//! Output streams: data on standard output, everything else on standard error. Color only on terminals.

use std::borrow::Cow;
use std::io::{self, StdoutLock, Write};

use anstream::adapter::StripBytes;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use runvault::display::{escaped, is_plain};

use crate::cli::output::exit::CommandError;
use crate::cli::output::fit;
use crate::cli::output::terminal::{self, CHOICE, is_terminal, width, width_of_notes};

pub(crate) use runvault::display::{counted, size};

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
    let out = io::stdout().lock();
    let out: Box<dyn Write> = match *CHOICE {
        ColorChoice::Never => Box::new(PlainStdout { out, strip: StripBytes::new(), plain: Vec::new() }),
        choice => Box::new(AutoStream::new(out, choice)),
    };
    PagedStdout(out)
}

/// Standard output without colors. What is written together stays together: the parts between colors would be a write each.
struct PlainStdout {
    out: StdoutLock<'static>,
    strip: StripBytes,
    plain: Vec<u8>,
}

impl Write for PlainStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.plain.clear();
        self.strip.strip_next(bytes).for_each(|part| self.plain.extend_from_slice(part));
        self.out.write_all(&self.plain)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Standard output, before whose first write a pager is started if there is to be one.
struct PagedStdout<W>(W);

impl<W: Write> Write for PagedStdout<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        terminal::begin();
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

/// The characters that end a URL in a message.
const AFTER_URL: [char; 7] = [' ', '\n', '"', '\'', '<', '>', '`'];

/// The names before passwords in the parameters of connections.
const PARAMETERS: [&str; 3] = ["password=", "passwd=", "pwd="];

/// Returns `text` without the passwords of URLs and of the parameters of connections. The names of users are left out, too,
/// except in addresses of vaults, which are shown with them.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    if text.contains("://") {
        shown = Cow::Owned(without_logins(text));
    }
    for parameter in PARAMETERS {
        if shown.to_ascii_lowercase().contains(parameter) {
            shown = Cow::Owned(without_values(&shown, parameter));
        }
    }
    shown
}

fn without_logins(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (url, after) = part.split_at(part.find(AFTER_URL).unwrap_or(part.len()));
        let (authority, _) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
        let port = authority.rsplit_once(':').map(|(_, port)| port);
        let is_complete = port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
        // A password can contain a slash.
        let login = if is_complete || authority.contains('@') { authority } else { url };
        let is_of_vault = shown.ends_with("postgres") || shown.ends_with("postgresql");
        shown.push_str("://");
        match login.rsplit_once('@') {
            Some((user, _)) if !is_of_vault || user.contains(':') => {
                shown.push_str("***");
                shown.push_str(url.get(user.len()..).unwrap_or_default());
            }
            _ => shown.push_str(url),
        }
        shown.push_str(after);
    }
    shown
}

fn without_values(text: &str, parameter: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut shown = String::new();
    let mut at = 0;
    for (start, _) in lower.match_indices(parameter) {
        let value = start + parameter.len();
        let rest = text.get(value..).unwrap_or_default();
        let length = rest.find([' ', '\n', '&', ';', '"', '\'', ',']).unwrap_or(rest.len());
        if length > 0 && value >= at {
            shown.push_str(text.get(at..value).unwrap_or_default());
            shown.push_str("***");
            at = value + length;
        }
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            ("x=http://user:p@ss@host:80/a@b", "x=http://***@host:80/a@b"),
            ("http://host/a@b", "http://host/a@b"),
            ("http://host:80/a@b", "http://host:80/a@b"),
            ("a://u@h, b://v@i?c@d", "a://***@h, b://***@i?c@d"),
            ("at http://127.0.0.1:4780 and user@host", "at http://127.0.0.1:4780 and user@host"),
            ("user@host", "user@host"),
            ("postgresql://ann@db/runs: no", "postgresql://ann@db/runs: no"),
            ("no file 'postgres://ann:s3/cr@t@db/runs' there", "no file 'postgres://***@db/runs' there"),
            ("host=db password=s3cret x", "host=db password=*** x"),
            ("Host=db;Password=s3cret;a", "Host=db;Password=***;a"),
            ("PGPASSWORD= is empty", "PGPASSWORD= is empty"),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
