//! Removes from messages what may be a password: they end up in the logs of CI jobs.

use std::borrow::Cow;

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
