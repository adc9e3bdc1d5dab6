//! Two histories of one run.

use serde_json::{Value, json};

use crate::sandbox::{Sandbox, repository, run_pack, sealed};

fn steps(answers: &[&str]) -> Vec<Value> {
    answers.iter().map(|answer| json!({"type": "model.response", "output": {"content": answer}})).collect()
}

/// A run pack with these answers.
fn run(id: &str, answers: &[&str]) -> String {
    run_pack(id, &steps(answers))
}

/// A copy of a run for others, as ReplayKit bundles them: it has the id of the run, and says that it is derived from it.
fn bundle(id: &str, answers: &[&str]) -> String {
    let mut pack: Value = serde_json::from_str(&run(id, answers)).unwrap();
    pack["metadata"]["bundle"] = true.into();
    pack["metadata"]["source_run_id"] = id.into();
    sealed(pack)
}

#[test]
fn runs_with_one_run_id_and_different_steps_are_a_fork() {
    let sandbox = Sandbox::new();
    let one = sandbox.add([sandbox.write("one.rpk", run("run-1", &["a", "b", "c"]))]).remove(0);
    let other = sandbox.add([sandbox.write("other.rpk", run("run-1", &["a", "x", "c", "d"]))]).remove(0);
    let listed = sandbox.run(["forks", "--json"]).expect(1).json();
    let [fork] = &listed[..] else { panic!("one fork: {listed:?}") };
    assert_eq!((&fork["run_id"], &fork["step"]), (&"run-1".into(), &1.into()));
    let mut cores = [&one, &other];
    cores.sort();
    for (side, core) in fork["runs"].as_array().unwrap().iter().zip(cores) {
        assert_eq!(side["core_hash"], core.as_str());
        let says: Value = serde_json::from_str(side["says"].as_str().unwrap()).unwrap();
        assert_eq!(says["hash"], side["step_hash"]);
    }
    let shown = sandbox.run(["forks"]).expect(1);
    assert!(shown.stdout.starts_with("run id run-1, step 1 differs\n"), "{}", shown.stdout);
    assert_eq!(shown.stderr, "1 fork\n");
    for (here, there) in [(&one, &other), (&other, &one)] {
        let links = sandbox.run(["links", "--json", here]).expect(0).json();
        let link = links.iter().find(|link| link["relation"] == "forks").unwrap();
        assert_eq!(link["core_hash"], there.as_str());
        assert_eq!(link["because"], "same run id run-1, different step 1");
    }
}

#[test]
fn adding_says_that_a_run_forks() {
    let sandbox = Sandbox::new();
    let one = sandbox.add([sandbox.write("one.rpk", run("run-1", &["a", "b"]))]).remove(0);
    let file = sandbox.write("other.rpk", run("run-1", &["a", "x"]));
    let added = sandbox.run(["add".as_ref(), file.as_os_str()]).expect(0);
    let told = format!("forks run pack {}: same run id run-1, first difference at step 1\n", &one[7..19]);
    assert!(added.stderr.ends_with(&told), "{}", added.stderr);
    // It is new once.
    let again = sandbox.run(["add".as_ref(), file.as_os_str()]).expect(0);
    assert!(!again.stderr.contains("forks"), "{}", again.stderr);
}

#[test]
fn adding_says_that_a_trace_forks() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples/trace-partial.ndjson"), repository("examples/trace.ndjson")]);
    let text = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let (history, last) = text.trim_end().rsplit_once('\n').unwrap();
    let mut record: Value = serde_json::from_str(last).unwrap();
    record["result"]["step"] = "Close".into();
    record.as_object_mut().unwrap().remove("record_hash");
    record["record_hash"] =
        runvault::digest::Digest::from_content(record.to_string().as_bytes()).hex().into();
    let file = sandbox.write("rewritten.ndjson", format!("{history}\n{record}\n"));
    let added = sandbox.run(["add".as_ref(), file.as_os_str()]).expect(0);
    let told: Vec<&str> = added.stderr.lines().filter(|line| line.contains(" forks ")).collect();
    let [told] = told[..] else { panic!("one fork: {told:?}") };
    assert!(told.contains("forks trace 7c8de5910f63: same header"), "{told}");
    assert!(told.ends_with("first difference at record 3"), "{told}");
}

#[test]
fn a_pair_that_is_added_at_once_is_told_once() {
    let sandbox = Sandbox::new();
    for number in 0..6 {
        sandbox.write(&format!("runs/{number}.rpk"), run("run-1", &["a", &number.to_string()]));
    }
    let added = sandbox.run(["add".as_ref(), sandbox.path("runs").as_os_str()]).expect(0);
    let told = added.stderr.lines().filter(|line| line.contains(" forks run pack ")).count();
    assert_eq!(told, 10, "{}", added.stderr);
    assert!(added.stderr.contains("\"runvault forks\" lists them"), "{}", added.stderr);
    assert_eq!(sandbox.run(["forks", "--json"]).expect(1).json().len(), 15);
}

#[test]
fn what_is_no_other_history_is_no_fork() {
    let original = run("run-1", &["a", "b"]);
    // A copy that is written otherwise is a capture of the same core.
    let spaced = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&original).unwrap()).unwrap();
    for (what, other) in [
        ("another capture", spaced),
        ("the run as it went on", run("run-1", &["a", "b", "c"])),
        ("another run", run("run-2", &["x", "y"])),
        ("a bundle of it", bundle("run-1", &["a", "[REDACTED]"])),
    ] {
        let sandbox = Sandbox::new();
        sandbox.add([sandbox.write("original.rpk", &original)]);
        let file = sandbox.write("other.rpk", other);
        let added = sandbox.run(["add".as_ref(), file.as_os_str()]).expect(0);
        assert!(!added.stderr.contains("forks"), "{what}: {}", added.stderr);
        assert_eq!(sandbox.run(["forks", "--json"]).expect(0).stdout, "", "{what}");
    }
    // Nor are two bundles of one run.
    let sandbox = Sandbox::new();
    let bundles = [bundle("run-1", &["a"]), bundle("run-1", &["[REDACTED]"])];
    sandbox.add(bundles.map(|bundle| sandbox.write(&format!("{}.bundle", bundle.len()), bundle)));
    sandbox.run(["forks"]).expect(0);
}

#[test]
fn importing_and_watching_say_that_a_run_forks() {
    let sandbox = Sandbox::new();
    let one = sandbox.add([sandbox.write("one.rpk", run("run-1", &["a", "b"]))]).remove(0);
    let told = format!("forks run pack {}: same run id run-1, first difference at step 1\n", &one[7..19]);
    sandbox.write("d/other.rpk", run("run-1", &["a", "x"]));
    let bundle = |vault: &str, arguments: &[&str]| {
        sandbox.run([&["--vault", vault][..], arguments].concat()).expect(0).stderr
    };
    bundle("other.vault", &["add", "--create", "d"]);
    bundle("other.vault", &["export", "--all", "-o", "other.rvz"]);
    bundle("copy.vault", &["add", "--create", "one.rpk"]);
    let imported = bundle("copy.vault", &["import", "other.rvz"]);
    assert!(imported.contains(&told), "{imported}");
    let again = bundle("copy.vault", &["import", "other.rvz"]);
    assert!(!again.contains("forks"), "{again}");
    let watched = sandbox.run(["watch", "--once", "--settle", "0", "d"]).expect(0).stderr;
    assert!(watched.contains(&told), "{watched}");
}
