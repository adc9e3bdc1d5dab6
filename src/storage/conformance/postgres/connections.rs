//! Connections that are lost.

use std::path::PathBuf;

use super::Schema;
use super::proxy::{Proxy, ProxyFault};
use crate::storage::conformance::kinds::{TestDocument, note};
use crate::storage::conformance::{acting, start};
use crate::storage::interface::{Annotation, Filter, PutOptions, Storage};
use crate::storage::postgres::PostgresStorage;
use crate::storage::{
    BUSY_TIMEOUT, CreationPolicy, ErrorKind, JournalQuery, PutOutcome, PutResult, RemovedPolicy, Result,
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
