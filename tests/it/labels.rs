//! Labels: set by people and CI jobs, found, counted, kept, carried over, held to the journal and restored from it.

use serde_json::{Value, json};

use crate::bundle::on;
use crate::fsck::{bytes_of, findings, found_and_repaired, of_bytes, sql};
use crate::sandbox::{Ran, Sandbox, repository, session};

const CONTRACT: &str = "5c496a37feba";
const TRACE: &str = "7c8de5910f63";
const SESSION: &str = "4df877dec7f4";
const RUN: &str = "3941d389b337";
const PACK: &str = "54490aab8b3f";

fn examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox
}

/// The entries of an action, oldest first.
fn entries(sandbox: &Sandbox, action: &str) -> Vec<Value> {
    let lines = sandbox.run(["log", "--action", action, "--json"]).json();
    lines.into_iter().map(|mut line| line["entry"].take()).collect()
}

/// The labels of an artifact.
fn labels_of(sandbox: &Sandbox, artifact: &str) -> Value {
    sandbox.run(["show", artifact, "--json"]).expect(0).json()[0]["labels"].clone()
}

/// The first digits of the artifacts that are found, sorted.
fn found(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["find", "--json", "--all-versions", "--sort", "core"], arguments].concat();
    let lines = sandbox.run(arguments).json();
    lines.iter().map(|line| line["core_hash"].as_str().unwrap()[7..19].to_owned()).collect()
}

/// Runs with these variables in the environment.
fn run_with(sandbox: &Sandbox, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    sandbox.command().envs(variables.iter().copied()).args(arguments).output().unwrap().into()
}

/// The examples with labels that artifacts share and that were replaced.
fn labeled() -> Sandbox {
    let sandbox = examples();
    for core in [CONTRACT, TRACE, SESSION] {
        sandbox.run(["label", "set", core, "commit=4f2a", "branch=main"]).expect(0);
    }
    sandbox.run(["label", "set", TRACE, "commit=77ab", "note="]).expect(0);
    sandbox
}

/// What everything that reads labels says.
fn answers(sandbox: &Sandbox) -> Vec<String> {
    let asked: &[&[&str]] = &[
        &["sql", "SELECT * FROM labels ORDER BY artifact, key"],
        &["show", CONTRACT, "--json"],
        &["show", TRACE],
    ];
    let answer = |arguments: &&[&str]| {
        let ran = sandbox.run(*arguments);
        format!("{} {}{}", ran.status, ran.stdout, ran.stderr)
    };
    asked.iter().map(answer).collect()
}

#[test]
fn labels_are_held_to_the_journal_and_restored_from_it() {
    let original = labeled();
    assert_eq!(findings(&original, &[]), "");
    let before = answers(&original);
    assert!(before[2].contains("branch=main, commit=77ab, note="), "{}", before[2]);
    let changes = [
        "DELETE FROM label",
        "DELETE FROM label WHERE artifact = (SELECT min(artifact) FROM label)",
        "DELETE FROM label WHERE key = 'branch'",
        "UPDATE label SET value = 'forged' WHERE key = 'commit' AND value = '4f2a'",
        "UPDATE label SET at = at + 1",
        "UPDATE label SET artifact = 99 WHERE artifact = (SELECT max(artifact) FROM label)",
        "UPDATE label SET value = '77ab' WHERE value = '4f2a'",
    ];
    let reports = found_and_repaired(&bytes_of(&original), &changes, |change, sandbox| {
        assert_eq!(answers(sandbox), before, "{change}");
    });
    insta::assert_snapshot!(reports);
}

#[test]
fn labels_that_the_journal_does_not_know_are_found_and_stay() {
    let mut reports = String::new();
    let bytes = bytes_of(&labeled());
    for change in [
        "INSERT INTO label SELECT a.id, 'branch', 'main', 0 FROM artifact a
           WHERE a.id NOT IN (SELECT artifact FROM label) ORDER BY a.id LIMIT 1",
        "INSERT INTO label SELECT min(artifact), 'forged', 'x', 0 FROM label",
        "UPDATE label SET key = 'forged' WHERE key = 'branch'",
    ] {
        let sandbox = of_bytes(&bytes);
        sql(&sandbox).execute_batch(change).unwrap();
        reports += &format!("{change}\n{}", findings(&sandbox, &[]));
        reports += &format!("{}\n", findings(&sandbox, &["--repair"]));
    }
    insta::assert_snapshot!(reports);
}

