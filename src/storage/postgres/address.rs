//! The address of a vault in a database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME`.
//!
//! The parameters are those of libpq that the driver has, and `schema` and `sslrootcert`. A password is never shown: the
//! text of an address is made of what may be shown, not of what is left after removing what may not.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::storage::{ErrorKind, Result, StorageError};

/// The schema of a vault if the address names none.
const SCHEMA: &str = "runvault";

/// Maximum length of the name of a schema: longer names are cut off by the server, so that two could be the same.
const MAX_SCHEMA_BYTES: usize = 63;

/// How long connecting to a host may take if the address does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// When the system asks whether a silent peer is still there, if the address does not say: it is given up after 90 seconds.
/// The driver's default begins to ask after two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// A parsed address.
#[derive(Clone)]
pub(super) struct PostgresAddress {
    pub(super) config: Config,
    /// The same without hosts.
    pub(super) hostless: Config,
    pub(super) schema: String,
    pub(super) verification: CertificateVerification,
    /// The object storage with the bytes, if they are not in the database.
    pub(super) blobs: Option<BlobAddress>,
    /// Whether new object storage is tested with writers that race.
    #[cfg_attr(not(feature = "objects"), expect(dead_code, reason = "there is none"))]
    pub(super) is_raced: bool,
    /// Whether connections may prepare statements, which poolers that assign connections per transaction may not support.
    pub(super) prepares: bool,
    /// The file with the password, if it is not the usual one.
    pub(super) password_file: Option<PathBuf>,
}

/// The address of object storage.
#[cfg(feature = "objects")]
pub(super) type BlobAddress = crate::storage::objects::ObjectAddress;

/// Without support for object storage, no address is valid.
#[cfg(not(feature = "objects"))]
pub(super) type BlobAddress = std::convert::Infallible;

/// The requirements for the server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateVerification {
    /// Nothing: the connection is encrypted if the server offers it, as libpq does by default.
    None,
    /// It names the host, and an authority that the system trusts has signed it, or one in this file.
    Full(Option<PathBuf>),
}

impl PostgresAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// Returns an error of the kind `Invalid` if it is not one. The message has no part of its values.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut schema, mut root, mut mode, mut blobs) = (SCHEMA.to_owned(), None, None, None);
        let (mut password_file, mut prepares) = (None, true);
        let (mut hosts, mut others) = (Vec::new(), Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) =
                parameter.split_once('=').ok_or_else(|| invalid("a parameter has no value"))?;
            match name {
                "schema" => schema = valid_schema(&decoded(value)?)?,
                "sslrootcert" => root = Some(PathBuf::from(decoded(value)?)),
                "sslmode" => mode = Some(value),
                "blobs" => blobs = Some(blob_address(&decoded(value)?)?),
                "passfile" => password_file = Some(PathBuf::from(decoded(value)?)),
                "prepared_statements" => prepares = valid_flag(value)?,
                // The driver takes one host, or one directory of a socket, at a time.
                "host" => hosts.extend(value.split(',').map(|host| format!("host={host}"))),
                "hostaddr" | "port" => hosts.push(parameter.to_owned()),
                _ => others.push(parameter.to_owned()),
            }
        }
        // The driver ends the password at the first @, so that the rest of it would be shown as a part of the host.
        let signs = base.matches('@').count();
        if signs > 1 || (signs == 0 && others.iter().chain(&hosts).any(|other| other.contains('@'))) {
            return Err(invalid("an @ in a user, a password or another value is written as %40"));
        }
        let mut hostless = parsed(&without_hosts(base), &others)?;
        let mut config = parsed(base, &[others, hosts].concat())?;
        let (ssl_mode, verification) = match mode {
            Some("disable") => (SslMode::Disable, CertificateVerification::None),
            None | Some("prefer") if root.is_none() => (SslMode::Prefer, CertificateVerification::None),
            None | Some("require" | "verify-full") => (SslMode::Require, CertificateVerification::Full(root)),
            _ => return Err(invalid("sslmode is one of disable, prefer, require and verify-full")),
        };
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host(default_host());
        }
        for config in [&mut config, &mut hostless] {
            complete(config.ssl_mode(ssl_mode));
        }
        Ok(Self { config, hostless, schema, verification, blobs, is_raced: true, prepares, password_file })
    }

    /// Sets the password if the address has none.
    pub(super) fn with_default_password(mut self, password: Option<String>) -> Self {
        if let (None, Some(password)) = (self.config.get_password(), password) {
            self.config.password(&password);
            self.hostless.password(password);
        }
        self
    }

    /// Returns how to connect to each host.
    pub(super) fn hosts(&self) -> impl Iterator<Item = Config> + '_ {
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        let ports = self.config.get_ports();
        (0..hosts.len().max(addresses.len())).map(move |number| {
            let mut config = self.hostless.clone();
            match hosts.get(number) {
                Some(Host::Tcp(name)) => config.host(name),
                #[cfg(unix)]
                Some(Host::Unix(path)) => config.host_path(path),
                None => &mut config,
            };
            addresses.get(number).map(|address| config.hostaddr(*address));
            ports.get(number).or(ports.first()).map(|port| config.port(*port));
            config
        })
    }
}

