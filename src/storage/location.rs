//! The location of a vault: a file, or a database.

use std::path::{Path, PathBuf};

use super::interface::Storage;
use super::{CreationPolicy, ErrorKind, Result, StorageError, Store};

/// The beginning of the address of a file that could be mistaken for something else.
const FILE: &str = "sqlite:";

/// The beginnings of the address of a database.
const DATABASE: [&str; 2] = ["postgres://", "postgresql://"];

/// An open vault, with its name in messages.
pub(crate) struct OpenedStorage {
    pub(crate) storage: Box<dyn Storage>,
    /// The path, or the address without a password.
    pub(crate) name: PathBuf,
}

/// The address of a vault.
enum VaultAddress<'a> {
    File(&'a Path),
    Database(&'a str),
    /// Neither: it resembles the address of a database, and can contain a password.
    Mistaken(Mistake),
}

/// The reason that a text is no address, although it resembles one.
enum Mistake {
    /// A URL of something else, with its scheme.
    Scheme(String),
    /// The parameters of a connection, as `host=db password=…`.
    Parameters,
    /// An address in quotation marks or between spaces.
    Quoted,
    Other,
}

impl<'a> VaultAddress<'a> {
    fn new(address: &'a Path) -> Self {
        let text = address.to_str();
        match text {
            Some(text) if is_database(text) => return Self::Database(text),
            Some(text) if text.starts_with(FILE) => {
                return Self::File(Path::new(text.strip_prefix(FILE).unwrap_or(text)));
            }
            _ => {}
        }
        match Mistake::find(&address.to_string_lossy()).filter(|_| !address.exists()) {
            Some(mistake) => Self::Mistaken(mistake),
            None => Self::File(address),
        }
    }
}

/// The parameters of connections with which an address can begin, and those that are passwords.
const PARAMETERS: [&str; 10] = [
    "data source",
    "database",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "server",
    "user",
    "user id",
    "username",
];
const PASSWORDS: [&str; 5] = ["passwd", "password", "pgpassword", "pwd", "sslpassword"];

impl Mistake {
    /// Returns why a text is not the path of a file, if it resembles the address of a database.
    fn find(text: &str) -> Option<Self> {
        let is_quote = |character: char| {
            character.is_whitespace() || "\"'`\u{2018}\u{2019}\u{201c}\u{201d}".contains(character)
        };
        let plain = text.trim_matches(is_quote);
        if plain.len() < text.len() && is_database(plain) {
            return Some(Self::Quoted);
        }
        if has_parameters(plain) {
            return Some(Self::Parameters);
        }
        let is_similar = ["postgres", "postgresql"].iter().any(|scheme| {
            let rests = plain.match_indices(scheme).filter_map(|(at, _)| plain.get(at + scheme.len()..));
            rests.into_iter().any(|rest| rest.starts_with([':', '/']) && rest.contains(['@']))
        });
        if is_similar {
            return Some(Self::Other);
        }
        // A path that is written as one can contain anything else.
        if plain.starts_with(['.', '~']) || plain.starts_with('/') && !plain.starts_with("//") {
            return None;
        }
        if let Some((scheme, _)) = plain.split_once("://") {
            let is_scheme = |scheme: &str| {
                scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            };
            let is_known = is_scheme(scheme.strip_prefix("jdbc:").unwrap_or(scheme));
            return Some(if is_known { Self::Scheme(scheme.to_owned()) } else { Self::Other });
        }
        let login = plain.rsplit_once('@').filter(|(_, host)| !host.is_empty()).map(|(login, _)| login);
        let password = login.and_then(|login| login.split_once(':')).map(|(_, password)| password);
        password.filter(|password| !password.starts_with('\\')).map(|_| Self::Other)
    }

    fn error(&self) -> StorageError {
        StorageError::invalid(match self {
            Self::Scheme(scheme) => format!(
                "a vault has no address that begins with {scheme}://: it is a path, sqlite: and a path, or \
                 postgres://USER@HOST/DATABASE"
            ),
            Self::Parameters => {
                "the address of the vault is not valid: it has the parameters of a connection; one in a \
                                 database is written as postgres://USER@HOST/DATABASE"
                    .to_owned()
            }
            Self::Quoted => {
                "the address of the vault is not valid: it begins or ends with a quotation mark or a space"
                    .to_owned()
            }
            Self::Other => {
                "the address of the vault is not valid: one in a database begins with postgres:// or \
                            postgresql://, and the path of a file with @ after a colon with sqlite:"
                    .to_owned()
            }
        })
    }

    /// Returns what may be shown of the address.
    fn shown(&self) -> PathBuf {
        match self {
            Self::Scheme(scheme) => format!("{scheme}://").into(),
            _ => "postgresql://".into(),
        }
    }
}

/// Returns whether a text has parameters of a connection: a password, the host, or several others.
fn has_parameters(text: &str) -> bool {
    let mut text = text.to_ascii_lowercase();
    for (from, to) in [(" =", "="), ("= ", "=")] {
        while text.contains(from) {
            text = text.replace(from, to);
        }
    }
    let words = text.split([';', '&', '?', ',']).flat_map(|part| {
        // Names of parameters can contain spaces.
        let whole = part.trim().split_once('=').map(|(name, _)| name);
        let words = part.split_whitespace().filter_map(|word| word.split_once('=')).map(|(name, _)| name);
        whole.into_iter().chain(words).collect::<std::collections::BTreeSet<&str>>()
    });
    let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\'', '`'])).collect();
    let count = words.iter().filter(|word| PARAMETERS.contains(word)).count();
    count > 1
        || words.iter().any(|word| PASSWORDS.contains(word) || ["dbname", "host", "hostaddr"].contains(word))
}

