//! Removed bytes are gone from the files, and space comes back.

use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;

use memchr::memmem;
use runvault::intake::ExamineOptions;
use runvault::storage::{BUSY_TIMEOUT, PutOptions, RemovedPolicy, Storage};
use rusqlite::Connection;

use super::{count, expect_whole, recordings};
use crate::journal::sql;
use crate::sandbox::{Sandbox, session};

/// Text that no compressor can shorten much, different for every `seed`.
pub(super) fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 94) as u8)
    };
    (0..length).map(|_| next()).filter(|character| !"\"\\".contains(*character)).collect()
}

/// The bytes of the vault and its log.
fn files(sandbox: &Sandbox) -> Vec<Vec<u8>> {
    ["", "-wal", "-shm"]
        .iter()
        .filter_map(|ending| std::fs::read(sandbox.path(&format!("v.vault{ending}"))).ok())
        .collect()
}

pub(crate) fn is_somewhere(sandbox: &Sandbox, bytes: &[u8]) -> bool {
    files(sandbox).iter().any(|file| memmem::find(file, bytes).is_some())
}

/// What is stored for the blob of an artifact: pieces of the payload and its digests.
pub(super) fn stored(sandbox: &Sandbox, core: &str) -> Vec<Vec<u8>> {
    let digest: runvault::digest::Digest = core.parse().unwrap();
    let (bytes, digests): (Vec<u8>, Option<Vec<u8>>) = sql(sandbox)
        .query_row(
            "SELECT p.bytes, p.digests FROM artifact a JOIN capture c ON c.artifact = a.id
               JOIN payload p ON p.blob = c.blob WHERE a.core = ?1",
            [digest.as_bytes()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let pieces = bytes.chunks_exact(24).step_by(3).map(<[u8]>::to_vec);
    pieces.chain(digests.unwrap_or_default().chunks_exact(32).map(<[u8]>::to_vec)).collect()
}

#[test]
fn removed_bytes_are_gone_from_every_file() {
    let sandbox = Sandbox::new();
    let secret = noise(7, 60);
    // Too short to be worth compressing: stored as it is.
    let raw = format!("{{\"io_refs\":[],\"x\":\"{secret}\"}}");
    let raw = match sandbox.run_on(raw.as_bytes(), &["verify", "-"]).status {
        0 => raw,
        _ => session(&secret, &[]),
    };
    let large = session("large", &[("a secret prompt", &noise(8, 40_000))]);
    let mut others = Vec::new();
    for number in 0..40_u32 {
        let length = 200 + 700 * (number as usize % 7);
        let text = session(&format!("other-{number}"), &[("p", &noise(100 + u64::from(number), length))]);
        others.push(sandbox.add([sandbox.write("o.json", text)]).remove(0));
        if number == 20 {
            sandbox.write("raw.json", &raw);
            sandbox.write("large.json", &large);
            others.extend(sandbox.add(["raw.json", "large.json"].map(|name| sandbox.path(name))));
        }
    }
    let (raw, large) = (others.remove(21), others.remove(21));
    let mut pieces = stored(&sandbox, &raw);
    pieces.extend(stored(&sandbox, &large));
    // A few of them begin on one page and end on another.
    pieces.retain(|piece| is_somewhere(&sandbox, piece));
    assert!(pieces.len() > 300, "{}", pieces.len());
    pieces.push(secret.into_bytes());
    pieces.push(runvault::digest::Digest::from_content(b"a secret prompt").as_bytes().to_vec());
    assert!(pieces.iter().all(|piece| is_somewhere(&sandbox, piece)), "the test looks for what is there");
    // A vault that is open meanwhile does not keep them.
    let open = runvault::Vault::open(&sandbox.vault()).unwrap();
    sandbox.run(["rm", &raw, &large]).expect(0);
    for piece in &pieces {
        assert!(!is_somewhere(&sandbox, piece), "{}", String::from_utf8_lossy(piece));
    }
    drop(open);
    expect_whole(&sandbox);
    assert!(
        others.iter().all(|core| stored(&sandbox, core).iter().all(|piece| is_somewhere(&sandbox, piece)))
    );
}

#[test]
fn bytes_are_gone_in_whatever_order_things_were_removed() {
    let sandbox = Sandbox::new();
    let mut cores: Vec<String> = Vec::new();
    for number in 0..120_u32 {
        let length = 100 + (number * 997 % 9_000) as usize;
        let text = session(&format!("n-{number}"), &[("p", &noise(number.into(), length))]);
        sandbox.write(&format!("d/{number}.json"), text);
    }
    cores.extend(sandbox.add([sandbox.path("d")]));
    let mut gone = Vec::new();
    for round in 0..8 {
        let leaving: Vec<String> =
            (0..10).map(|step| cores.remove((round * 31 + step * 17) % cores.len())).collect();
        for core in &leaving {
            gone.extend(stored(&sandbox, core).into_iter().step_by(20));
        }
        sandbox.run(std::iter::once("rm").chain(leaving.iter().map(String::as_str))).expect(0);
    }
    let left = |sandbox: &Sandbox| {
        let files = files(sandbox);
        let all: HashSet<&[u8]> = files.iter().flat_map(|file| file.windows(24)).collect();
        let connection = sql(sandbox);
        let mut statement = connection
            .prepare(
                "SELECT bytes FROM payload UNION ALL SELECT digests FROM payload WHERE digests IS NOT NULL",
            )
            .unwrap();
        let living: Vec<Vec<u8>> =
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        // Beginnings are alike, and all ask the same.
        let living: HashSet<&[u8]> = living.iter().flat_map(|bytes| bytes.windows(24)).collect();
        gone.iter().filter(|piece| all.contains(&piece[..24]) && !living.contains(&piece[..24])).count()
    };
    assert_eq!(left(&sandbox), 0, "of {}", gone.len());
    sandbox.run(["gc"]).expect(0);
    assert_eq!(left(&sandbox), 0);
    expect_whole(&sandbox);
}

#[test]
fn gc_gives_space_back_and_says_how_much() {
    let nothing = Sandbox::without_vault();
    assert_eq!(nothing.run(["gc"]).status, 2, "there is no vault");
    let sandbox = Sandbox::new();
    let text = |number: u64| session(&format!("{number}"), &[("p", &noise(number, 300_000))]);
    let cores: Vec<String> =
        (0..6).map(|number| sandbox.add([sandbox.write("s.json", text(number))]).remove(0)).collect();
    let size = || std::fs::metadata(sandbox.vault()).unwrap().len();
    assert_eq!(sandbox.run(["gc"]).expect(0).stdout, "nothing to reclaim\n");
    // As a removal leaves it that was killed before it rewrote the file.
    let vault =
        runvault::storage::Store::open(&sandbox.vault(), runvault::storage::CreationPolicy::Never).unwrap();
    let mut change =
        Storage::transaction(&vault, runvault::clock::now(), runvault::storage::BUSY_TIMEOUT).unwrap();
    for core in &cores[..5] {
        change.remove(core.parse().unwrap(), None).unwrap();
    }
    change.commit().unwrap();
    vault.empty_log().unwrap();
    drop(vault);
    let before = size();
    let told = sandbox.run(["gc", "--dry-run", "--json"]).expect(0).json().remove(0);
    assert!(told["bytes"].as_u64().unwrap() > 1_000_000 && told["has_removals"] == true, "{told}");
    let done = sandbox.run(["gc", "--json"]).expect(0).json().remove(0);
    assert_eq!(done["bytes_before"], before);
    assert_eq!(done["bytes_after"], size());
    assert!(size() * 2 < before);
    assert_eq!(sandbox.run(["gc"]).expect(0).stdout, "nothing to reclaim\n");
    let last = sandbox.run(["log", "--limit", "1", "--json"]).expect(0).json().remove(0);
    assert_eq!(last["entry"]["action"], "gc");
    expect_whole(&sandbox);
}

#[test]
fn gc_removes_blobs_that_nothing_uses() {
    let sandbox = Sandbox::new();
    let cores = recordings(&sandbox, 4);
    // As a repair may leave it: the base of the others, without its capture.
    sql(&sandbox)
        .execute_batch(
            "PRAGMA foreign_keys = OFF;
             DELETE FROM mention_list WHERE capture = 1; DELETE FROM capture WHERE id = 1;
             DELETE FROM attribute WHERE artifact = 1; DELETE FROM artifact WHERE id = 1;
             INSERT INTO attribute_value (name, value) VALUES ('unused', 'has this')",
        )
        .unwrap();
    let told = sandbox.run(["gc", "--dry-run", "--json"]).expect(0).json().remove(0);
    assert_eq!(told["blobs"], 1);
    let done = sandbox.run(["gc", "--json"]).expect(0).json().remove(0);
    assert_eq!(done["blobs"], 1);
    let connection = sql(&sandbox);
    assert_eq!(count(&connection, "blob"), 3);
    assert_eq!(count(&connection, "attribute_value WHERE name = 'unused'"), 0);
    expect_whole(&sandbox);
    sandbox.run(["get", &cores[3]]).expect(0);
}

/// Sessions with words that repeat, as dictionaries like them.
pub(super) fn wordy(number: u64) -> String {
    let words = format!("the customer {number} asks for a refund of order {}", number * 7919);
    session("wordy", &[(&format!("{words}?"), &format!("{words}: approved by the policy on refunds"))])
}

fn dictionaries(connection: &Connection) -> Vec<Vec<u8>> {
    let mut statement = connection.prepare("SELECT bytes FROM dictionary ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_a_dictionary_knows_of_removed_documents_goes_with_gc() {
    let sandbox = Sandbox::new();
    for number in 0..150 {
        let mut text = wordy(number);
        if number % 3 == 0 {
            // Common enough to be in the dictionary.
            text = session(
                "wordy",
                &[(&format!("{number}"), &format!("TOP SECRET PROJECT NIGHTINGALE {number}"))],
            );
        }
        sandbox.write(&format!("d/{number}.json"), text);
    }
    sandbox.add([sandbox.path("d")]);
    // How many of these used the dictionary depends on when it was trained; all of the next ones use it.
    for number in 150..160 {
        sandbox.write(&format!("e/{number}.json"), wordy(number));
    }
    sandbox.add([sandbox.path("e")]);
    let known = |sandbox: &Sandbox| is_somewhere(sandbox, b"PROJECT NIGHTINGALE");
    assert_eq!(dictionaries(&sql(&sandbox)).len(), 1);
    assert!(known(&sandbox), "the dictionary has it");
    // Made ready with the old dictionary, and stored after gc.
    let late =
        runvault::storage::Store::open(&sandbox.vault(), runvault::storage::CreationPolicy::Never).unwrap();
    let old = Storage::preparer(&late).unwrap();
    let admitted = |number| {
        let text = wordy(number).into_bytes();
        let options = ExamineOptions::default();
        runvault::intake::examine_document(text, "", &options).unwrap()
    };
    let prepared = old.prepare(admitted(9_000));
    let found = sandbox.run(["find", "--json"]).expect(0).json();
    let secret: Vec<String> = found
        .iter()
        .map(|hit| hit["core_hash"].as_str().unwrap().to_owned())
        .filter(|core| sandbox.run(["get", core]).stdout.contains("NIGHTINGALE"))
        .collect();
    assert_eq!(secret.len(), 50);
    sandbox.run(std::iter::once("rm").chain(secret.iter().map(String::as_str))).expect(0);
    let told = sandbox.run(["gc", "--dry-run", "--json"]).expect(0).json().remove(0);
    assert_eq!(told["dictionaries"], 1);
    let done = sandbox.run(["gc", "--json"]).expect(0).json().remove(0);
    assert_eq!(done["dictionaries"], 1);
    assert!(done["recompressed"].as_u64().unwrap() >= 10, "{done}");
    assert!(!known(&sandbox));
    expect_whole(&sandbox);
    // Who still has the old dictionary cannot bring it back.
    let at = runvault::clock::now();
    let options = PutOptions { policy: RemovedPolicy::default(), at, busy_timeout: BUSY_TIMEOUT };
    late.put(&[&prepared], &options).unwrap();
    late.put(&[&old.prepare(admitted(9_001))], &options).unwrap();
    drop(late);
    assert!(!known(&sandbox));
    expect_whole(&sandbox);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 112);
}

#[test]
fn gc_compresses_what_was_added_one_by_one() {
    let sandbox = Sandbox::new();
    let vault = runvault::Vault::open_or_create(&sandbox.vault()).unwrap();
    // So few that adding does not look for a dictionary.
    for number in 0..250 {
        vault.add_document(wordy(number).into_bytes(), &ExamineOptions::default()).unwrap();
    }
    let stored = |sandbox: &Sandbox| -> u64 {
        sql(sandbox).query_row("SELECT sum(length(bytes)) FROM payload", [], |row| row.get(0)).unwrap()
    };
    let before = stored(&sandbox);
    assert!(dictionaries(&sql(&sandbox)).is_empty());
    let done = sandbox.run(["gc", "--json"]).expect(0).json().remove(0);
    assert!(done["recompressed"].as_u64().unwrap() > 200, "{done}");
    assert!(stored(&sandbox) * 3 < before * 2, "{} of {before}", stored(&sandbox));
    assert_eq!(dictionaries(&sql(&sandbox)).len(), 1);
    expect_whole(&sandbox);
    assert_eq!(sandbox.run(["gc"]).expect(0).stdout, "nothing to reclaim\n");
}

#[test]
fn others_read_and_write_while_space_is_reclaimed() {
    let sandbox = Sandbox::new();
    let cores = recordings(&sandbox, 8);
    for number in 0..400 {
        sandbox.write(&format!("d/{number}.json"), wordy(number));
    }
    let start = |arguments: &[&str]| {
        let mut command = sandbox.command();
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut children = vec![start(&["add", "d"])];
    for _ in 0..3 {
        children.push(start(&["gc"]));
        children.push(start(&["find", "--prompt", "prompt 3"]));
        children.push(start(&["get", &cores[7]]));
    }
    children.push(start(&["rm", &cores[0], &cores[4]]));
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    expect_whole(&sandbox);
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 406);
}

#[test]
fn a_kill_leaves_the_vault_whole() {
    let sandbox = Sandbox::new();
    recordings(&sandbox, 8);
    for number in 0..300 {
        sandbox.write(&format!("d/{number}.json"), wordy(number));
    }
    let cores = sandbox.add([sandbox.path("d")]);
    for round in 0..24_u32 {
        let core = &cores[round as usize * 5];
        let arguments: &[&str] = if round % 2 == 0 { &["rm", core] } else { &["gc"] };
        let mut command = sandbox.command();
        let mut child = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(3 + u64::from(round) * 2));
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 6 == 5 {
            expect_whole(&sandbox);
        }
    }
    sandbox.run(["gc"]).expect(0);
    expect_whole(&sandbox);
    let removed = sandbox.run(["log", "--action", "remove", "--json"]).json().len();
    assert_eq!(sandbox.run(["find", "--json"]).expect(0).json().len(), 308 - removed);
}
