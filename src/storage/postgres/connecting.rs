//! Opening of connections, encrypted ones too: one host after the other, each for a limited time.
//!
//! The driver limits the time in which the network connects, not the time in which the server answers. A server or a pooler
//! that accepts connections and never answers would be waited for without end, and the next host never be tried.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;
use postgres::config::LoadBalanceHosts;
use postgres::{Client, Error};
use r2d2::ManageConnection;
use r2d2_postgres::PostgresConnectionManager;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{CertificateVerification, PostgresAddress};
use super::statements::Connection;
use crate::storage::waiting::Wait;
use crate::storage::{ErrorKind, Result, StorageError};

/// How long a host may take to answer, in time-outs of the network: its name can have several addresses.
const ANSWER_TIMEOUTS: u32 = 3;

/// A host, as the driver connects to it.
type HostManager = Arc<PostgresConnectionManager<MakeRustlsConnect>>;

/// Opens and tests connections.
pub(super) struct ServerConnectionManager {
    hosts: Vec<HostManager>,
    is_random: bool,
    /// How long each host may take.
    limit: Duration,
    /// The address, as it may be shown.
    name: String,
    /// The connection that was opened to see whether that is possible.
    first: Mutex<Option<Client>>,
    failure: LastFailure,
}

/// The reason that the last attempt to connect failed, if it did.
pub(super) type LastFailure = Arc<Mutex<Option<ConnectionFailure>>>;

/// The reason that no connection was opened.
#[derive(Clone, Debug)]
pub(in crate::storage) enum ConnectionFailure {
    /// The server or the driver reports it.
    Reported(Arc<Error>),
    /// The server did not answer for this time.
    Silent(Duration),
}

impl ServerConnectionManager {
    /// Connects to the first host that answers, and keeps this connection for the pool.
    pub(super) fn connect_first(
        address: &PostgresAddress,
        failure: LastFailure,
    ) -> Result<std::result::Result<Self, ConnectionFailure>> {
        let connector = connector(&address.verification)?;
        let host = |config| Arc::new(PostgresConnectionManager::new(config, connector.clone()));
        let timeout = address.config.get_connect_timeout().copied().unwrap_or_default();
        let manager = Self {
            hosts: address.hosts().map(host).collect(),
            is_random: address.config.get_load_balance_hosts() == LoadBalanceHosts::Random,
            limit: timeout.saturating_mul(ANSWER_TIMEOUTS),
            name: address.to_string(),
            first: Mutex::new(None),
            failure,
        };
        Ok(manager.open().map(|first| Self { first: Mutex::new(Some(first)), ..manager }))
    }

    /// Opens a connection to the first host that accepts one.
    fn open(&self) -> std::result::Result<Client, ConnectionFailure> {
        let _wait = Wait::begin(|| format!("an answer of the server at {}", self.name));
        let number = if self.is_random { RandomState::new().build_hasher().finish() } else { 0 };
        let first = usize::try_from(number).unwrap_or(0).checked_rem(self.hosts.len()).unwrap_or(0);
        let mut failure = ConnectionFailure::Silent(Duration::ZERO);
        for host in self.hosts.iter().cycle().skip(first).take(self.hosts.len()) {
            match connect_within(host, self.limit) {
                Ok(client) => return Ok(client),
                Err(failed) => failure = failed,
            }
        }
        Err(failure)
    }
}

/// Connects to a host, on a thread that is left to itself if the host does not answer in time.
fn connect_within(host: &HostManager, limit: Duration) -> std::result::Result<Client, ConnectionFailure> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let connecting = Arc::clone(host);
    let connect = move || {
        // An answer that comes too late is not used.
        let _ = sender.send(connecting.connect());
    };
    if std::thread::Builder::new().name("connect".to_owned()).spawn(connect).is_err() {
        return host.connect().map_err(ConnectionFailure::from);
    }
    match receiver.recv_timeout(limit) {
        Ok(connected) => connected.map_err(ConnectionFailure::from),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(ConnectionFailure::Silent(limit))
        }
    }
}

impl From<Error> for ConnectionFailure {
    fn from(error: Error) -> Self {
        Self::Reported(Arc::new(error))
    }
}

impl fmt::Display for ConnectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(error) => error.fmt(f),
            Self::Silent(limit) => {
                write!(f, "the server did not answer for {} s", limit.as_secs())
            }
        }
    }
}

impl std::error::Error for ConnectionFailure {}

impl ManageConnection for ServerConnectionManager {
    type Connection = Connection;
    type Error = ConnectionFailure;

    fn connect(&self) -> std::result::Result<Connection, ConnectionFailure> {
        if let Some(first) = self.first.lock().take() {
            return Ok(Connection::new(first));
        }
        let connected = self.open();
        *self.failure.lock() = connected.as_ref().err().cloned();
        connected.map(Connection::new)
    }

    fn is_valid(&self, connection: &mut Connection) -> std::result::Result<(), ConnectionFailure> {
        connection.simple_query("").map(drop).map_err(ConnectionFailure::from)
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.is_closed()
    }
}

/// Returns what makes connections encrypted.
///
/// # Errors
/// Returns an error of the kind `Invalid` if there are no certificates of authorities to verify the server's with.
pub(super) fn connector(verification: &CertificateVerification) -> Result<MakeRustlsConnect> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| invalid(&error))?;
    let config = match verification {
        // Who can answer in the server's place can also refuse encryption, which is only preferred here.
        CertificateVerification::None => {
            let verifier = Arc::new(AnyCertificate(provider));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        CertificateVerification::Full(file) => {
            builder.with_root_certificates(roots(file.as_deref())?).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Returns the certificates of the authorities in a file, or of those that the system trusts.
fn roots(file: Option<&Path>) -> Result<RootCertStore> {
    let found = match file {
        Some(file) => rustls_native_certs::load_certs_from_paths(Some(file), None),
        None => rustls_native_certs::load_native_certs(),
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    match (roots.is_empty(), found.errors.first()) {
        (false, _) => Ok(roots),
        (true, Some(error)) => Err(invalid(error)),
        (true, None) => Err(invalid(&"there are no certificates of authorities")),
    }
}

fn invalid(reason: &dyn std::fmt::Display) -> StorageError {
    let message = format!("the certificate of the server cannot be verified: {reason}");
    StorageError::new(ErrorKind::Invalid, message)
}

/// Accepts every certificate of which the server has the key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
