//! How artifacts are stored: whatever the form, every byte comes back.

use std::collections::BTreeMap;

use rusqlite::{Connection, OpenFlags};

use crate::sandbox::{Sandbox, session};

const RAW: i64 = 0;
const CUT: i64 = 2;
const DIFFERENCE: i64 = 3;

/// How many payloads have which encoding.
fn encodings(sandbox: &Sandbox) -> BTreeMap<i64, usize> {
    let connection = open(sandbox);
    let mut statement =
        connection.prepare("SELECT encoding, count(*) FROM payload GROUP BY encoding").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn number(sandbox: &Sandbox, sql: &str) -> i64 {
    open(sandbox).query_row(sql, [], |row| row.get(0)).unwrap()
}

fn open(sandbox: &Sandbox) -> Connection {
    Connection::open_with_flags(sandbox.vault(), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

/// Words that do not repeat themselves much.
fn words(seed: usize, count: usize) -> String {
    let word = |index: usize| {
        runvault::digest::Digest::from_content(format!("{seed} {index}").as_bytes()).hex()[..5].to_owned()
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// The `take`th recording of one run: another answer to one of its prompts, and another time.
fn recording(run: usize, take: usize) -> String {
    let answer =
        |index: usize| words(run * 100 + index + if index == take % 20 { take * 1000 } else { 0 }, 40);
    let exchanges: Vec<(String, String)> =
        (0..20).map(|index| (format!("prompt {index} of {run}"), answer(index))).collect();
    let exchanges: Vec<(&str, &str)> = exchanges.iter().map(|(p, r)| (p.as_str(), r.as_str())).collect();
    let text = session("a", &exchanges);
    format!(
        "{},\"created_at_utc\":\"2026-01-01T00:{:02}:{:02}Z\"}}",
        &text[..text.len() - 1],
        take / 60,
        take % 60
    )
}

fn all_come_back(sandbox: &Sandbox, files: &[(String, String)]) {
    for (name, text) in files {
        let hash = runvault::digest::Digest::from_content(text.as_bytes()).to_string();
        assert_eq!(sandbox.run(["get", &hash]).expect(0).stdout, *text, "{name}");
    }
}

#[test]
fn recordings_of_one_run_are_stored_as_differences() {
    let sandbox = Sandbox::new();
    let files: Vec<(String, String)> = (0..3)
        .flat_map(|run| (0..12).map(move |take| (format!("{take:02}/run-{run}.json"), recording(run, take))))
        .collect();
    for (name, text) in &files {
        sandbox.write(&format!("d/{name}"), text);
    }
    // In one batch, and then in processes of their own.
    sandbox.run(["add", "d/00", "d/01", "d/02", "d/03", "d/04", "d/05"]).expect(0);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(CUT, 3), (DIFFERENCE, 15)]));
    for take in 6..12 {
        sandbox.run(["add", &format!("d/{take:02}")]).expect(0);
    }
    assert_eq!(encodings(&sandbox), BTreeMap::from([(CUT, 3), (DIFFERENCE, 33)]));
    let chained = "SELECT count(*) FROM payload p JOIN payload b ON b.blob = p.base WHERE b.base IS NOT NULL";
    assert_eq!(number(&sandbox, chained), 0);
    let stored = number(&sandbox, "SELECT sum(length(bytes) + coalesce(length(digests), 0)) FROM payload");
    let received: usize = files.iter().map(|(_, text)| text.len()).sum();
    assert!(stored * 10 < i64::try_from(received).unwrap(), "{stored} of {received}");
    all_come_back(&sandbox, &files);
    // And they are found by what is only in the difference.
    let changed = words(100 + 7 + 7 * 1000, 40);
    let hash = runvault::digest::Digest::from_content(changed.as_bytes()).to_string();
    assert_eq!(sandbox.run(["find", "--response-hash", &hash, "--json"]).expect(0).json().len(), 1);
    assert_eq!(sandbox.run(["find", "--prompt", "prompt 3 of 1", "--json"]).expect(0).json().len(), 12);
}

#[test]
fn a_capture_that_differs_in_its_times_takes_no_space() {
    let sandbox = Sandbox::new();
    let (one, other) = (recording(1, 0), recording(1, 0).replace("T00:00:00Z", "T09:09:09Z"));
    let cores = sandbox.add([sandbox.write("1.json", &one), sandbox.write("2.json", &other)]);
    assert_eq!(cores[0], cores[1]);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(CUT, 1), (DIFFERENCE, 1)]));
    let difference = "SELECT length(bytes) + length(digests) FROM payload WHERE base IS NOT NULL";
    assert!(number(&sandbox, difference) < 80);
    assert_eq!(number(&sandbox, "SELECT count(*) FROM mention_list"), 1);
    all_come_back(&sandbox, &[("1".to_owned(), one), ("2".to_owned(), other)]);
}

#[test]
fn recordings_of_a_run_in_the_vault_are_stored_as_differences_to_it() {
    let sandbox = Sandbox::new();
    let files: Vec<(String, String)> =
        (0..12).map(|take| (format!("d/{take:02}.json"), recording(1, take))).collect();
    for (name, text) in &files {
        sandbox.write(name, text);
    }
    sandbox.run(["add", "d/00.json"]).expect(0);
    sandbox.run(["add", "d/01.json"]).expect(0);
    // The first of these is not stored, and the second as a difference: neither can be a base.
    sandbox.run(["add", "d/00.json", "d/02.json", "d/03.json", "d/04.json"]).expect(0);
    sandbox.run(["add", "d/01.json", "d/05.json", "d/06.json", "d/07.json"]).expect(0);
    sandbox.run(["add", "d"]).expect(0);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(CUT, 1), (DIFFERENCE, 11)]));
    let chained = "SELECT count(*) FROM payload p JOIN payload b ON b.blob = p.base WHERE b.base IS NOT NULL";
    assert_eq!(number(&sandbox, chained), 0);
    all_come_back(&sandbox, &files);
}

