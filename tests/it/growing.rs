//! Traces that grow: what is stored of them, when their files go, and how parts of one come together.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use proptest::collection::vec;
use proptest::prelude::*;
use runvault::Vault;
use runvault::digest::CoreHash;
use runvault::intake::{ExamineOptions, Input, Inputs, SourceError};
use runvault::vault::add::{AddMonitor, DocumentOutcome, ExaminedDocument};
use runvault::vault::find::{FindOrder, FindRequest};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, session};
use crate::traces::{Record, core, lines, steps};

/// When the program believes that it runs.
const NOW: &str = "2027-03-01T12:00:00Z";

/// Sets when a file was written: so long before the program's time.
fn age(path: &Path, age: Duration) {
    let now: SystemTime = NOW.parse::<DateTime<Utc>>().unwrap().into();
    File::options().append(true).open(path).unwrap().set_modified(now - age).unwrap();
}

const MINUTE: Duration = Duration::from_mins(1);

/// The paths and outcomes of the lines, and whether the files are gone.
fn told(ran: &Ran) -> Vec<String> {
    let text = |line: &serde_json::Value| {
        format!("{} {} {}", line["path"], line["outcome"], line["moved"]).replace('"', "")
    };
    ran.json().iter().map(text).collect()
}

/// The core hashes of all traces, with the shorter ones.
fn cores(sandbox: &Sandbox) -> Vec<String> {
    let ran = sandbox.run(["find", "traces", "--all-versions", "--format", "{{core}}"]).expect(0);
    let mut cores: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    cores.sort();
    cores
}

