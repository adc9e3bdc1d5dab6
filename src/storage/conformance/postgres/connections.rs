//! Connections that are lost, by a proxy that cuts them, and processes that write at once.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Schema;
use crate::storage::conformance::kinds::{TestDocument, note};
use crate::storage::conformance::{acting, digest, start};
use crate::storage::interface::{Annotation, Filter, Order, Page, PutOptions, Storage};
use crate::storage::postgres::PostgresStorage;
use crate::storage::{
    BUSY_TIMEOUT, CreationPolicy, ErrorKind, JournalQuery, Prepared, PutOutcome, PutResult, RemovedPolicy,
    Result,
};

/// A vault behind a proxy.
struct ProxiedVault {
    storage: PostgresStorage,
    proxy: Proxy,
    _schema: Schema,
}

/// Returns a vault behind a proxy that cuts statements with `text`, or `None` if there is no server with a socket.
fn behind(text: &'static str, cut: ProxyFault) -> Option<ProxiedVault> {
    let schema = Schema::new()?;
    let address = schema.address();
    let (_, host) = address.split_once("host=")?;
    let host = host.split('&').next()?;
    let proxy = Proxy::start(PathBuf::from(host), text, cut);
    let address = address.replace(&format!("host={host}"), &format!("host={}", proxy.directory()));
    let storage = acting(PostgresStorage::open(&address, None, CreationPolicy::New).unwrap());
    Some(ProxiedVault { storage, proxy, _schema: schema })
}

fn put(storage: &PostgresStorage, name: &str) -> Result<Vec<PutResult>> {
    let prepared = storage.preparer().unwrap().prepare(TestDocument::new(name).admit(note()));
    let options = PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: BUSY_TIMEOUT };
    storage.put(&[&prepared], &options)
}

