//! Where a vault is: a file, or a database.

use std::path::{Path, PathBuf};

use super::interface::Storage;
use super::{ErrorKind, Result, StorageError, Store, Upgrade};

/// The beginning of the address of a file that could be mistaken for something else.
const FILE: &str = "sqlite:";

/// The beginnings of the address of a database.
const DATABASE: [&str; 2] = ["postgres://", "postgresql://"];

/// The policy if there is no vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreationPolicy {
    /// That is an error.
    Never,
    /// One is created when the first artifact is stored.
    WhenNeeded,
    /// One is created now, if there is none.
    IfMissing,
    /// One is created now; that there is one is an error.
    New,
    /// One is created now, if there is none, and it may be an incomplete copy.
    ForCopy,
}

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
}

impl<'a> VaultAddress<'a> {
    fn new(address: &'a Path) -> Self {
        match address.to_str() {
            Some(text) if is_database(text) || is_mistyped(address, text) => Self::Database(text),
            Some(text) => Self::File(Path::new(text.strip_prefix(FILE).unwrap_or(text))),
            None => Self::File(address),
        }
    }
}

/// Returns an error if an address is a URL of something that is neither a file nor a database of vaults.
fn expect_known_scheme(address: &Path) -> Result<()> {
    if address.to_str().is_some_and(|text| is_mistyped(address, text)) {
        let message = "the address of the vault is not valid: one in a database begins with postgres:// or postgresql://";
        return Err(StorageError::invalid(message));
    }
    let text = address.to_str().filter(|text| !text.starts_with(FILE) && !is_database(text));
    let scheme = text.and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    match scheme.filter(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        Some(scheme) if !address.exists() => Err(StorageError::invalid(format!(
            "a vault has no address that begins with {scheme}://: it is a path, sqlite: and a path, or \
             postgres://USER@HOST/DATABASE"
        ))),
        _ => Ok(()),
    }
}

/// Returns whether a text is the mistyped address of a database, which may contain a password, and no file has this path.
fn is_mistyped(address: &Path, text: &str) -> bool {
    let rest = ["postgresql", "postgres"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_similar = rest.is_some_and(|rest| rest.starts_with([':', '/']) && rest.contains('@'));
    is_similar && !is_database(text) && !address.exists()
}

fn is_database(text: &str) -> bool {
    DATABASE.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns the path of the vault's file, or `None` if the address is that of a database.
pub(crate) fn file_of(address: &Path) -> Option<&Path> {
    match VaultAddress::new(address) {
        VaultAddress::File(path) => Some(path),
        VaultAddress::Database(_) => None,
    }
}

/// Returns an address in the form in which it may be shown: without a password.
pub(crate) fn shown_address(address: &Path) -> PathBuf {
    match VaultAddress::new(address) {
        VaultAddress::File(path) => path.to_owned(),
        VaultAddress::Database(text) => shown_database(text).into(),
    }
}

/// Opens the vault at an address: a path, `sqlite:` and a path, or `postgres://…`.
///
/// # Errors
/// Same as [`Store::open`], errors of the kind `Connection` or `Invalid` for addresses of databases, and `Invalid` for other
/// URLs.
pub(crate) fn open(address: &Path, creation: CreationPolicy) -> Result<OpenedStorage> {
    expect_known_scheme(address)?;
    match VaultAddress::new(address) {
        VaultAddress::File(path) => {
            let open = match creation {
                CreationPolicy::Never => Store::open,
                CreationPolicy::WhenNeeded => Store::create_when_needed,
                CreationPolicy::IfMissing => Store::open_or_create,
                CreationPolicy::New => Store::create,
                CreationPolicy::ForCopy => Store::open_for_copy,
            };
            let store = open(path)?;
            let name = store.path().to_owned();
            Ok(OpenedStorage { storage: Box::new(store), name })
        }
        VaultAddress::Database(text) => open_database(text, creation),
    }
}

/// Upgrades the vault at an address to the current schema, and opens it.
///
/// # Errors
/// Same as [`Store::upgrade`], and errors of the kind `Connection` or `Invalid` for addresses of databases.
pub(crate) fn upgrade(address: &Path) -> Result<(Box<dyn Storage>, Upgrade)> {
    expect_known_scheme(address)?;
    match VaultAddress::new(address) {
        VaultAddress::File(path) => {
            Store::upgrade(path).map(|(store, upgrade)| (Box::new(store) as _, upgrade))
        }
        VaultAddress::Database(text) => upgrade_database(text),
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

    let open = match creation {
        CreationPolicy::Never => PostgresStorage::open,
        CreationPolicy::WhenNeeded | CreationPolicy::IfMissing => PostgresStorage::open_or_create,
        CreationPolicy::New => PostgresStorage::create,
        CreationPolicy::ForCopy => PostgresStorage::open_for_copy,
    };
    let mut login = Login::new(address);
    let storage = open(address, login.password.take()).map_err(|error| login.explain(error))?;
    let name = storage.address().into();
    Ok(OpenedStorage { storage: Box::new(storage), name })
}

#[cfg(feature = "postgres")]
fn upgrade_database(address: &str) -> Result<(Box<dyn Storage>, Upgrade)> {
    let mut login = Login::new(address);
    let upgraded = super::postgres::PostgresStorage::upgrade(address, login.password.take());
    let (storage, upgrade) = upgraded.map_err(|error| login.explain(error))?;
    Ok((Box::new(storage), upgrade))
}

#[cfg(not(feature = "postgres"))]
fn open_database(_: &str, _: CreationPolicy) -> Result<OpenedStorage> {
    Err(without_databases())
}

#[cfg(not(feature = "postgres"))]
fn upgrade_database(_: &str) -> Result<(Box<dyn Storage>, Upgrade)> {
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
    }

    #[test]
    fn mistyped_addresses_of_databases_are_refused_without_showing_them() {
        for text in [
            "postgres:/ann:s3cret@db/runs",
            "postgresql:ann:s3cret@db/runs",
            "postgres//ann:s3cret@db/runs",
            "postgres:/ann:s3cret@db/runs?x=y",
        ] {
            let error = open(Path::new(text), CreationPolicy::Never).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(!error.to_string().contains("s3cret"), "{error}");
            assert_eq!(shown_address(Path::new(text)), Path::new("postgresql://"));
            assert_eq!(file_of(Path::new(text)), None);
        }
        assert!(file_of(Path::new("postgres/runs.vault")).is_some());
    }

    #[test]
    fn passwords_are_not_shown() {
        for text in ["postgres://ann:s3cret@db/runs", "postgres://ann:s3cret@db:port/runs"] {
            let shown = shown_address(Path::new(text));
            assert!(!shown.to_string_lossy().contains("s3cret"), "{shown:?}");
            assert!(shown.starts_with("postgresql:"), "{shown:?}");
        }
        assert_eq!(shown_address(Path::new("a:b@c")), Path::new("a:b@c"));
    }
}