#[test]
fn nothing_of_the_labels_of_a_removed_artifact_remains() {
    let sandbox = labeled();
    sandbox.run(["rm", TRACE, "--force"]).expect(0);
    let left: Vec<String> = sql(&sandbox)
        .prepare("SELECT DISTINCT key || '=' || value FROM label ORDER BY 1")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(left, ["branch=main", "commit=4f2a"]);
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn the_labels_of_an_artifact_are_listed() {
    let sandbox = labeled();
    let listed = sandbox.run(["label", "list", "--of", TRACE, "--json"]).expect(0).json();
    let pair =
        |line: &Value| format!("{}={}", line["key"].as_str().unwrap(), line["value"].as_str().unwrap());
    assert_eq!(listed.iter().map(pair).collect::<Vec<_>>(), ["branch=main", "commit=77ab", "note="]);
    assert!(listed.iter().all(|line| line["labeled_at"].is_string()), "{listed:?}");
    let text = sandbox.run(["label", "list", "--of", CONTRACT]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["branch=main", "commit=4f2a"]);
    assert_eq!(sandbox.run(["label", "list", "--of", RUN, "--json"]).expect(0).stdout, "");
    assert!(sandbox.run(["label", "list", "--of", "abcdef"]).expect(1).stdout.is_empty());
    sandbox.run(["label", "list", "commit", "--of", RUN]).expect(3);
}

#[test]
fn labels_are_set_listed_replaced_and_removed() {
    let sandbox = examples();
    assert_eq!(
        sandbox.run(["label", "set", RUN, "commit=4f2a", "branch=main"]).expect(0).stderr,
        "labeled\n"
    );
    assert_eq!(sandbox.run(["label", "set", RUN, "branch=main"]).expect(0).stderr, "already labeled\n");
    sandbox.run(["label", "set", RUN, "branch=a=b"]).expect(0);
    sandbox.run(["label", "set", TRACE, "commit=4f2a"]).expect(0);
    assert_eq!(labels_of(&sandbox, RUN), json!({"branch": "a=b", "commit": "4f2a"}));
    let shown = sandbox.run(["show", RUN]).expect(0).stdout;
    assert!(shown.contains("\n  labels       branch=a=b, commit=4f2a\n"), "{shown}");
    assert!(sandbox.run(["view", RUN]).expect(0).stdout.contains("branch=a=b, commit=4f2a\n"));
    assert_eq!(sandbox.run(["view", RUN, "--json"]).expect(0).json()[0]["labels"]["commit"], "4f2a");
    let keys = sandbox.run(["label", "list"]).expect(0);
    assert_eq!(
        (keys.stdout.as_str(), keys.stderr.as_str()),
        ("branch  1 artifact 1 value\ncommit 2 artifacts 1 value\n", "2 keys\n")
    );
    let values = sandbox.run(["label", "list", "commit", "--json"]).expect(0).json();
    assert_eq!((values.len(), &values[0]["value"], &values[0]["artifacts"]), (1, &json!("4f2a"), &json!(2)));
    let others = sandbox.run(["label", "remove", RUN, "branch", "none"]).expect(1).stderr;
    assert!(others.contains("label removed") && others.contains("has no label none;"), "{others}");
    let none = sandbox.run(["label", "remove", RUN, "branch"]).expect(1).stderr;
    assert!(none.contains("3941d389b337 has no label branch; \"runvault show 3941d389b337\""), "{none}");
    assert!(
        sandbox.run(["label", "list", "branch"]).expect(1).stderr.contains("no artifact has a label branch")
    );
    let set = entries(&sandbox, "label");
    let labels: Vec<&Value> = set.iter().map(|entry| &entry["labels"]).collect();
    let expected =
        [json!({"branch": "main", "commit": "4f2a"}), json!({"branch": "a=b"}), json!({"commit": "4f2a"})];
    assert_eq!(labels, expected.iter().collect::<Vec<_>>());
    assert_eq!(entries(&sandbox, "unlabel")[0]["keys"], json!(["branch"]));
    let log = sandbox.run(["log", "--action", "label", "--limit", "1"]).expect(0).stdout;
    assert!(log.contains(" label   7c8de5910f63 commit=4f2a"), "{log}");
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn invalid_labels_are_wrong_usage() {
    let sandbox = examples();
    for (arguments, why) in [
        (&["label", "set", RUN, "commit"][..], "expected KEY=VALUE"),
        (&["label", "set", RUN, "-k=v"], "unexpected argument"),
        (&["label", "set", RUN, "a key=v"], "the key of a label is"),
        (&["label", "set", RUN, "k=a\nb"], "no control characters"),
        (&["label", "set", RUN, "k=1", "k=2"], "the label k is given with two values"),
        (&["find", "--label", "a b"], "the key of a label is"),
        (&["add", "x", "--label", "k"], "expected KEY=VALUE"),
        (&["stats", "--by", "label:"], "the key of a label is"),
        (&["stats", "--by", "labels"], "expected model, tool, agent, day, label:KEY, or an attribute"),
    ] {
        let refused = sandbox.run(arguments).expect(3).stderr;
        assert!(refused.contains(why), "{arguments:?}: {refused}");
    }
    let many: Vec<String> = (0..101).map(|number| format!("k{number}=v")).collect();
    let refused = sandbox.run(["label", "set", RUN].into_iter().chain(many.iter().map(String::as_str)));
    assert!(refused.expect(2).stderr.contains("more than 100 labels"));
    assert!(entries(&sandbox, "label").is_empty());
}

#[test]
fn everything_that_is_added_or_seen_again_gets_the_labels_and_the_note() {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c"] {
        sandbox.write(&format!("d/{name}.json"), session(name, &[("p", name)]));
    }
    sandbox.write("bad.json", "{\"schema\": \"model_io\"");
    let first = sandbox.add([sandbox.path("d/a.json")]).remove(0);
    let pack = repository("examples/pack");
    let arguments =
        ["add", "d", pack.to_str().unwrap(), "--label", "commit=4f2a", "--label", "job=https://ci/1?x=y"];
    sandbox.run(arguments.into_iter().chain(["--note", "nightly"])).expect(0);
    let labels = json!({"commit": "4f2a", "job": "https://ci/1?x=y"});
    assert_eq!(labels_of(&sandbox, &first), labels);
    assert_eq!(labels_of(&sandbox, PACK), labels);
    // The session in the pack is not what was added.
    assert_eq!(found(&sandbox, &["--label", "commit"]).len(), 4);
    assert_eq!(found(&sandbox, &["--note", "nightly"]).len(), 4);
    assert_eq!(found(&sandbox, &["--label", "commit=4f2a", "--label", "job"]).len(), 4);
    assert!(found(&sandbox, &["--label", "commit=4f"]).is_empty());
    // All of them in one entry, after those of the additions.
    let entries = entries(&sandbox, "label");
    assert_eq!((entries.len(), entries[0]["cores"].as_array().unwrap().len()), (1, 4));
    let again = sandbox.run(["add", "d/a.json", "--label", "commit=77ab", "--json"]).expect(0).json();
    assert_eq!(again[0]["outcome"], "present");
    assert_eq!(labels_of(&sandbox, &first)["commit"], "77ab");
    assert_eq!(labels_of(&sandbox, &first)["job"], "https://ci/1?x=y");
    sandbox.run(["add", "bad.json", "d/b.json", "--label", "commit=0"]).expect(1);
    assert_eq!(found(&sandbox, &["--label", "commit=0"]).len(), 1);
    let dry = sandbox.run(["add", "d", "--label", "commit=1", "--dry-run"]).expect(0);
    assert!(dry.stderr.contains("nothing was stored"), "{}", dry.stderr);
    assert!(found(&sandbox, &["--label", "commit=1"]).is_empty());
    let long = "x".repeat(4097);
    for (note, why) in [(" ", "it is blank"), (&long, "it has 4097 bytes, and a note at most 4096")] {
        let refused = sandbox.run(["add", "d", "--note", note]).expect(3).stderr;
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(findings(&sandbox, &[]), "");
}

#[test]
fn a_tag_can_be_set_on_the_only_artifact_that_is_added() {
    let sandbox = Sandbox::new();
    let one = sandbox.write("d/one.json", session("one", &[("p", "1")]));
    sandbox.write("d/two.json", session("two", &[("p", "2")]));
    let several = sandbox.run(["add", "d", "--tag", "baseline"]).expect(2);
    assert!(
        several.stderr.contains("@baseline was not set, because several artifacts were stored"),
        "{}",
        several.stderr
    );
    assert_eq!(sandbox.run(["tag", "list", "--json"]).expect(0).stdout, "");
    let added =
        sandbox.run(["add".as_ref(), one.as_os_str(), "--tag".as_ref(), "baseline".as_ref()]).expect(0);
    assert!(added.stderr.contains("@baseline is "), "{}", added.stderr);
    let tags = sandbox.run(["tag", "list", "--json"]).expect(0).json();
    assert_eq!(tags[0]["name"], "baseline");
    let moved = sandbox.run(["add", "d/two.json", "--tag", "@baseline"]).expect(0);
    let before = tags[0]["core_hash"].as_str().unwrap();
    assert!(moved.stderr.contains(&format!("; it was {}", &before[7..19])), "{}", moved.stderr);
}

#[test]
fn a_ci_job_labels_what_it_adds() {
    let sandbox = Sandbox::new();
    sandbox.write("s.json", session("a", &[("p", "r")]));
    let job = [
        ("GITLAB_CI", "true"),
        ("CI_COMMIT_SHA", "4f2a91c"),
        ("CI_COMMIT_REF_NAME", "main"),
        ("CI_JOB_URL", "https://ci.example/jobs/1"),
        ("CI_PROJECT_PATH", "team/agent"),
    ];
    run_with(&sandbox, &job, &["add", "s.json", "--ci", "--label", "branch=mine"]).expect(0);
    let expected = json!({
        "ci": "gitlab-ci", "commit": "4f2a91c", "branch": "mine", "job": "https://ci.example/jobs/1",
        "repository": "team/agent",
    });
    assert_eq!(labels_of(&sandbox, "latest"), expected);
    let listed =
        run_with(&sandbox, &job, &["watch", "--once", "--settle", "0", "--ci", "--label", "x=y", "."]);
    listed.expect(0);
    assert_eq!(labels_of(&sandbox, "latest")["branch"], "main");
    assert_eq!(labels_of(&sandbox, "latest")["x"], "y");
    let elsewhere = sandbox.run(["add", "s.json", "--ci"]).expect(0);
    assert!(
        elsewhere.stderr.contains("--ci: the environment is not that of a known CI system"),
        "{}",
        elsewhere.stderr
    );
}

#[test]
fn labels_are_columns_counts_and_a_view() {
    let sandbox = labeled();
    let rows = sandbox
        .run(["find", "--label", "branch", "--columns", "hash,labels", "--sort", "core"])
        .expect(0)
        .stdout;
    assert!(rows.contains("7c8de5910f63 branch=main commit=77ab note=\n"), "{rows}");
    let found = sandbox.run(["find", "--label", "commit=77ab"]).expect(0).stdout;
    assert!(found.contains("label commit=77ab"), "{found}");
    let list = sandbox.run(["list", "--label", "commit=77ab", "--json"]).expect(0).json();
    assert_eq!(
        (list.len(), &list[0]["labels"]),
        (1, &json!({"branch": ["main"], "commit": ["4f2a", "77ab"], "note": [""]}))
    );
    let list = sandbox.run(["list", "--label", "commit=77ab"]).expect(0).stdout;
    assert!(list.trim_end().ends_with("branch=main commit=4f2a commit=77ab note="), "{list}");
    let stats = sandbox.run(["stats", "--by", "label:commit"]).expect(0);
    let rows: Vec<Vec<&str>> = stats.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["label:commit", "count", "failed"]);
    let values: Vec<&str> = rows[1..].iter().map(|row| row[0]).collect();
    assert_eq!(values, ["4f2a", "77ab", "all"]);
    let totals = sandbox.run(["stats", "--json"]).expect(0).json();
    assert_eq!(totals[0]["labels"], 7);
    assert!(sandbox.run(["stats"]).expect(0).stdout.contains(", 7 labels\n"));
    let query = "SELECT key, count(*) AS n FROM labels GROUP BY key ORDER BY key";
    let rows = sandbox.run(["sql", "--json", query]).expect(0).json();
    assert_eq!(
        rows,
        [json!({"key": "branch", "n": 3}), json!({"key": "commit", "n": 3}), json!({"key": "note", "n": 1})]
    );
}

#[test]
fn a_retention_policy_keeps_groups_and_selects_by_label() {
    let sandbox = Sandbox::new();
    for (name, labels) in [
        ("a", &["branch=main"][..]),
        ("b", &["branch=main", "release=1.0"]),
        ("c", &["branch=fix"]),
        ("d", &["branch=fix"]),
        ("e", &[]),
    ] {
        sandbox.add([sandbox.write(&format!("{name}.json"), session(name, &[("p", name)]))]);
        for label in labels {
            sandbox.run(["label", "set", "latest", label]).expect(0);
        }
    }
    let kept = |arguments: &[&str]| -> Vec<(bool, String)> {
        let arguments = [&["forget", "--dry-run", "--json"], arguments].concat();
        let lines = sandbox.run(arguments).expect(0).json();
        let decision = |line: &Value| {
            let why: Vec<&str> =
                line["reasons"].as_array().unwrap().iter().map(|why| why.as_str().unwrap()).collect();
            (line["keep"].as_bool().unwrap(), why.join(", "))
        };
        lines.iter().map(decision).collect()
    };
    // Newest first.
    let by_release = kept(&["--keep-label", "release"]);
    let miss = (false, "no label release".to_owned());
    assert_eq!(
        by_release,
        [miss.clone(), miss.clone(), miss.clone(), (true, "label release=1.0".to_owned()), miss]
    );
    let of_fix = kept(&["--keep-last", "1", "--label", "branch=fix"]);
    assert_eq!(of_fix.iter().map(|(keep, _)| *keep).collect::<Vec<_>>(), [true, false]);
    let per_branch = kept(&["--keep-last", "1", "--group-by", "label:branch"]);
    assert_eq!(per_branch.iter().filter(|(keep, _)| *keep).count(), 3, "main, fix, and none");
    let text = sandbox
        .run(["forget", "--keep-last", "1", "--group-by", "label:branch", "--dry-run"])
        .expect(0)
        .stdout;
    assert!(text.contains("label:branch fix\n") && text.contains("no label:branch\n"), "{text}");
    sandbox.run(["forget", "--keep-label", "branch=main", "--label", "branch", "--yes"]).expect(0);
    assert_eq!(found(&sandbox, &[]).len(), 3);
    let reasons = sandbox.run(["tombstones", "--json"]).expect(0).json();
    assert_eq!(reasons[0]["reason"], "forget --keep-label branch=main --label branch");
    assert!(sandbox.run(["forget", "--label", "branch"]).expect(3).stderr.contains("--keep-label"));
}

#[test]
fn labels_are_carried_over_and_do_not_replace_others() {
    let sandbox = labeled();
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    let imported =
        on(&sandbox, "other.vault", &["import", "all.rvz", "--create", "--label", "from=export"]).expect(0);
    assert!(imported.stderr.contains("7 labels set\n"), "{}", imported.stderr);
    let of_other = |core: &str| {
        on(&sandbox, "other.vault", &["show", core, "--json"]).expect(0).json()[0]["labels"].clone()
    };
    assert_eq!(of_other(TRACE), json!({"branch": "main", "commit": "77ab", "from": "export", "note": ""}));
    assert_eq!(of_other(RUN), json!({"from": "export"}));
    on(&sandbox, "other.vault", &["label", "set", TRACE, "commit=0"]).expect(0);
    on(&sandbox, "other.vault", &["label", "remove", CONTRACT, "branch"]).expect(0);
    let dry = on(&sandbox, "other.vault", &["import", "all.rvz", "--dry-run"]).expect(0);
    assert!(dry.stderr.contains("1 label would be set\n"), "{}", dry.stderr);
    let again = on(&sandbox, "other.vault", &["import", "all.rvz"]).expect(0);
    assert!(
        again.stderr.contains("not labeled 7c8de5910f63 commit=77ab: it has another value here\n"),
        "{}",
        again.stderr
    );
    assert!(again.stderr.contains("1 label set\n"), "{}", again.stderr);
    assert_eq!(of_other(TRACE)["commit"], "0");
    assert_eq!(of_other(CONTRACT)["branch"], "main");
    let lines = on(&sandbox, "other.vault", &["import", "all.rvz", "--json"]).expect(0).json();
    let of_labels: Vec<&Value> = lines.iter().filter(|line| line["key"] == "commit").collect();
    assert_eq!(of_labels.len(), 3);
    assert!(of_labels.iter().any(|line| line["outcome"] == "not_labeled"));
    // One entry for the artifacts with the same labels.
    let entries = on(&sandbox, "other.vault", &["log", "--action", "label", "--json"]).expect(0).json();
    let counts: Vec<usize> =
        entries.iter().map(|line| line["entry"]["cores"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [7, 2, 1, 1, 1]);
}