fn is_database(text: &str) -> bool {
    DATABASE.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns the path of the vault's file, or `None` if the address is that of a database, or resembles one.
pub(crate) fn file_of(address: &Path) -> Option<&Path> {
    match VaultAddress::new(address) {
        VaultAddress::File(path) => Some(path),
        VaultAddress::Database(_) | VaultAddress::Mistaken(_) => None,
    }
}

/// Returns an address in the form in which it may be shown: without a password.
pub(crate) fn shown_address(address: &Path) -> PathBuf {
    match VaultAddress::new(address) {
        VaultAddress::File(path) => path.to_owned(),
        VaultAddress::Database(text) => shown_database(text).into(),
        VaultAddress::Mistaken(mistake) => mistake.shown(),
    }
}

/// Opens the vault at an address: a path, `sqlite:` and a path, or `postgres://…`.
///
/// # Errors
/// Same as [`Store::open`], errors of the kind `Connection` or `Invalid` for addresses of databases, and `Invalid` for what
/// resembles one.
pub(crate) fn open(address: &Path, creation: CreationPolicy) -> Result<OpenedStorage> {
    match VaultAddress::new(address) {
        VaultAddress::File(path) => {
            let store = Store::open(path, creation)?;
            let name = store.path().to_owned();
            Ok(OpenedStorage { storage: Box::new(store), name })
        }
        VaultAddress::Database(text) => open_database(text, creation),
        VaultAddress::Mistaken(mistake) => Err(mistake.error()),
    }
}

/// The password for an address that has none: that in the environment, or in the file of passwords, as for every client of
/// PostgreSQL, so that it need not be in an argument that other users can list.
#[cfg(feature = "postgres")]
#[derive(Default)]
struct Login {
    password: Option<String>,
    /// Why the file of passwords is not used.
    ignored: Option<String>,
}

#[cfg(feature = "postgres")]
impl Login {
    fn new(address: &str) -> Self {
        use super::postgres::password_file::{PasswordLookup, find};

        let variable = |name: &str| std::env::var(name).ok();
        if let Some(password) = variable("PGPASSWORD") {
            return Self { password: Some(password), ignored: None };
        }
        let named = std::env::var_os("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = named.or_else(|| Some(std::env::home_dir()?.join(".pgpass"))).unwrap_or_default();
        let user = variable("USER").or_else(|| variable("LOGNAME"));
        match find(address, &path, user.as_deref()) {
            PasswordLookup::Password(password) => Self { password: Some(password), ignored: None },
            PasswordLookup::Ignored(reason) => Self { password: None, ignored: Some(reason) },
            PasswordLookup::Nothing => Self::default(),
        }
    }

    /// Adds to an error of the connection why there was no password.
    fn explain(self, error: StorageError) -> StorageError {
        match self.ignored {
            // The driver reports a password that it does not have as an error of another kind.
            Some(reason) if [ErrorKind::Connection, ErrorKind::Database].contains(&error.kind()) => {
                StorageError::new(error.kind(), format!("{error}; {reason}")).with_source(error)
            }
            _ => error,
        }
    }
}

#[cfg(feature = "postgres")]
fn open_database(address: &str, creation: CreationPolicy) -> Result<OpenedStorage> {
    use super::postgres::PostgresStorage;

    let mut login = Login::new(address);
    let password = login.password.take();
    let storage = PostgresStorage::open(address, password, creation).map_err(|error| login.explain(error))?;
    let name = storage.address().into();
    Ok(OpenedStorage { storage: Box::new(storage), name })
}

#[cfg(not(feature = "postgres"))]
fn open_database(_: &str, _: CreationPolicy) -> Result<OpenedStorage> {
    Err(without_databases())
}

#[cfg(not(feature = "postgres"))]
fn without_databases() -> StorageError {
    let message = "this program was built without support for vaults in PostgreSQL";
    StorageError::new(ErrorKind::Unsupported, message)
}

#[cfg(feature = "postgres")]
fn shown_database(address: &str) -> String {
    super::postgres::shown_address(address).unwrap_or_else(|| "postgresql://".to_owned())
}

#[cfg(not(feature = "postgres"))]
fn shown_database(_: &str) -> String {
    "postgresql://".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_paths_unless_they_are_of_a_database() {
        let file = |text: &'static str| file_of(Path::new(text));
        assert_eq!(file("runs.vault"), Some(Path::new("runs.vault")));
        assert_eq!(file("sqlite:postgres://x"), Some(Path::new("postgres://x")));
        assert_eq!((file("postgres://db/runs"), file("postgresql:///runs")), (None, None));
    }

    #[test]
    fn urls_of_other_programs_are_refused() {
        let refused = |text: &str| {
            let error = open(Path::new(text), CreationPolicy::Never).err().unwrap();
            error.to_string()
        };
        let message = refused("mysql://ann:s3cret@db/runs");
        assert!(message.starts_with("a vault has no address that begins with mysql://: "), "{message}");
        assert!(!message.contains("s3cret"), "{message}");
        assert!(!refused("sqlite:https://example").contains("address"), "a path");
        let message = refused("jdbc:postgresql://db/runs?user=ann&password=s3cret");
        assert!(message.contains("parameters of a connection"), "{message}");
        assert!(refused("jdbc:postgresql://db/runs").contains("jdbc:postgresql://: "));
    }

    #[test]
    fn mistyped_addresses_of_databases_are_refused_without_showing_them() {
        for text in [
            "postgres:/ann:s3cret@db/runs",
            "postgresql:ann:s3cret@db/runs",
            "postgres//ann:s3cret@db/runs",
            "postgres:/ann:s3cret@db/runs?x=y",
            "/home/ann/postgres:/ann:s3cret@db/runs",
            "\"postgres://ann:s3cret@db/runs\"",
            "'postgresql://ann:s3cret@db/runs'",
            " postgres://ann:s3cret@db/runs",
            "postgres ://ann:s3cret@db/runs",
            "psql postgres://ann:s3cret@db/runs",
            "DATABASE_URL=postgres://ann:s3cret@db/runs",
            "ann:s3cret@db/runs",
            "//ann:s3cret@db/runs",
            "//db/runs?password=s3cret",
            "host=db user=ann password=s3cret dbname=runs",
            "dbname = runs password = s3cret",
            "Host=db;Username=ann;Password=s3cret",
            "Server=db;User Id=ann;Pwd=s3cret",
            "'host=db password=s3cret'",
        ] {
            let error = open(Path::new(text), CreationPolicy::IfMissing).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
            assert_eq!(shown_address(Path::new(text)), Path::new("postgresql://"), "{text}");
            assert_eq!(file_of(Path::new(text)), None);
        }
        for text in [
            "postgres/runs.vault",
            "runs@12:30.vault",
            "data/user=ann/runs.vault",
            "./a:b@c",
            "a=b",
            "/tmp/host=x y",
        ] {
            assert!(file_of(Path::new(text)).is_some(), "{text}");
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        for text in ["postgres://ann:s3cret@db/runs", "postgres://ann:s3cret@db:port/runs"] {
            let shown = shown_address(Path::new(text));
            assert!(!shown.to_string_lossy().contains("s3cret"), "{shown:?}");
            assert!(shown.starts_with("postgresql:"), "{shown:?}");
        }
        assert_eq!(shown_address(Path::new("a:b@c")), Path::new("postgresql://"));
        assert_eq!(shown_address(Path::new("sqlite:a:b@c")), Path::new("a:b@c"));
    }
}
