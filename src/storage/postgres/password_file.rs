//! The file of passwords that clients of PostgreSQL share: lines of `HOST:PORT:DATABASE:USER:PASSWORD`, as libpq reads them.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use postgres::config::Host;

use super::address::{PostgresAddress, default_host};

/// More is not read.
const MAX_BYTES: u64 = 1 << 20;

/// The port of a server, and the name of the host behind the usual socket, in the file.
const PORT: u16 = 5432;
const LOCAL: &str = "localhost";

/// The result of reading the file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::storage) enum PasswordLookup {
    /// The password.
    Password(String),
    /// There is no file, or it has no line for the address.
    Nothing,
    /// The file is not used, for this reason.
    Ignored(String),
}

/// The values that a line must match.
struct PasswordLineMatcher {
    hosts: Vec<(String, String)>,
    database: String,
    user: String,
}

/// Looks for the password of an address, whose user is `user` unless it names one.
pub(in crate::storage) fn find(address: &str, path: &Path, user: Option<&str>) -> PasswordLookup {
    let Ok(address) = PostgresAddress::parse(address) else { return PasswordLookup::Nothing };
    let path = address.password_file.clone().unwrap_or_else(|| path.to_owned());
    let Some(matcher) = PasswordLineMatcher::new(&address, user) else { return PasswordLookup::Nothing };
    let Ok(metadata) = fs::metadata(&path) else { return PasswordLookup::Nothing };
    if let Some(reason) = defect(&metadata) {
        return PasswordLookup::Ignored(format!(
            "the password file {} is not used: {reason}",
            path.display()
        ));
    }
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    if let Err(error) = read {
        return PasswordLookup::Ignored(format!(
            "the password file {} cannot be read: {error}",
            path.display()
        ));
    }
    let text = String::from_utf8_lossy(&text);
    matcher.password(&text).map_or(PasswordLookup::Nothing, PasswordLookup::Password)
}

/// Returns why a file is not used.
fn defect(metadata: &fs::Metadata) -> Option<&'static str> {
    if !metadata.is_file() {
        return Some("it is not a plain file");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        if metadata.permissions().mode() & 0o077 != 0 {
            return Some("others have access to it; its permissions must be 0600 or less");
        }
    }
    None
}

impl PasswordLineMatcher {
    /// Returns `None` without a user, which is also the name of the database if the address has none.
    fn new(address: &PostgresAddress, user: Option<&str>) -> Option<Self> {
        let config = &address.config;
        let user = config.get_user().or(user).filter(|user| !user.is_empty())?.to_owned();
        let database = config.get_dbname().filter(|name| !name.is_empty()).unwrap_or(&user).to_owned();
        let ports = config.get_ports();
        let host = |(number, host): (usize, &Host)| {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) if path.as_path() == Path::new(default_host()) => LOCAL.to_owned(),
                #[cfg(unix)]
                Host::Unix(path) => path.to_string_lossy().into_owned(),
            };
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(PORT);
            (name, port.to_string())
        };
        let mut hosts: Vec<(String, String)> = config.get_hosts().iter().enumerate().map(host).collect();
        if hosts.is_empty() {
            let port = ports.first().copied().unwrap_or(PORT).to_string();
            hosts.extend(config.get_hostaddrs().iter().map(|address| (address.to_string(), port.clone())));
        }
        Some(Self { hosts, database, user })
    }

    /// Returns the password of the first line that matches, for the first host that has one.
    fn password(&self, text: &str) -> Option<String> {
        self.hosts.iter().find_map(|(host, port)| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(|line| line.trim_end_matches('\r')).find_map(|line| {
                let fields = [host, port, &self.database, &self.user];
                let password = fields.into_iter().try_fold(line, |rest, field| after_field(rest, field))?;
                Some(field(password))
            })
        })
    }
}