/// Parses what the driver reads of an address.
fn parsed(base: &str, parameters: &[String]) -> Result<Config> {
    let separator = if parameters.is_empty() { "" } else { "?" };
    format!("{base}{separator}{}", parameters.join("&")).parse().map_err(|error: postgres::Error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        invalid(&cause.unwrap_or_else(|| "it cannot be parsed".to_owned()))
    })
}

/// Returns the part of an address before its parameters without its hosts.
fn without_hosts(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let user = authority.rfind('@').and_then(|at| authority.get(..=at)).unwrap_or_default();
    format!("{scheme}://{user}{path}")
}

/// Sets what an address does not say.
fn complete(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("runvault");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
}

#[cfg(feature = "objects")]
fn blob_address(text: &str) -> Result<BlobAddress> {
    BlobAddress::parse(text)
}

#[cfg(not(feature = "objects"))]
fn blob_address(_: &str) -> Result<BlobAddress> {
    let message = "this program was built without support for bytes in object storage";
    Err(StorageError::new(ErrorKind::Unsupported, message))
}

/// The directory of the server's socket on Debian, which is where libpq looks.
#[cfg(unix)]
pub(super) fn default_host() -> &'static str {
    "/var/run/postgresql"
}

#[cfg(not(unix))]
pub(super) fn default_host() -> &'static str {
    "localhost"
}

fn invalid(reason: &str) -> StorageError {
    StorageError::new(ErrorKind::Invalid, format!("the address of the vault is not valid: {reason}"))
}

/// Returns the name of a schema if it can be written in a statement without quotes.
fn valid_schema(name: &str) -> Result<String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_valid = name.len() <= MAX_SCHEMA_BYTES
        && name.bytes().all(fits)
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && !name.starts_with("pg_");
    if is_valid {
        return Ok(name.to_owned());
    }
    Err(invalid("a schema is a name of at most 63 of a-z, 0-9 and _, and begins with none of 0-9 and pg_"))
}