#[test]
fn a_trace_that_may_grow_is_stored_and_its_file_kept_until_it_was_not_written_for_ten_minutes() {
    let sandbox = Sandbox::at(NOW);
    let text = steps("run", 2).concat();
    let path = sandbox.write("d/run.ndjson", &text);
    age(&path, Duration::from_secs(599));
    let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(1);
    assert_eq!(told(&ran), ["d/run.ndjson added false"]);
    let why = "kept d/run.ndjson: the trace may still grow; it is in the vault, and its file can be removed 10 min after \
               the last write (--settle-traces)";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert!(ran.stderr.contains("0 moved, 1 stored but not moved"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    age(&path, MINUTE * 10);
    let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(0);
    assert_eq!(told(&ran), ["d/run.ndjson present true"]);
    assert!(!path.exists());
}

#[test]
fn a_trace_that_ends_with_its_last_record_goes_at_once() {
    use Record::{Control, Failed, Step};
    let sandbox = Sandbox::at(NOW);
    let write = |name: &str, records: &[Record]| {
        let path = sandbox.write(&format!("d/{name}.ndjson"), lines(name, records).concat());
        age(&path, Duration::ZERO);
    };
    write("1-failed-control", &[Step(1), Failed, Control("stop")]);
    write("2-gave-up", &[Step(1), Control("max_iterations_reached")]);
    // The loop ended, the run goes on.
    write("3-stop", &[Step(1), Control("stop")]);
    // A control may follow.
    write("4-failed", &[Step(1), Failed]);
    write("5-header", &[]);
    let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(1);
    assert_eq!(
        told(&ran),
        [
            "d/1-failed-control.ndjson added true",
            "d/2-gave-up.ndjson added true",
            "d/3-stop.ndjson added false",
            "d/4-failed.ndjson added false",
            "d/5-header.ndjson added false",
        ]
    );
}

#[test]
fn how_long_a_trace_must_rest_is_an_argument_a_variable_and_a_setting() {
    let sandbox = Sandbox::at(NOW);
    let mut number = 0;
    let mut is_moved = |arguments: &[&str], variable: &str| {
        number += 1;
        let path = sandbox.write("run.ndjson", steps(&format!("run-{number}"), 1).concat());
        age(&path, MINUTE);
        let arguments = [&["add", "--move", "run.ndjson"], arguments].concat();
        let ran: Ran = sandbox
            .command()
            .args(arguments)
            .env("RUNVAULT_SETTLE_TRACES", variable)
            .output()
            .unwrap()
            .into();
        let moved = !path.exists();
        ran.expect(i32::from(!moved));
        moved
    };
    assert!(!is_moved(&[], ""));
    assert!(!is_moved(&["--settle-traces", "61s"], ""));
    assert!(is_moved(&["--settle-traces", "60s"], ""));
    assert!(is_moved(&["--settle-traces", "0"], ""));
    assert!(is_moved(&[], "1m"));
    assert!(!is_moved(&["--settle-traces", "2m"], "1m"), "the argument goes before the variable");
    sandbox.run(["config", "set", "settle-traces", "30s"]).expect(0);
    assert!(is_moved(&[], ""));
    sandbox.run(["config", "set", "settle-traces", "2 weeks"]).expect(3);
    sandbox.run(["add", "--settle-traces", "1m", "run.ndjson"]).expect(3);
    sandbox.run(["watch", "--settle-traces", "1m", "."]).expect(3);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_a_process_has_open_for_writing_is_stored_and_kept() {
    let sandbox = Sandbox::at(NOW);
    for (name, text) in [
        ("run.ndjson", lines("run", &[Record::Control("max_iterations_reached")]).concat()),
        ("s.json", session("a", &[("p", "r")])),
    ] {
        let path = sandbox.write(&format!("d/{name}"), &text);
        age(&path, MINUTE * 60);
        let writer = File::options().append(true).open(&path).unwrap();
        let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(1);
        assert_eq!(told(&ran), [format!("d/{name} added false")]);
        let why = format!(
            "kept d/{name}: a process has it open for writing; the content that was read is in the vault"
        );
        assert!(ran.stderr.contains(&why), "{}", ran.stderr);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // Readers do not block writers.
        let reader = File::open(&path).unwrap();
        drop(writer);
        let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(0);
        assert_eq!(told(&ran), [format!("d/{name} present true")]);
        drop(reader);
        assert_eq!(fs::read_dir(sandbox.path("d")).unwrap().count(), 0, "nothing is left aside");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pack_of_which_a_file_is_being_written_keeps_that_file() {
    let sandbox = Sandbox::new();
    for entry in fs::read_dir(crate::sandbox::repository("examples/pack")).unwrap() {
        let path = entry.unwrap().path();
        sandbox
            .write(&format!("p/{}", path.file_name().unwrap().to_str().unwrap()), fs::read(&path).unwrap());
    }
    let writer = File::options().append(true).open(sandbox.path("p/policy.json")).unwrap();
    let ran = sandbox.run(["add", "--move", "p"]).expect(1);
    assert!(ran.stderr.contains("kept p/policy.json: a process has it open"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(sandbox.path("p")).unwrap().count(), 1);
    drop(writer);
}

#[test]
fn a_part_goes_on_where_a_stored_trace_ends() {
    let sandbox = Sandbox::new();
    let all = steps("run", 4);
    sandbox.add([sandbox.write("first.ndjson", all[..2].concat())]);
    let part = sandbox.write("part.ndjson", all[2..].concat());
    let dry = sandbox.run(["add", "--dry-run", "part.ndjson"]).expect(0);
    let (short, long) = (&core(&all[1])[7..19], &core(&all[4])[7..19]);
    assert_eq!(dry.stdout, format!("would add     trace       {long} part.ndjson (continues {short})\n"));
    let ran = sandbox.run(["add", "--json", "part.ndjson"]).expect(0);
    let line = &ran.json()[0];
    assert_eq!((&line["outcome"], &line["kind"]), (&"added".into(), &"trace".into()));
    assert_eq!(
        (line["core_hash"].as_str(), line["continues"].as_str()),
        (Some(&*core(&all[4])), Some(&*core(&all[1])))
    );
    assert_eq!(sandbox.run(["get", long]).expect(0).stdout, all.concat());
    let links = sandbox.run(["links", long]).expect(0).stdout;
    assert!(links.contains("-> extends") && links.contains(short), "{links}");
    let again = sandbox.run(["add", "--json", "part.ndjson"]).expect(0).json();
    assert_eq!(again[0]["outcome"], "present");
    assert_eq!(cores(&sandbox).len(), 2);
    assert!(part.exists());
    sandbox.run(["fsck"]).expect(0);
}

#[test]
fn a_part_is_joined_with_the_bytes_that_were_stored_even_without_a_last_line_feed() {
    let sandbox = Sandbox::new();
    let all = steps("run", 2);
    // Other spaces, and the writer was interrupted before the line feed.
    let first = all[0].trim_end().replacen("\":", "\": ", 3);
    sandbox.add([sandbox.write("first.ndjson", &first)]);
    let joined = sandbox.add([sandbox.write("part.ndjson", all[1..].concat())]).remove(0);
    let whole = format!("{first}\n{}", all[1..].concat());
    assert_eq!(sandbox.run(["get", &joined]).expect(0).stdout, whole);
}

#[test]
fn only_the_longest_version_takes_room_in_whatever_order_they_come() {
    let all = steps("run", 24);
    let versions: Vec<String> = (2..=all.len()).map(|length| all[..length].concat()).collect();
    let longest = versions.last().unwrap().len();
    let fork = lines("run", &[Record::Step(0), Record::Failed]).concat();
    let whole = |sandbox: &Sandbox| -> Vec<usize> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let vault = Connection::open_with_flags(sandbox.vault(), flags).unwrap();
        let sql =
            "SELECT b.size FROM payload p JOIN blob b ON b.id = p.blob WHERE p.base IS NULL ORDER BY b.size";
        let mut sizes = vault.prepare(sql).unwrap();
        let sizes = sizes.query_map([], |row| row.get(0)).unwrap();
        sizes.collect::<rusqlite::Result<_>>().unwrap()
    };
    let expect_intact = |sandbox: &Sandbox, versions: &[String]| {
        for (version, length) in versions.iter().zip(2..) {
            assert_eq!(&sandbox.run(["get", &core(&all[length - 1])]).expect(0).stdout, version);
        }
        sandbox.run(["fsck"]).expect(0);
    };
    let growing: Vec<usize> = (0..versions.len()).collect();
    let shrinking = growing.iter().rev().copied().collect();
    let mixed = growing.iter().map(|number| number * 7 % versions.len()).collect();
    for order in [growing, shrinking, mixed] {
        let [one_by_one, together] = [Sandbox::new(), Sandbox::new()];
        for sandbox in [&one_by_one, &together] {
            sandbox.add([sandbox.write("fork.ndjson", &fork)]);
        }
        for (place, number) in order.iter().enumerate() {
            one_by_one.add([one_by_one.write("run.ndjson", &versions[*number])]);
            together.write(&format!("d/{place:02}.ndjson"), &versions[*number]);
        }
        together.run(["add", "d"]).expect(0);
        for sandbox in [&one_by_one, &together] {
            assert_eq!(whole(sandbox), [fork.len(), longest], "{order:?}");
            expect_intact(sandbox, &versions);
            sandbox.run(["rm", "--force", &core(all.last().unwrap())]).expect(0);
            let versions = &versions[..versions.len() - 1];
            assert_eq!(whole(sandbox), [fork.len(), versions.last().unwrap().len()]);
            expect_intact(sandbox, versions);
        }
    }
}

#[test]
fn parts_and_their_beginning_come_together_in_one_run_in_any_order() {
    let all = steps("run", 6);
    let parts = [all[..2].concat(), all[2..3].concat(), all[3..5].concat(), all[5..].concat()];
    let prefixes = [core(&all[1]), core(&all[2]), core(&all[4]), core(&all[6])];
    for names in [["a", "b", "c", "d"], ["d", "c", "b", "a"], ["c", "a", "d", "b"], ["a", "d", "c", "b"]] {
        let sandbox = Sandbox::new();
        for (name, text) in names.iter().zip(&parts) {
            sandbox.write(&format!("d/{name}.ndjson"), text);
        }
        let sorted = |ran: &Ran| {
            let mut lines: Vec<String> = ran
                .json()
                .iter()
                .map(|line| format!("{} {} {}", line["path"], line["outcome"], line["core_hash"]))
                .collect();
            lines.sort();
            lines
        };
        let dry = sandbox.run(["add", "--dry-run", "--json", "d"]).expect(0);
        let ran = sandbox.run(["add", "--json", "d"]).expect(0);
        let mut expected: Vec<String> = names
            .iter()
            .zip(&prefixes)
            .map(|(name, core)| format!("\"d/{name}.ndjson\" \"added\" \"{core}\""))
            .collect();
        expected.sort();
        assert_eq!(sorted(&ran), expected);
        assert_eq!(sorted(&dry), expected, "what was foretold is what happens");
        let verified = sandbox.run(["verify", "--json", "d"]).expect(0).json();
        let cores = |lines: &[Value]| lines.iter().map(|line| line["core_hash"].clone()).collect::<Vec<_>>();
        assert_eq!(cores(&verified).len(), 4);
        assert!(prefixes.iter().all(|core| cores(&verified).contains(&json!(core))), "{verified:?}");
        assert_eq!(sandbox.run(["get", &prefixes[3]]).expect(0).stdout, all.concat());
        assert!(ran.stderr.contains("4 added"), "{}", ran.stderr);
    }
}

#[test]
fn parts_come_before_their_beginning_into_a_vault_that_does_not_exist_yet() {
    let all = steps("run", 2);
    for given in ["d", "d/1.ndjson"] {
        let sandbox = Sandbox::without_vault();
        sandbox.write("d/1.ndjson", &all[2]);
        sandbox.write("d/2.ndjson", &all[1]);
        if given == "d" {
            sandbox.write("d/3.ndjson", &all[0]);
        }
        let ran = sandbox.run(["add", "--create", "--json", given]);
        let outcomes: Vec<_> = ran.json().iter().map(|line| line["outcome"].to_string()).collect();
        if given == "d" {
            assert_eq!(outcomes, ["\"added\""; 3], "{}", ran.stderr);
            assert_eq!(sandbox.run(["get", &core(&all[2])]).expect(0).stdout, all.concat());
        } else {
            assert_eq!((ran.status, outcomes), (1, vec!["\"rejected\"".to_owned()]), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_part_without_its_beginning_is_rejected_and_says_which_record_is_missing() {
    let sandbox = Sandbox::at(NOW);
    let all = steps("run", 3);
    let path = sandbox.write("d/part.ndjson", all[2..].concat());
    age(&path, MINUTE * 60);
    for dry in [true, false] {
        let arguments: &[&str] =
            if dry { &["add", "--dry-run", "--json", "d"] } else { &["add", "--move", "--json", "d"] };
        let ran = sandbox.run(arguments).expect(1);
        let line = &ran.json()[0];
        assert_eq!((&line["outcome"], &line["kind"]), (&"rejected".into(), &"trace".into()));
        let violations = line["violations"].as_array().unwrap();
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert_eq!(violations[0]["rule_id"], "TR10");
        assert_eq!(violations[0]["path"], "line 1 /prev_hash");
        let message = violations[0]["message"].as_str().unwrap();
        let missing = &core(&all[1])[7..];
        assert_eq!(
            message,
            format!(
                "continues the record {missing}, but nothing that is known ends with it; the file with the \
                 beginning must come before this one, or together with it"
            )
        );
    }
    assert!(path.exists(), "what is rejected stays");
    let verified = sandbox.run(["verify", "--json", "d"]).expect(1).json();
    assert_eq!(verified[0]["violations"][0]["path"], "line 1 /prev_hash");
    // As it says:
    sandbox.write("d/zero.ndjson", all[..2].concat());
    sandbox.run(["add", "d"]).expect(0);
    assert_eq!(cores(&sandbox).len(), 2);
}

#[test]
fn a_part_that_breaks_a_rule_is_rejected_with_places_in_its_own_file() {
    let sandbox = Sandbox::new();
    let all = steps("run", 4);
    sandbox.add([sandbox.write("first.ndjson", all[..2].concat())]);
    let wrong = all[2..].concat().replace("\"is\":2", "\"is\":77");
    sandbox.write("part.ndjson", wrong);
    let ran = sandbox.run(["add", "--json", "part.ndjson"]).expect(1);
    let line = &ran.json()[0];
    assert_eq!(line["outcome"], "rejected");
    let violations = line["violations"].as_array().unwrap();
    let found: Vec<String> =
        violations.iter().map(|one| format!("{} {}", one["rule_id"], one["path"]).replace('"', "")).collect();
    assert_eq!(found, ["TR4 line 2 /record_hash"]);
    assert_eq!(cores(&sandbox).len(), 1);
}

#[test]
fn a_part_goes_only_once_its_records_are_in_the_vault() {
    let sandbox = Sandbox::at(NOW);
    let all = steps("run", 3);
    let first = sandbox.write("d/1.ndjson", all[..2].concat());
    let part = sandbox.write("d/2.ndjson", all[2..].concat());
    let unexpected = sandbox.write("d/3.ndjson", steps("other", 2)[1..].concat());
    for path in [&first, &part, &unexpected] {
        age(path, MINUTE * 60);
    }
    let ran = sandbox.run(["add", "--move", "--json", "d"]).expect(1);
    assert_eq!(told(&ran), ["d/1.ndjson added true", "d/2.ndjson added true", "d/3.ndjson rejected null"]);
    assert_eq!([first.exists(), part.exists(), unexpected.exists()], [false, false, true], "{}", ran.stderr);
    assert_eq!(sandbox.run(["get", &core(&all[3])]).expect(0).stdout, all.concat());
    // A part may grow like a whole trace.
    let more = steps("run", 4);
    let part = sandbox.write("d/4.ndjson", &more[4]);
    age(&part, MINUTE);
    let ran = sandbox.run(["add", "--move", "--json", "d/4.ndjson"]).expect(1);
    assert_eq!(told(&ran), ["d/4.ndjson added false"]);
}

#[test]
fn a_part_is_joined_with_a_longer_trace_where_the_one_that_it_continues_was_removed() {
    let sandbox = Sandbox::new();
    let all = steps("run", 4);
    sandbox.add([sandbox.write("short.ndjson", all[..2].concat())]);
    sandbox.add([sandbox.write("long.ndjson", all[..4].concat())]);
    sandbox.run(["rm", &core(&all[1]), "--force"]).expect(0);
    let joined = sandbox.add([sandbox.write("part.ndjson", all[2..].concat())]).remove(0);
    assert_eq!(joined, core(&all[4]));
    assert_eq!(sandbox.run(["get", &joined]).expect(0).stdout, all.concat());
}

#[test]
fn a_part_before_its_beginning_ends_a_run_that_is_to_fail_fast() {
    let sandbox = Sandbox::new();
    let all = steps("run", 2);
    sandbox.write("d/1.ndjson", &all[2]);
    sandbox.write("d/2.ndjson", all[..2].concat());
    let ran = sandbox.run(["add", "--fail-fast", "d"]).expect(1);
    assert!(ran.stderr.contains("1 document after it was not examined"), "{}", ran.stderr);
    assert!(!sandbox.run(["find"]).expect(1).stdout.contains("trace"));
}

#[test]
fn a_part_that_a_program_hands_over_is_joined_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let vault = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
    let all = steps("run", 3);
    let add = |text: String| vault.add_document(text.into_bytes(), &ExamineOptions::default());
    let missing = add(all[2].clone()).unwrap_err().to_string();
    assert!(missing.contains("continues the record") && missing.contains("TR10"), "{missing}");
    add(all[..2].concat()).unwrap();
    let put = add(all[2..].concat()).unwrap();
    assert_eq!(put.core.to_string(), core(&all[3]));
    assert_eq!(vault.get(&put.core.0.into()).unwrap(), all.concat().into_bytes());
}

/// Remembers what was rejected, and counts the rest.
#[derive(Default)]
struct ReportedOutcomes {
    admitted: usize,
    rejected: Vec<String>,
    done: Vec<usize>,
}

impl AddMonitor for ReportedOutcomes {
    fn done(&mut self, input: usize) {
        self.done.push(input);
    }

    fn examined(&mut self, examined: &ExaminedDocument) {
        if examined.outcome == DocumentOutcome::Rejected {
            self.rejected.push(examined.path.clone());
        } else {
            self.admitted += 1;
        }
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However a trace is cut, and in whatever order the parts come: all of it is stored if no part is missing, and
    /// otherwise exactly what comes before the first that is.
    #[test]
    fn parts_make_the_whole(
        count in 1_usize..8,
        cuts in vec(any::<bool>(), 8),
        order in vec(any::<u32>(), 9),
        missing in proptest::option::of(0_usize..9),
    ) {
        let all = steps("run", count);
        let mut parts: Vec<Vec<&String>> = vec![vec![]];
        for (line, cut) in all.iter().zip(&cuts) {
            parts.last_mut().unwrap().push(line);
            if *cut {
                parts.push(vec![]);
            }
        }
        parts.extend([all[cuts.len().min(all.len())..].iter().collect::<Vec<_>>()]);
        parts.retain(|part| !part.is_empty());
        let missing = missing.filter(|missing| *missing < parts.len());
        let known: usize = parts[..missing.unwrap_or(parts.len())].iter().map(Vec::len).sum();
        let mut given: Vec<(u32, usize)> = (0..parts.len()).map(|part| (order[part], part)).collect();
        given.retain(|(_, part)| Some(*part) != missing);
        given.sort_unstable();
        let inputs = given.iter().map(|(_, part)| Input::Document {
            name: part.to_string(),
            bytes: parts[*part].iter().map(|line| line.as_str()).collect::<String>().into_bytes(),
        });
        let directory = tempfile::tempdir().unwrap();
        let vault = Vault::open_or_create(&directory.path().join("v.vault")).unwrap();
        let mut told = ReportedOutcomes::default();
        let inputs = Inputs::new(inputs.collect());
        vault.add(inputs, &ExamineOptions::default(), &mut told).unwrap();
        let lost = missing.map_or(0, |missing| parts.len() - missing - 1);
        prop_assert_eq!(told.rejected.len(), lost);
        prop_assert_eq!(told.admitted, missing.unwrap_or(parts.len()));
        told.done.sort_unstable();
        prop_assert!(told.done.into_iter().eq(0..given.len()), "each input is done once");
        if let Some(last) = known.checked_sub(1) {
            let whole = vault.get(&core(&all[last]).parse().unwrap()).unwrap();
            prop_assert_eq!(whole, all[..known].concat().into_bytes());
        }
    }
}

#[test]
fn of_a_trace_that_grew_the_longest_is_listed_and_the_others_say_so() {
    let sandbox = Sandbox::new();
    let all = steps("run", 3);
    let path = sandbox.path("run.ndjson");
    let mut file = File::create(&path).unwrap();
    for line in &all {
        file.write_all(line.as_bytes()).unwrap();
        sandbox.add([&path]);
    }
    sandbox.add([sandbox.write("other.ndjson", steps("other", 1).concat())]);
    let listed = |arguments: &[&str]| {
        let ran = sandbox.run([&["find", "traces", "--columns", "core"], arguments].concat()).expect(0);
        let mut cores: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
        cores.sort();
        (cores, ran.stderr.trim().to_owned())
    };
    let sorted = |mut cores: Vec<String>| {
        cores.sort();
        cores
    };
    let (long, other) = (core(&all[3]), core(&steps("other", 1)[1]));
    let (cores, said) = listed(&[]);
    assert_eq!(cores, sorted(vec![long.clone(), other.clone()]));
    assert_eq!(said, "2 traces; 3 shorter versions not shown, --all-versions shows all");
    let (cores, said) = listed(&["--all-versions"]);
    assert_eq!(cores, sorted(all.iter().map(|line| core(line)).chain([other]).collect()));
    assert_eq!(said, "5 traces");
    // What is asked for is what is found: of these, none extends another.
    assert_eq!(listed(&["--attr", "records=2"]).0.len(), 2);
    sandbox.run(["note", "set", &core(&all[0]), "remember"]).expect(0);
    assert_eq!(listed(&["--note", "remember"]), (vec![core(&all[0])], "1 trace".to_owned()));
    // All of them are traces that have the first record.
    let record = core(&all[0]);
    assert_eq!(listed(&["--record-hash", &record]).0, std::slice::from_ref(&long));
    let ran = sandbox.run(["find", "traces", "--json"]).expect(0);
    assert_eq!(ran.json().len(), 2);
    assert_eq!(ran.stderr.trim(), "3 shorter versions not shown, --all-versions shows all");

    let show = sandbox.run(["show", &core(&all[1])]).expect(0).stdout;
    assert!(show.contains(&format!("extended by    trace {} (4 records)\n", &long[7..19])), "{show}");
    let show = sandbox.run(["show", &core(&all[1]), "--json"]).expect(0).json().remove(0);
    assert_eq!(show["extended_by"], serde_json::json!([long]));
    let show = sandbox.run(["show", &long]).expect(0).stdout;
    assert!(!show.contains("extended by"), "{show}");
}

#[test]
fn a_trace_that_goes_on_in_two_ways_names_both() {
    let sandbox = Sandbox::new();
    let one = lines("run", &[Record::Step(1), Record::Step(2), Record::Step(3)]);
    let other = lines("run", &[Record::Step(1), Record::Step(7)]);
    sandbox.add([
        sandbox.write("short.ndjson", one[..2].concat()),
        sandbox.write("one.ndjson", one.concat()),
        sandbox.write("middle.ndjson", one[..3].concat()),
        sandbox.write("other.ndjson", other.concat()),
    ]);
    let show = sandbox.run(["show", &core(&one[1]), "--json"]).expect(0).json().remove(0);
    let mut longest = [core(&one[3]), core(&other[2])];
    longest.sort();
    assert_eq!(show["extended_by"], serde_json::json!(longest));
    let found = sandbox.run(["find", "traces"]).expect(0);
    assert!(found.stderr.contains("2 traces; 2 shorter versions not shown"), "{}", found.stderr);
}

/// The core hashes of what is added.
#[derive(Default)]
struct Cores(BTreeSet<CoreHash>);

impl AddMonitor for Cores {
    fn examined(&mut self, examined: &ExaminedDocument) {
        self.0.extend(examined.core_hash);
    }

    fn unreadable(&mut self, error: &SourceError) {
        panic!("{error}");
    }
}

/// The longest version is on the first page, and the shorter ones are on the last.
#[test]
fn shorter_versions_are_on_no_page() {
    const OTHERS: usize = 1_005;
    let directory = tempfile::tempdir().unwrap();
    for vault in [Vault::in_memory(), Vault::create(&directory.path().join("v.vault")).unwrap()] {
        let add = |document: String| {
            vault.add_document(document.into_bytes(), &ExamineOptions::default()).unwrap().core
        };
        let lines = steps("run-1", 3);
        let shorter = [2, 3].map(|count| add(lines[..count].concat()));
        let mut others = Cores::default();
        let documents = (0..OTHERS).map(|number| session(&number.to_string(), &[("p", "r")]));
        let inputs =
            documents.map(|document| Input::Document { name: String::new(), bytes: document.into_bytes() });
        vault.add(Inputs::new(inputs.collect()), &ExamineOptions::default(), &mut others).unwrap();
        let others = others.0;
        let longest = add(lines.concat());
        let everything = vault.run(&FindRequest::default()).unwrap();
        let counts = (everything.hits.len(), everything.found, everything.is_more, everything.hidden);
        assert_eq!(counts, (OTHERS + 1, OTHERS as u64 + 1, false, 2));
        let order = FindOrder::LastSeen;
        let mut request = FindRequest { limit: Some(400), order, ..FindRequest::default() };
        let mut found = Vec::new();
        loop {
            let page = vault.run(&request).unwrap();
            let left = (OTHERS + 1 - found.len()) as u64;
            assert_eq!((page.found, page.is_more), (left.min(1_000), left > 1_000));
            found.extend(page.hits.iter().map(|hit| hit.artifact.core_hash));
            request.after = page.next;
            if request.after.is_none() {
                assert_eq!(page.hidden, 2);
                break;
            }
        }
        assert_eq!(found[0], longest);
        assert_eq!(found.len(), OTHERS + 1, "none twice");
        assert!(found[1..].iter().all(|core| others.contains(core) && !shorter.contains(core)));
    }
}