/// Returns what follows a field that is `expected` or `*`.
fn after_field<'l>(line: &'l str, expected: &str) -> Option<&'l str> {
    if let Some(rest) = line.strip_prefix("*:") {
        return Some(rest);
    }
    let mut rest = line.chars();
    let mut expected = expected.chars();
    loop {
        match rest.next()? {
            ':' => return expected.next().is_none().then_some(rest.as_str()),
            '\\' if expected.next() == Some(rest.next()?) => {}
            character if character != '\\' && expected.next() == Some(character) => {}
            _ => return None,
        }
    }
}

/// Returns a field without the backslashes that escape characters.
fn field(line: &str) -> String {
    let mut characters = line.chars();
    let mut field = String::new();
    while let Some(character) = characters.next().filter(|character| *character != ':') {
        let escaped = (character == '\\').then(|| characters.next()).flatten();
        field.push(escaped.unwrap_or(character));
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(address: &str, text: &str) -> Option<String> {
        PasswordLineMatcher::new(&PostgresAddress::parse(address).unwrap(), Some("me"))
            .unwrap()
            .password(text)
    }

    #[test]
    fn the_first_line_that_matches_has_the_password() {
        let text = "# db:5432:runs:ann:comment\n\
                    db:5432:runs:ann:one\n\
                    db:5432:runs:ann:two\r\n\
                    db:*:other:*:three\n\
                    *:*:*:bob:four\r\n\
                    localhost:5432:runs:me:five\n\
                    /tmp/s:5432:runs:me:six\n\
                    short:5432:runs\n";
        for (address, expected) in [
            ("postgres://ann@db/runs", Some("one")),
            ("postgres://ann@db:5433/runs", None),
            ("postgres://ann@db:5433/other", Some("three")),
            ("postgres://bob@elsewhere/x", Some("four")),
            ("postgres:///runs", Some("five")),
            ("postgres://localhost/runs", Some("five")),
            ("postgres:///runs?host=/tmp/s", Some("six")),
            ("postgres:///runs?host=/tmp/other", None),
            ("postgres://ann@none,db/runs", Some("one")),
            ("postgres://ann@short/runs", None),
            ("postgres://d/me", None),
        ] {
            assert_eq!(password(address, text).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn colons_and_backslashes_are_escaped() {
        let text = "*:*:a\\:b:c\\\\d:p\\:w\\\\x\\y:ignored";
        assert_eq!(password("postgres://c%5Cd@db/a%3Ab", text).as_deref(), Some("p:w\\xy"));
        assert_eq!(password("postgres://cd@db/a%3Ab", text), None);
        assert_eq!(password("postgres://x@db/y", "*:*:*:*:ends\\").as_deref(), Some("ends\\"));
        assert_eq!(password("postgres://x@db/y", "*:*:*:*:").as_deref(), Some(""));
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_can_read_are_not_used() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passwords");
        let find = |address: &str, path: &Path| find(address, path, None);
        let address = "postgres://ann@db/runs";
        assert_eq!(find(address, &path), PasswordLookup::Nothing);
        fs::write(&path, "*:*:*:*:s3cret").unwrap();
        for (mode, is_used) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o610, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match find(address, &path) {
                PasswordLookup::Password(password) => assert!(is_used && password == "s3cret", "{mode:o}"),
                PasswordLookup::Ignored(reason) => {
                    assert!(!is_used && reason.contains("0600") && !reason.contains("s3cret"), "{reason}");
                }
                PasswordLookup::Nothing => panic!("{mode:o}"),
            }
        }
        assert!(
            matches!(find(address, directory.path()), PasswordLookup::Ignored(reason) if reason.contains("plain file"))
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let named = format!("{address}?passfile={}", path.display());
        assert_eq!(find(&named, Path::new("/nowhere")), PasswordLookup::Password("s3cret".to_owned()));
        assert_eq!(find("postgres://db/runs", &path), PasswordLookup::Nothing, "no user");
    }
}
