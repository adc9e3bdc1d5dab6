//! Hashes in the forms in which people paste them.

use std::borrow::Cow;

/// The prefix of the long form.
pub const PREFIX: &str = "sha256:";

/// Returns a hash, a tag or a run id without what is pasted along with it: spaces, quotation marks and an ellipsis around
/// it, spaces in it, and capitals in the name of the algorithm. Of the address of a page, it is what the address names.
#[must_use]
pub fn pasted(text: &str) -> Cow<'_, str> {
    let is_around = |letter: char| letter.is_whitespace() || "\"'`<>".contains(letter);
    let text = text.trim_matches(is_around);
    let text = text.trim_end_matches('…');
    let text = text.strip_suffix("...").unwrap_or(text).trim_end();
    if let Some(named) = named_by_address(text) {
        return Cow::Owned(pasted(&named).into_owned());
    }
    let digits = match text.split_at_checked(PREFIX.len()) {
        Some((algorithm, digits)) if algorithm.eq_ignore_ascii_case(PREFIX) => digits,
        _ => text,
    };
    let is_digits = |text: &str| {
        let mut letters = text.chars().filter(|letter| !letter.is_whitespace()).peekable();
        letters.peek().is_some() && letters.all(|letter| letter.is_ascii_hexdigit())
    };
    let has_prefix = digits.len() < text.len();
    if !is_digits(digits) || (!has_prefix && !text.contains(char::is_whitespace)) {
        return if has_prefix { Cow::Owned(format!("{PREFIX}{digits}")) } else { Cow::Borrowed(text) };
    }
    let digits: String = digits.split_whitespace().collect();
    Cow::Owned(if has_prefix { format!("{PREFIX}{digits}") } else { digits })
}

/// Returns what the address of a page names: the segment of the path after `artifact` or `prompt`, the digits in the name
/// of an exported file, else the first parameter with a hash, else the searched text.
fn named_by_address(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut segments = path.split('/');
    if segments.any(|segment| ["artifact", "prompt"].contains(&segment)) {
        return segments.next().filter(|name| !name.is_empty()).map(decoded);
    }
    let file = path.rsplit('/').next().and_then(|name| name.strip_suffix(".html"));
    let is_hash = |part: &&str| part.len() >= 12 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(digits) = file.and_then(|name| name.split('-').find(is_hash)) {
        return Some(digits.to_owned());
    }
    let of = |names: &[&str]| {
        let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
        let (_, value) = parameters.find(|(name, _)| names.contains(name))?;
        Some(decoded(value))
    };
    of(&["mention", "about", "one"]).or_else(|| of(&["q"]))
}

/// Returns a part of an address with its percent-encoded bytes decoded, as far as they are text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 16).ok());
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
        bytes.push(code.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_people_paste_them() {
        for (text, expected) in [
            (" 4df877dec7f4 ", "4df877dec7f4"),
            ("4df877dec7f4…", "4df877dec7f4"),
            ("sha256:4df877dec7f4...", "sha256:4df877dec7f4"),
            ("SHA256:4DF877", "sha256:4DF877"),
            ("sha256: 4df8 77de", "sha256:4df877de"),
            ("4df877de c7f41a5d", "4df877dec7f41a5d"),
            ("`4df877dec7f4`", "4df877dec7f4"),
            ("http://127.0.0.1:4780/artifact/sha256:4df877#step-3", "sha256:4df877"),
            ("http://127.0.0.1:4780/artifact/4df877/bytes?capture=x", "4df877"),
            ("http://[::1]:4780/prompt/sha256%3A4df877", "sha256:4df877"),
            ("http://localhost/artifacts?kind=&mention=sha256:4df877&by=", "sha256:4df877"),
            ("http://localhost/diff?one=sha256:4df877&other=sha256:103ef1", "sha256:4df877"),
            ("http://localhost/artifact/run%20one", "run one"),
            ("http://localhost/go?q=4df877+dec7f4", "4df877dec7f4"),
            ("file:///tmp/pages/run-pack-4df877dec7f4-links.html", "4df877dec7f4"),
            ("http://localhost/", "http://localhost/"),
            ("run-123", "run-123"),
            ("@base", "@base"),
            ("decade of facade", "decade of facade"),
            ("sha256:what", "sha256:what"),
            ("%", "%"),
            ("", ""),
        ] {
            assert_eq!(pasted(text), expected, "{text}");
        }
    }
}
