//! What is exported from one vault is in the other after the import, and nothing else gets in.

mod every_vault;
mod hostile;
pub(crate) mod making;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::conformance::corpus;
use crate::sandbox::{Ran, Sandbox, repository, run_pack, session};

use making::Making;

pub(crate) fn on(sandbox: &Sandbox, vault: &str, arguments: &[&str]) -> Ran {
    sandbox.command().arg("--vault").arg(vault).args(arguments).output().unwrap().into()
}

fn with_examples() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    sandbox
}

type Files = Vec<(String, Vec<u8>)>;

/// Every byte of a vault: the members of the captures of its artifacts, in order.
fn contents(sandbox: &Sandbox, vault: &str) -> BTreeMap<String, Vec<Files>> {
    let vault = runvault::Vault::open(&sandbox.path(vault)).unwrap();
    let snapshot = vault.snapshot().unwrap();
    let captures = |artifact: runvault::storage::ArtifactRecord| {
        let captures = snapshot.captures_of(artifact.core).unwrap().into_iter();
        let members = captures.map(|row| snapshot.read_members(artifact.core, row.capture).unwrap());
        let files = members.map(|all| all.into_iter().map(|one| (one.name, one.bytes)).collect());
        (format!("{} {}", artifact.kind, artifact.core), files.collect())
    };
    snapshot.all_artifacts(None).unwrap().into_iter().map(captures).collect()
}

