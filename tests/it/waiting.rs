//! A process that holds the write lock and does not go on does not keep others from reading, and writers take turns.

use std::sync::atomic::{AtomicBool, Ordering};

use runvault::Vault;
use runvault::intake::ExamineOptions;
use runvault::vault::search::SearchRequest;
use rusqlite::{Connection, OpenFlags};

use crate::sandbox::{READING, Ran, Sandbox, repository, session};

/// Commands that change nothing but other files, with their exit statuses on the examples.
const UNCHANGING: &[(&[&str], i32)] = &[
    (&["pin", "list"], 0),
    (&["tombstones"], 0),
    (&["unresolved"], 0),
    (&["backup", "copy.vault"], 0),
    (&["export", "--all", "-o", "all.rvz"], 0),
    (&["rm", "4df877dec7f4", "--dry-run", "--with-containers", "--force"], 0),
    (&["gc", "--dry-run"], 0),
    (&["forget", "--keep-last", "1", "--dry-run"], 0),
    (&["add", "examples", "--dry-run"], 0),
];

/// A vault with the examples and a search index.
fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(repository("examples"), sandbox.path("examples")).unwrap();
    sandbox.add([repository("examples")]);
    sandbox.run(["index", "build"]).expect(0);
    sandbox
}

/// Holds the write lock as long as it is there, like a process that was stopped.
fn hold(sandbox: &Sandbox) -> Connection {
    let connection = Connection::open_with_flags(sandbox.vault(), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

fn free(connection: &Connection) {
    connection.execute_batch("ROLLBACK").unwrap();
}

#[test]
fn who_reads_does_not_wait_for_the_write_lock() {
    let sandbox = examples();
    let held = hold(&sandbox);
    for (arguments, status) in READING.iter().chain(UNCHANGING) {
        let ran = sandbox.run(*arguments);
        assert_eq!(ran.status, *status, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    }
    free(&held);
}

#[test]
fn search_answers_from_the_index_as_it_is_and_says_what_it_lacks() {
    let sandbox = examples();
    sandbox.add([sandbox.write("new.json", session("new", &[("p", "quokka")]))]);
    let held = hold(&sandbox);
    let ran = sandbox.run(["search", "cut off by mistake"]).expect(0);
    assert!(ran.stderr.contains("the search index lacks 1 capture"), "{}", ran.stderr);
    let vault = Vault::open(&sandbox.vault()).unwrap();
    let found = || {
        vault.catch_up_search(&mut |_| {}).unwrap();
        let request = SearchRequest { words: "quokka".to_owned(), ..SearchRequest::default() };
        vault.run(&request).unwrap().hits.len()
    };
    assert_eq!(found(), 0);
    assert_eq!(vault.search_index().unwrap().unwrap().waiting, 1);
    free(&held);
    let ran = sandbox.run(["search", "quokka"]).expect(0);
    assert!(!ran.stderr.contains("lacks"), "{}", ran.stderr);
    assert_eq!(found(), 1);
}

/// What is printed of artifacts that are there, and which of them are not recorded as seen.
fn unrecorded(ran: &Ran) -> usize {
    let lines = ran.json();
    assert!(lines.iter().all(|line| line["outcome"] == "present"), "{}", ran.stdout);
    lines.iter().filter(|line| line["recorded"] == false).count()
}

/// Runs two commands at the same time, which wait in vain.
fn at_once(sandbox: &Sandbox, one: &[&str], other: &[&str]) -> (Ran, Ran) {
    std::thread::scope(|scope| {
        let one = scope.spawn(|| sandbox.run(one).expect(2));
        let other = sandbox.run(other).expect(2);
        (one.join().unwrap(), other)
    })
}

#[test]
fn adding_what_is_there_answers_and_says_what_it_could_not_record() {
    let sandbox = examples();
    let journal = sandbox.run(["log", "--json"]).expect(0).stdout;
    let held = hold(&sandbox);
    let (ran, one) = at_once(&sandbox, &["add", "--json", "examples"], &["add", "examples/session.json"]);
    assert_eq!(unrecorded(&ran), ran.json().len());
    assert!(ran.stderr.contains("could not be recorded as seen again"), "{}", ran.stderr);
    assert!(one.stdout.starts_with("already stored "), "{}", one.stdout);
    free(&held);
    assert_eq!(sandbox.run(["log", "--json"]).expect(0).stdout, journal);
    // Adding them again is what it says.
    let ran = sandbox.run(["add", "--json", "examples"]).expect(0);
    assert_eq!(unrecorded(&ran), 0);
    assert_ne!(sandbox.run(["log", "--json"]).expect(0).stdout, journal);
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_file_whose_artifact_is_there_but_not_recorded_is_not_moved() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.json", session("a", &[("p", "r")]));
    sandbox.add([&file]);
    let held = hold(&sandbox);
    sandbox.run(["add", "--move", "a.json"]).expect(2);
    assert!(file.exists());
    free(&held);
    sandbox.run(["add", "--move", "a.json"]).expect(0);
    assert!(!file.exists());
}

#[test]
fn importing_and_watching_what_is_there_answer_as_well() {
    let sandbox = examples();
    sandbox.run(["tag", "set", "4df877dec7f4", "base"]).expect(0);
    sandbox.run(["note", "set", "4df877dec7f4", "a note"]).expect(0);
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    let held = hold(&sandbox);
    let watch = ["watch", "--once", "--settle", "0s", "examples"];
    let (imported, watched) = at_once(&sandbox, &["import", "all.rvz"], &watch);
    for ran in [imported, watched] {
        assert!(ran.stderr.contains("could not be recorded as seen again"), "{}", ran.stderr);
    }
    free(&held);
}

/// No waiting process is overtaken forever by those that write all the time.
#[test]
fn one_who_waits_gets_the_lock_while_others_write_without_a_pause() {
    const WRITERS: usize = 3;
    let sandbox = Sandbox::new();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (path, is_done) = (sandbox.vault(), &is_done);
            scope.spawn(move || {
                let vault = Vault::open(&path).unwrap();
                let mut number = 0;
                while !is_done.load(Ordering::Relaxed) {
                    number += 1;
                    let text = session(&format!("{writer} {number}"), &[("p", "r")]);
                    vault.add_document(text.into_bytes(), &ExamineOptions::default()).unwrap();
                }
            });
        }
        // What is there already would be waited for only shortly.
        let add = |round: u32| {
            let text = session(&format!("new {round}"), &[("p", "r")]);
            sandbox.run([std::ffi::OsStr::new("add"), sandbox.write("new.json", text).as_os_str()])
        };
        let ran: Vec<Ran> = (0..5).map(add).collect();
        is_done.store(true, Ordering::Relaxed);
        let failed: Vec<&str> =
            ran.iter().filter(|ran| ran.status != 0).map(|ran| ran.stderr.as_str()).collect();
        assert!(failed.is_empty(), "{failed:?}");
    });
    sandbox.run(["fsck"]).expect(0);
    assert!(!sandbox.path("v.vault-queue").exists());
}

/// A process that was killed while it waited leaves a file that makes no other process wait.
#[test]
fn the_queue_of_a_process_that_was_killed_is_taken_over() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("a.json", session("a", &[("p", "r")]))]);
    sandbox.write("b.json", session("b", &[("p", "r")]));
    let held = hold(&sandbox);
    let mut child = sandbox.command().args(["add", "b.json"]).spawn().unwrap();
    while !sandbox.path("v.vault-queue").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(sandbox.path("v.vault-queue").exists());
    free(&held);
    drop(held);
    sandbox.run(["add", "b.json"]).expect(0);
    assert!(!sandbox.path("v.vault-queue").exists());
}

/// A process at the head of the queue that is stopped is passed by.
#[test]
fn a_stopped_head_of_the_queue_is_passed_by() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("a.json", session("a", &[("p", "r")]))]);
    let queue = std::fs::File::create(sandbox.path("v.vault-queue")).unwrap();
    queue.lock().unwrap();
    sandbox.add([sandbox.write("b.json", session("b", &[("p", "r")]))]);
    drop(queue);
}