fn valid_flag(text: &str) -> Result<bool> {
    text.parse().map_err(|_| invalid("prepared_statements is true or false"))
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.split_first_chunk::<2>();
        let digits = digits.and_then(|(digits, after)| Some((std::str::from_utf8(digits).ok()?, after)));
        let byte = digits.and_then(|(digits, after)| Some((u8::from_str_radix(digits, 16).ok()?, after)));
        let (byte, after) = byte.ok_or_else(|| invalid("% begins no two hexadecimal digits"))?;
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| invalid("a parameter is not UTF-8"))
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, schema, blobs, .. } = self;
        f.write_str("postgresql://")?;
        if let Some(user) = config.get_user() {
            write!(f, "{user}@")?;
        }
        let mut sockets = Vec::new();
        for (number, host) in config.get_hosts().iter().enumerate() {
            match host {
                Host::Tcp(name) => {
                    let separator = if number > 0 { "," } else { "" };
                    write!(f, "{separator}{name}")?;
                    let port = config.get_ports().get(number).or(config.get_ports().first());
                    if let Some(port) = port.filter(|port| **port != 5432) {
                        write!(f, ":{port}")?;
                    }
                }
                #[cfg(unix)]
                Host::Unix(path) => sockets.push(path.display().to_string()),
            }
        }
        for address in config.get_hostaddrs().iter().filter(|_| config.get_hosts().is_empty()) {
            write!(f, "{address}")?;
        }
        write!(f, "/{}", config.get_dbname().unwrap_or_default())?;
        let mut separator = '?';
        if !sockets.is_empty() && sockets != [default_host()] {
            write!(f, "{separator}host={}", sockets.join(","))?;
            separator = '&';
        }
        if schema != SCHEMA {
            write!(f, "{separator}schema={schema}")?;
            separator = '&';
        }
        match blobs {
            Some(blobs) => write!(f, "{separator}blobs={blobs}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        PostgresAddress::parse(text).unwrap().to_string()
    }

    #[test]
    fn addresses_are_shown_without_their_passwords() {
        for (text, expected) in [
            ("postgres://ann:s3cret@db.example/runs", "postgresql://ann@db.example/runs"),
            ("postgresql://ann@db:6543/runs?password=s3cret", "postgresql://ann@db:6543/runs"),
            ("postgres://ann:s3%40cret@db/runs?schema=team_a", "postgresql://ann@db/runs?schema=team_a"),
            (
                "postgres:///runs?host=/tmp/s3&user=ann&password=s3cret&schema=x",
                "postgresql://ann@/runs?host=/tmp/s3&schema=x",
            ),
        ] {
            assert_eq!(shown(text), expected);
            assert!(!format!("{:?}", PostgresAddress::parse(text)).contains("cret"));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected_without_showing_them() {
        for text in [
            "postgres://ann:s3cret@db:port/runs",
            "postgres://ann:s3cret@db/runs?unknown=s3cret",
            "postgres://ann:s3cret@db/runs?s3cret",
            "postgres://ann:x@s3cret@db/runs",
            "postgres://ann:x@y/s3cret@db/runs",
            "postgres://db/runs?user=ann&password=s3cret@x",
            "postgres://ann:s3cret@db/runs?schema=Team",
            "postgres://ann:s3cret@db/runs?schema=pg_s3cret",
            "postgres://ann:s3cret@db/runs?schema=%zz",
            "postgres://ann:s3cret@db/runs?sslmode=s3cret",
            "postgres://ann:s3cret@db/runs?prepared_statements=s3cret",
            "postgres://ann:s3cret@db/runs?blobs=s3://ann:s3cret@runs",
            "postgres://ann:s3cret@db/runs?blobs=s3://runs/x?key=s3cret",
        ] {
            let error = PostgresAddress::parse(text).unwrap_err();
            let is_unsupported = cfg!(not(feature = "objects")) && text.contains("blobs=");
            let kind = if is_unsupported { ErrorKind::Unsupported } else { ErrorKind::Invalid };
            assert_eq!(error.kind(), kind);
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }

    #[test]
    fn each_host_has_its_port() {
        let hosts = |text: &str| -> Vec<(Vec<Host>, Vec<u16>)> {
            let address = PostgresAddress::parse(text).unwrap();
            address.hosts().map(|config| (config.get_hosts().to_vec(), config.get_ports().to_vec())).collect()
        };
        let tcp = |name: &str, port| (vec![Host::Tcp(name.to_owned())], vec![port]);
        assert_eq!(hosts("postgres://ann:x@one,two:6543/runs"), [tcp("one", 5432), tcp("two", 6543)]);
        assert_eq!(hosts("postgres:///runs?host=one,two&port=6543"), [tcp("one", 6543), tcp("two", 6543)]);
        #[cfg(unix)]
        {
            let socket = |path: &str| (vec![Host::Unix(path.into())], vec![]);
            assert_eq!(hosts("postgres:///runs?host=/a,/b%20c"), [socket("/a"), socket("/b c")]);
            assert_eq!(shown("postgres:///runs?host=/a,/b"), "postgresql:///runs?host=/a,/b");
        }
    }

    #[cfg(feature = "objects")]
    #[test]
    fn object_storage_is_part_of_an_address() {
        for (text, expected) in [
            ("postgres://db/runs?blobs=s3://bucket/team/a", "postgresql://db/runs?blobs=s3://bucket/team/a"),
            (
                "postgres://db/runs?blobs=file%3A%2F%2F%2Fa%20b&schema=x",
                "postgresql://db/runs?schema=x&blobs=file:///a b",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn certificates_are_verified_unless_encryption_is_only_preferred() {
        let parsed = |parameters: &str| {
            let address = PostgresAddress::parse(&format!("postgres://db/runs{parameters}")).unwrap();
            (address.config.get_ssl_mode(), address.verification)
        };
        assert_eq!(parsed(""), (SslMode::Prefer, CertificateVerification::None));
        assert_eq!(parsed("?sslmode=disable"), (SslMode::Disable, CertificateVerification::None));
        assert_eq!(parsed("?sslmode=require"), (SslMode::Require, CertificateVerification::Full(None)));
        let with_root = CertificateVerification::Full(Some("/a b.pem".into()));
        assert_eq!(parsed("?sslrootcert=/a%20b.pem"), (SslMode::Require, with_root));
    }
}