fn core_of(sandbox: &Sandbox, kind: &str) -> String {
    sandbox.run(["find", kind, "--all-versions", "--json", "--sort", "core"]).expect(0).json()[0]["core_hash"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The core hashes in a bundle.
fn cores(sandbox: &Sandbox, bundle: &str) -> Vec<String> {
    let manifest = Making::of(sandbox, bundle).manifest;
    let artifacts = manifest["artifacts"].as_array().unwrap();
    artifacts.iter().map(|artifact| artifact["core_hash"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn everything_comes_out_of_the_other_vault_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.run(["add".into(), corpus()]).expect(1);
    sandbox.run(["add".into(), repository("examples")]).expect(0);
    let before = contents(&sandbox, "v.vault");
    let kinds: std::collections::BTreeSet<&str> =
        before.keys().map(|name| name.split(' ').next().unwrap()).collect();
    assert_eq!(kinds.len(), 5);
    assert!(before.values().any(|captures| captures.len() > 2));
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    let imported = on(&sandbox, "n.vault", &["import", "--create", "all.rvz", "--json"]).expect(0);
    assert!(imported.json().iter().all(|line| line["violations"].is_array()));
    assert_eq!(contents(&sandbox, "n.vault"), before);
    // The other vault says the same of everything, but for when.
    let shown = |vault: &str| {
        let cores = before.keys().map(|name| name.split(' ').nth(1).unwrap());
        let show = |core| on(&sandbox, vault, &["show", "--json", core]).expect(0).json().remove(0);
        let timeless = |mut value: Value| {
            let forget = |value: &mut Value| ["added_at", "seen_at"].map(|time| value[time].take());
            forget(&mut value);
            value["captures"].as_array_mut().unwrap().iter_mut().for_each(|one| drop(forget(one)));
            value
        };
        cores.step_by(7).map(show).map(timeless).collect::<Vec<Value>>()
    };
    assert_eq!(shown("v.vault"), shown("n.vault"));
    let again = on(&sandbox, "n.vault", &["import", "--create", "all.rvz", "--json"]).expect(0);
    assert!(again.json().iter().all(|line| line["outcome"] == "present"));
}

#[test]
fn the_same_choice_gives_the_same_bytes() {
    let sandbox = with_examples();
    let (run, trace) = (core_of(&sandbox, "runs"), core_of(&sandbox, "traces"));
    sandbox.run(["export", &run, &trace, "-o", "one.rvz"]).expect(0);
    sandbox.run(["export", &trace, &run, &run, "-o", "other.rvz"]).expect(0);
    let read = |name: &str| std::fs::read(sandbox.path(name)).unwrap();
    assert_eq!(read("one.rvz"), read("other.rvz"));
    let mut tar =
        tar::Archive::new(zstd::Decoder::new(std::fs::File::open(sandbox.path("one.rvz")).unwrap()).unwrap());
    let mut names = Vec::new();
    for entry in tar.entries().unwrap() {
        let header = entry.unwrap().header().clone();
        let numbers = [header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()];
        assert_eq!((numbers, header.mode().unwrap()), ([0; 3], 0o644));
        names.push(header.path().unwrap().to_str().unwrap().to_owned());
    }
    assert_eq!(names.remove(0), "manifest.json");
    assert!(names.len() == 2 && names.is_sorted());
    let refused = sandbox.run(["export", &run, "-o", "one.rvz"]).expect(2);
    assert!(refused.stderr.contains("one.rvz: it already exists; use --force"), "{}", refused.stderr);
    sandbox.run(["export", &run, "-o", "one.rvz", "--force"]).expect(0);
    assert_eq!(cores(&sandbox, "one.rvz"), [run]);
}

#[test]
fn what_is_linked_comes_along_if_it_is_wanted() {
    let sandbox = with_examples();
    sandbox.add([sandbox.write("lonely.json", session("lonely", &[("alone", "r")]))]);
    let run = core_of(&sandbox, "runs");
    sandbox.run(["export", &run, "-o", "alone.rvz"]).expect(0);
    assert_eq!(cores(&sandbox, "alone.rvz"), std::slice::from_ref(&run));
    sandbox.run(["export", &run, "--with-links=all", "--coincident", "-o", "linked.rvz"]).expect(0);
    assert_eq!(cores(&sandbox, "linked.rvz").len(), 7, "all but the lonely one");
    on(&sandbox, "n.vault", &["import", "--create", "linked.rvz"]).expect(0);
    let links = |vault: &str| on(&sandbox, vault, &["links", &run]).expect(0).stdout;
    assert_eq!(links("v.vault"), links("n.vault"));
}

#[test]
fn a_run_with_links_leaves_the_other_runs_of_its_contract() {
    let sandbox = with_examples();
    let [run, trace, contract] = ["runs", "traces", "contracts"].map(|kind| core_of(&sandbox, kind));
    let pack = core_of(&sandbox, "packs");
    let steps = [json!({"type": "tool.response", "input": {"tool": "t"}, "output": {"result": "r"}})];
    let other = sandbox.add([sandbox.write("other.rpk", run_pack("other", &steps))]).remove(0);
    sandbox.run(["link", "add", &contract, "governs", &other]).expect(0);
    sandbox.run(["tag", "set", &run, "base"]).expect(0);
    let exported = |of: &str, scope: &str| {
        let ran = sandbox.run(["export", of, scope, "--dry-run", "--json"]).expect(0);
        let cores = ran.json().into_iter().map(|line| line["core_hash"].as_str().unwrap().to_owned());
        cores.collect::<Vec<_>>()
    };
    let of_run = exported(&run, "--with-links");
    for expected in [&run, &trace, &contract, &pack] {
        assert!(of_run.contains(expected), "{expected}: {of_run:?}");
    }
    assert!(!of_run.contains(&other), "{of_run:?}");
    sandbox.run(["export", &run, "--with-links", "-o", "run.rvz"]).expect(0);
    let mut sorted = of_run.clone();
    sorted.sort_unstable();
    assert_eq!(cores(&sandbox, "run.rvz"), sorted, "a dry run lists what is exported");
    // What governs a run is stated by it, from whichever end it was linked.
    let mut of_other = exported(&other, "--with-links");
    of_other.sort_unstable();
    let mut expected = vec![other.clone(), contract.clone()];
    expected.sort_unstable();
    assert_eq!(of_other, expected);
    assert!(!exported(&contract, "--with-links").contains(&run));
    assert!(exported(&other, "--with-links=all").contains(&run));
    let told = sandbox.run(["export", &run, "--with-links", "--dry-run"]).expect(0);
    let line = told.stdout.lines().find(|line| line.contains(&run[7..19])).unwrap();
    assert!(line.contains("KiB") && line.contains("@base"), "{line}");
    let summary = format!("{} artifacts would be exported, ", of_run.len());
    assert!(told.stderr.starts_with(&summary), "{}", told.stderr);
    sandbox.run(["export", &run, "--dry-run", "-o", "x.rvz"]).expect(3);
}

#[test]
fn a_recorded_run_with_links_has_its_session_and_no_other() {
    let sandbox = Sandbox::new();
    for name in ["vcr.json", "pairs.jsonl"] {
        sandbox.run(["import".as_ref(), repository(&format!("tests/import/{name}")).as_os_str()]).expect(0);
    }
    let runs = sandbox.run(["find", "runs", "--json"]).expect(0).json();
    assert!(runs.len() > 1);
    for run in &runs {
        let run = run["core_hash"].as_str().unwrap();
        let sessions = |arguments: &[&str]| {
            let lines = sandbox.run(arguments).expect(0).json().into_iter();
            lines.filter(|line| line["kind"] == "model_io").count()
        };
        assert_eq!(sessions(&["export", run, "--dry-run", "--json"]), 0);
        assert_eq!(sessions(&["export", run, "--with-links", "--dry-run", "--json"]), 1);
    }
}

#[test]
fn conditions_choose_what_is_exported() {
    let sandbox = with_examples();
    let prompt = "Summarise ticket 4711 in one sentence.";
    let found = |arguments: &[&str]| {
        let shown = &["--all-versions", "--json", "--sort", "core"];
        let lines = sandbox.run(["find"].iter().chain(arguments).chain(shown)).json();
        lines.iter().map(|line| line["core_hash"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (number, (find, export)) in [
        (["sessions"].as_slice(), ["--kind", "model_io"].as_slice()),
        (&["--prompt", prompt], &["--prompt", prompt]),
        (&["packs", "--prompt", prompt], &["--kind", "pack", "--prompt", prompt]),
        (
            &["--tool", "tracker.label", "--since", "1h", "--by", "last-seen"],
            &["--tool", "tracker.label", "--since", "1h", "--by", "last-seen"],
        ),
        (&["--until", "2099-01-01"], &["--until", "2099-01-01"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.rvz");
        sandbox.run(["export", "-o", &name].iter().chain(export)).expect(0);
        assert_eq!(cores(&sandbox, &name), found(find));
        assert!(!found(find).is_empty());
    }
    let mut refusals = String::new();
    for (arguments, status) in [
        (["export", "-o", "x.rvz"].as_slice(), 3),
        (&["export", "3941d389b337", "--tool", "t", "-o", "x.rvz"], 3),
        (&["export", "3941d389b337", "--all", "-o", "x.rvz"], 3),
        (&["export", "--tool", "unknown's", "-o", "x.rvz"], 1),
        (&["export", "000000", "-o", "x.rvz"], 1),
        (&["export", "--all", "-o", "no/such/x.rvz"], 2),
    ] {
        let ran = sandbox.run(arguments).expect(status);
        refusals += &format!("{}\n{}\n", arguments.join(" "), ran.stderr.lines().next().unwrap());
        assert!(!sandbox.path("x.rvz").exists());
    }
    insta::assert_snapshot!(refusals);
}

#[test]
fn stated_links_come_along_with_their_notes() {
    let sandbox = with_examples();
    let [run, trace, contract] = ["runs", "traces", "contracts"].map(|kind| core_of(&sandbox, kind));
    sandbox.run(["link", "add", &contract, "governs", &trace, "--note", "as agreed"]).expect(0);
    sandbox.run(["link", "add", &run, "explains", &trace]).expect(0);
    sandbox.run(["export", &contract, &trace, "-o", "b.rvz"]).expect(0);
    let manifest = serde_json::to_string_pretty(&Making::of(&sandbox, "b.rvz").manifest).unwrap();
    insta::assert_snapshot!("manifest", crate::output::steady(&manifest));
    let dry = on(&sandbox, "n.vault", &["import", "--create", "b.rvz", "--json", "--dry-run"]).expect(0);
    assert!(!sandbox.path("n.vault").exists());
    let first = on(&sandbox, "n.vault", &["import", "--create", "b.rvz", "--json"]).expect(0);
    assert_eq!(dry.stdout, first.stdout);
    let text = on(&sandbox, "n.vault", &["import", "--create", "b.rvz"]).expect(0);
    insta::assert_snapshot!(format!("{}--\n{}", first.stdout, crate::output::steady(&text.stderr)));
    // The note on a link in this vault is not replaced.
    on(&sandbox, "n.vault", &["link", "add", &contract, "governs", &trace, "--note", "I know better"])
        .expect(0);
    on(&sandbox, "n.vault", &["import", "--create", "b.rvz"]).expect(0);
    let links = on(&sandbox, "n.vault", &["links", &contract]).expect(0).stdout;
    assert!(links.contains("I know better"), "{links}");
    // The link is stated when what was missing has arrived.
    sandbox.run(["export", &run, "-o", "run.rvz"]).expect(0);
    let second = on(&sandbox, "n.vault", &["import", "--create", "run.rvz", "--json"]).expect(0);
    assert_eq!(second.json()[1]["outcome"], "linked");
}

#[test]
fn pipes_and_standard_tools() {
    let sandbox = with_examples();
    let mut exported = sandbox.command();
    let bytes = exported.args(["export", "--all", "-o", "-"]).output().unwrap().stdout;
    sandbox.run(["export", "--all", "-o", "all.rvz"]).expect(0);
    assert_eq!(bytes, std::fs::read(sandbox.path("all.rvz")).unwrap());
    sandbox.run_on(&bytes, &["--vault", "piped.vault", "import", "--create", "-"]).expect(0);
    assert_eq!(contents(&sandbox, "piped.vault"), contents(&sandbox, "v.vault"));
    // A plain tar file is a bundle as well, with whatever times, owners and modes.
    let mut made = Making::of(&sandbox, "all.rvz");
    made.header = |header| {
        header.set_mtime(1_700_000_000);
        header.set_uid(1000);
        header.set_mode(0o600);
    };
    sandbox.run_on(&made.tar(), &["--vault", "tar.vault", "import", "--create", "-"]).expect(0);
    assert_eq!(contents(&sandbox, "tar.vault"), contents(&sandbox, "v.vault"));
}

#[test]
fn a_damaged_artifact_is_not_exported() {
    let sandbox = Sandbox::new();
    let core = sandbox.add([sandbox.write("s.json", session("a", &[("p", &"text ".repeat(100))]))]).remove(0);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let connection = rusqlite::Connection::open_with_flags(sandbox.vault(), flags).unwrap();
    connection.execute("UPDATE payload SET encoding = 0, bytes = x'00'", []).unwrap();
    let refused = sandbox.run(["export", "--all", "-o", "x.rvz"]).expect(2);
    assert!(refused.stderr.contains(&format!("the bytes stored for {core}")), "{}", refused.stderr);
    assert!(!sandbox.path("x.rvz").exists());
}

#[test]
fn larger_captures_need_to_be_allowed() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", session("a", &[("p", &"text ".repeat(100))]))]);
    sandbox.run(["export", "--all", "-o", "x.rvz"]).expect(0);
    let size = std::fs::metadata(sandbox.path("s.json")).unwrap().len();
    let import = |limit: u64| {
        on(&sandbox, "n.vault", &["import", "--create", "x.rvz", "--max-size", &limit.to_string()])
    };
    let refused = import(size - 1).expect(1);
    assert!(refused.stderr.contains("more than the limit of"), "{}", refused.stderr);
    assert!(refused.stderr.contains("(rule BU7); raise it with --max-size"), "{}", refused.stderr);
    import(size).expect(0);
}

#[test]
fn what_applies_to_recordings_is_refused_with_a_bundle() {
    let sandbox = Sandbox::new();
    sandbox.add([sandbox.write("s.json", crate::sandbox::session("a", &[("p", "r")]))]);
    sandbox.run(["export", "--all", "-o", "a.rvz"]).expect(0);
    for options in [&["--redact", "p"][..], &["--normalize", "uuid"], &["--ignore", "x"], &["--no-original"]]
    {
        let arguments = ["--vault", "other.vault", "import", "--create", "a.rvz"];
        let ran = sandbox.run(arguments.into_iter().chain(options.iter().copied())).expect(3);
        assert!(ran.stderr.starts_with("error: a bundle is imported as it is"), "{}", ran.stderr);
    }
    assert!(!sandbox.path("other.vault").exists());
}