fn expect_one_addition(storage: &PostgresStorage, put: &[PutResult]) {
    assert_eq!(put[0].outcome, PutOutcome::Added);
    let snapshot = storage.snapshot().unwrap();
    assert_eq!(snapshot.count(&Filter::default()).unwrap(), 1);
    let entries = snapshot.journal(&JournalQuery::default(), 0, 10).unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[test]
fn a_batch_is_stored_again_if_its_statements_are_lost() {
    for text in ["BEGIN", "FOR UPDATE", "INSERT INTO blob", "INSERT INTO journal", "COMMIT"] {
        let Some(ProxiedVault { storage, proxy, _schema }) = behind(text, ProxyFault::Statement) else {
            return;
        };
        proxy.fail_next(2);
        expect_one_addition(&storage, &put(&storage, "a").unwrap());
        assert_eq!(proxy.left(), 0, "{text} was not cut");
    }
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_out() {
    let Some(ProxiedVault { storage, proxy, _schema }) = behind("COMMIT", ProxyFault::Answer) else { return };
    proxy.fail_next(1);
    expect_one_addition(&storage, &put(&storage, "a").unwrap());
    assert_eq!(proxy.left(), 0);
    let core = crate::storage::conformance::kinds::core(note(), "a");
    let mut change = storage.transaction(start(), BUSY_TIMEOUT).unwrap();
    change.annotate(&Annotation::SetTag { core, name: "x" }).unwrap();
    proxy.fail_next(1);
    let head = change.commit().unwrap();
    assert_eq!((proxy.left(), head), (0, storage.snapshot().unwrap().journal_head().unwrap()));
}

#[test]
fn a_change_that_did_not_take_effect_is_an_error() {
    let Some(ProxiedVault { storage, proxy, _schema }) = behind("COMMIT", ProxyFault::Statement) else {
        return;
    };
    put(&storage, "a").unwrap();
    let core = crate::storage::conformance::kinds::core(note(), "a");
    let mut change = storage.transaction(start(), BUSY_TIMEOUT).unwrap();
    change.annotate(&Annotation::SetTag { core, name: "x" }).unwrap();
    proxy.fail_next(1);
    assert_eq!(change.commit().unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(storage.snapshot().unwrap().tagged(&["x".to_owned()]).unwrap(), [None]);
}

#[test]
fn idle_connections_that_were_lost_are_replaced() {
    let Some(schema) = Schema::new() else { return };
    let address = format!("{}&application_name={}", schema.address(), "idle_connections");
    let storage = PostgresStorage::open(&address, None, CreationPolicy::New).unwrap();
    let held: Vec<_> = (0..4).map(|_| storage.snapshot().unwrap()).collect();
    drop(held);
    let ended = schema.client().query(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'idle_connections'",
        &[],
    );
    assert!(ended.unwrap().len() >= 4);
    assert_eq!(storage.snapshot().unwrap().count(&Filter::default()).unwrap(), 0);
    put(&storage, "a").unwrap();
}

/// The handling of the next statements that contain a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyFault {
    /// It does not pass it on.
    Statement,
    /// It passes it on and loses the answer.
    Answer,
}

/// A socket whose connections are cut.
pub(super) struct Proxy {
    directory: tempfile::TempDir,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// Starts a proxy of the socket in `server`, which does `cut` to statements with `text` as often as
    /// [`Proxy::fail_next`] says.
    pub(super) fn start(server: PathBuf, text: &'static str, cut: ProxyFault) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&cuts);
        // It ends with the process: the listener blocks.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = UnixStream::connect(server.join(".s.PGSQL.5432")).unwrap();
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || pass(from_server, to_client));
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || forward_until_fault(client, server, text, cut, &counter));
            }
        });
        Self { directory, cuts }
    }

    /// Cuts the next `count` times.
    pub(super) fn fail_next(&self, count: u32) {
        self.cuts.store(count, Ordering::SeqCst);
    }

    /// Returns how many cuts are left.
    pub(super) fn left(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }

    pub(super) fn directory(&self) -> String {
        self.directory.path().to_str().unwrap().to_owned()
    }
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn forward_until_fault(
    mut client: UnixStream,
    mut server: UnixStream,
    text: &str,
    cut: ProxyFault,
    cuts: &AtomicU32,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let sent = &bytes[..count];
        let has_text = sent.windows(text.len()).any(|window| window == text.as_bytes());
        let is_cut = has_text
            && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_cut {
            // Nothing of the answer passes, because the client is cut off first.
            let _ = client.shutdown(Shutdown::Both);
            if cut == ProxyFault::Answer {
                let _ = server.write_all(sent);
                // The server has done it when it is ready for the next statement or gone.
                let _ = server.shutdown(Shutdown::Write);
                return;
            }
            let _ = server.shutdown(Shutdown::Both);
            return;
        }
        if server.write_all(sent).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

const WRITERS: usize = 6;
const ROUNDS: usize = 8;

/// Stores what others store at the same time, in an order of its own. Returns how many were new.
fn write(address: &str, writer: usize) -> usize {
    let storage = acting(PostgresStorage::open(address, None, CreationPolicy::IfMissing).unwrap());
    let preparer = storage.preparer().unwrap();
    let options = PutOptions { policy: RemovedPolicy::Refuse, at: start(), busy_timeout: BUSY_TIMEOUT };
    let mut added = 0;
    for round in 0..ROUNDS {
        let batch = (0..10).map(|number| {
            let number = (number * (2 * writer + 1)) % 10;
            let document = TestDocument::new(&format!("{round}-{number}")).mention("prompt", 0, digest("p"));
            preparer.prepare(document.admit(note()))
        });
        let batch: Vec<Prepared> = batch.collect();
        let put = storage.put(&batch.iter().collect::<Vec<_>>(), &options).unwrap();
        added += put.iter().filter(|put| put.outcome == PutOutcome::Added).count();
    }
    added
}

#[test]
fn writers_of_the_same_artifacts_store_each_once() {
    let Some(schema) = Schema::new() else { return };
    let address = schema.address();
    let added: usize = std::thread::scope(|scope| {
        // They create the vault at the same time, too.
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let address = &address;
                    move || write(address, writer)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let storage = PostgresStorage::open(&address, None, CreationPolicy::Never).unwrap();
    let snapshot = storage.snapshot().unwrap();
    let found = snapshot.find(&Filter::default(), Order::Core, &Page::all()).unwrap();
    assert_eq!((added, found.items.len()), (10 * ROUNDS, 10 * ROUNDS));
    let check = snapshot.check_journal(None).unwrap();
    assert_eq!((check.defect, check.head), (None, snapshot.journal_head().unwrap()));
    let blobs = snapshot.statistics(crate::storage::TimeBasis::FirstSeen).unwrap().blobs.blobs;
    assert_eq!(blobs, found.items.len() as u64);
}