#[test]
fn a_recording_that_is_not_stored_is_no_base() {
    let sandbox = Sandbox::new();
    let removed = sandbox.add([sandbox.write("d/0.json", recording(1, 0))]).remove(0);
    sandbox.run(["rm", &removed]).expect(0);
    for take in 1..4 {
        sandbox.write(&format!("d/{take}.json"), recording(1, take));
    }
    sandbox.run(["add", "d"]).expect(1);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(CUT, 1), (DIFFERENCE, 2)]));
    let files: Vec<_> = (1..4).map(|take| (take.to_string(), recording(1, take))).collect();
    all_come_back(&sandbox, &files);
}

#[test]
fn a_recording_that_is_stored_in_another_form_is_no_base() {
    let sandbox = Sandbox::new();
    let files: Vec<(String, String)> =
        (0..3).map(|take| (format!("d/{take}.json"), recording(1, take))).collect();
    for (name, text) in &files {
        sandbox.write(name, text);
    }
    sandbox.run(["add", "d/0.json"]).expect(0);
    let changed = open(&sandbox).execute(
        "UPDATE payload SET encoding = ?1, dictionary = NULL, digests = NULL, bytes = ?2",
        (RAW, files[0].1.as_bytes()),
    );
    assert_eq!(changed.unwrap(), 1);
    sandbox.run(["add", "d"]).expect(0);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(RAW, 1), (CUT, 1), (DIFFERENCE, 1)]));
    all_come_back(&sandbox, &files);
}

#[test]
fn damage_to_the_base_is_found_in_the_difference() {
    let sandbox = Sandbox::new();
    let cores =
        sandbox.add([sandbox.write("1.json", recording(1, 0)), sandbox.write("2.json", recording(1, 1))]);
    let damage =
        "UPDATE payload SET bytes = CAST(substr(bytes, 1, 100) || x'00' || substr(bytes, 102) AS BLOB)
                   WHERE base IS NULL AND substr(bytes, 101, 1) <> x'00'";
    assert_eq!(open(&sandbox).execute(damage, []).unwrap(), 1);
    for core in cores {
        let ran = sandbox.run(["get", &core]).expect(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("damaged"), "{}", ran.stderr);
    }
    // What is damaged is no sibling for what comes.
    sandbox.add([sandbox.write("3.json", recording(1, 2))]);
    assert_eq!(encodings(&sandbox)[&CUT], 2);
    all_come_back(&sandbox, &[("3".to_owned(), recording(1, 2))]);
}

/// Sessions that are alike in words, not in what they mention.
fn alike(count: usize) -> Vec<(String, String)> {
    let text = |n: usize| {
        let answer = format!("The build of case {n} was green; {} The deployment is next.", words(n, 4));
        session(&format!("adapter-{n}"), &[(&format!("What is the state of case {n}?"), &answer)])
    };
    (0..count).map(|n| (format!("d/{n:03}.json"), text(n))).collect()
}

#[test]
fn small_documents_share_a_dictionary() {
    let sandbox = Sandbox::new();
    let files = alike(300);
    for (name, text) in &files {
        sandbox.write(name, text);
    }
    sandbox.run(["add", "d"]).expect(0);
    assert_eq!(number(&sandbox, "SELECT count(*) FROM dictionary"), 1);
    let with = number(&sandbox, "SELECT count(*) FROM payload WHERE dictionary IS NOT NULL");
    assert!(with > 150, "{with}");
    let later = session("later", &[("What is the state of case 7?", "The build of case 7 was green.")]);
    sandbox.add([sandbox.write("later.json", &later)]);
    assert_eq!(number(&sandbox, "SELECT count(*) FROM dictionary"), 1);
    assert_eq!(number(&sandbox, "SELECT count(*) FROM payload WHERE dictionary IS NOT NULL"), with + 1);
    let some: Vec<_> = files.into_iter().step_by(29).chain([("later".to_owned(), later)]).collect();
    all_come_back(&sandbox, &some);
    let damage =
        "UPDATE dictionary SET bytes = CAST(substr(bytes, 1, length(bytes) - 900) || zeroblob(900) AS BLOB)";
    open(&sandbox).execute(damage, []).unwrap();
    for (_, text) in some {
        let hash = runvault::digest::Digest::from_content(text.as_bytes()).to_string();
        let ran = sandbox.run(["get", &hash]);
        assert!(ran.status == 2 || ran.stdout == text);
    }
}

#[test]
fn documents_that_come_one_by_one_get_a_dictionary_as_well() {
    let sandbox = Sandbox::new();
    let vault = runvault::Vault::open_or_create(&sandbox.vault()).unwrap();
    for (_, text) in alike(257) {
        vault.add_document(text.into_bytes(), &runvault::intake::ExamineOptions::default()).unwrap();
    }
    assert_eq!(number(&sandbox, "SELECT count(*) FROM dictionary"), 1);
    assert_eq!(number(&sandbox, "SELECT count(*) FROM payload WHERE dictionary IS NOT NULL"), 1);
}

#[test]
fn what_cannot_be_compressed_is_stored_as_it_is() {
    let sandbox = Sandbox::new();
    let contract = r#"{"effects":[],"io_refs":[]}"#;
    let core = sandbox.add([sandbox.write("c.json", contract)]).remove(0);
    assert_eq!(encodings(&sandbox), BTreeMap::from([(RAW, 1)]));
    assert_eq!(sandbox.run(["get", &core]).expect(0).stdout, contract);
}
