//! Lists of runs: one row for the artifacts of a run, in any order, page by page.

use runvault::Vault;
use runvault::vault::find::{ArtifactFilter, Condition, FindOrder};
use runvault::vault::list::{ListAnswer, ListRequest, ListRow};
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, repository, run_pack, sealed, session};
use crate::traces;

/// A run pack with this time of creation and this number of failed steps.
fn run(id: &str, created_at: &str, errors: usize) -> String {
    let step = json!({"type": "model.request", "input": {"model": "m", "prompt": id}});
    let steps: Vec<Value> =
        std::iter::once(step).chain(std::iter::repeat_n(json!({"type": "error.event"}), errors)).collect();
    let mut pack: Value = serde_json::from_str(&run_pack(id, &steps)).unwrap();
    pack["metadata"]["created_at"] = created_at.into();
    pack["payload"]["run"]["agent"] = "clerk".into();
    sealed(pack)
}

/// Adds an export pack of a run, with a session in it.
fn add_pack(sandbox: &Sandbox, id: &str, session: &str) {
    let mut run = crate::packs::run();
    run["run_id"] = id.into();
    sandbox.write(&format!("pack-{id}/run.json"), run.to_string());
    sandbox.write(&format!("pack-{id}/model_io.json"), session);
    sandbox.add([sandbox.path(&format!("pack-{id}"))]);
}

fn open(sandbox: &Sandbox) -> Vault {
    Vault::open(&sandbox.vault()).unwrap()
}

fn kinds(row: &ListRow) -> Vec<&str> {
    row.members.iter().map(|member| member.artifact.kind.as_str()).collect()
}

fn ids(rows: &[ListRow]) -> Vec<&str> {
    rows.iter().map(|row| row.run_id.as_deref().unwrap_or("-")).collect()
}

/// Three runs: of the first there are all kinds of artifacts, of the second a run pack, of the third a trace.
fn three_runs() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut inside: Value = serde_json::from_str(&session("inside", &[("p", "r")])).unwrap();
    inside["stats"] = json!({"total_tokens_input": 5, "total_tokens_output": 6});
    sandbox.add([sandbox.write("one.rpk", run("one", "2026-11-01T00:00:00Z", 0))]);
    add_pack(&sandbox, "one", &inside.to_string());
    sandbox.add([sandbox.write("two.rpk", run("two", "2026-11-03T00:00:00Z", 2))]);
    sandbox.add([sandbox.write("one.ndjson", traces::steps("one", 3).concat())]);
    sandbox.add([sandbox.write("three.ndjson", traces::steps("three", 2).concat())]);
    sandbox.add([sandbox.write("alone.json", session("alone", &[("q", "r")]))]);
    sandbox
}

/// All rows, those of the artifacts that were seen last first.
fn by_arrival() -> ListRequest {
    ListRequest { order: FindOrder::LastSeen, ..ListRequest::default() }
}

#[test]
fn the_artifacts_of_a_run_are_one_row() {
    let sandbox = three_runs();
    let ListAnswer { rows, next } = open(&sandbox).run(&by_arrival()).unwrap();
    assert_eq!(next, None);
    // The position is that of the member that was added last.
    assert_eq!(ids(&rows), ["-", "three", "one", "two"]);
    let one = &rows[2];
    assert_eq!(kinds(one), ["rpk", "pack", "trace", "model_io"]);
    assert_eq!(one.artifact, one.members[0].artifact);
    assert_eq!((one.tokens, one.steps, one.errors), (Some(11), Some(3), Some(0)));
    assert_eq!(
        (one.models.as_slice(), one.agents.as_slice()),
        (&["m".to_owned()][..], &["clerk".to_owned()][..])
    );
    // That of the trace, which is later than that of the run pack.
    assert_eq!(one.created_at.unwrap().0.to_rfc3339(), "2026-11-18T09:00:00+00:00");
    let [pack, .., session] = one.members.as_slice() else { panic!("{one:?}") };
    assert_eq!(pack.details.created_at.unwrap().0.to_rfc3339(), "2026-11-01T00:00:00+00:00");
    assert_eq!(session.details.created_at, None);
    assert!(one.members.iter().all(|member| member.matches));
    assert_eq!(kinds(&rows[1]), ["trace"]);
    assert_eq!((rows[0].interactions, rows[0].steps, rows[0].tokens), (Some(1), None, None));

    let flat = ListRequest { flat: true, ..ListRequest::default() };
    let rows = open(&sandbox).run(&flat).unwrap().rows;
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row.members.len() == 1));
}

#[test]
fn a_row_is_listed_where_its_first_matching_artifact_is() {
    let sandbox = three_runs();
    let vault = open(&sandbox);
    let list = |filter: ArtifactFilter, order: FindOrder| {
        vault.run(&ListRequest { filter, order, ..ListRequest::default() }).unwrap().rows
    };
    let by = |name: &str| FindOrder::Attribute { name: name.to_owned() };
    assert_eq!(ids(&list(ArtifactFilter::default(), by("errors")))[..3], ["two", "three", "one"]);
    assert_eq!(ids(&list(ArtifactFilter::default(), FindOrder::Created)), ["three", "one", "two", "-"]);
    assert_eq!(ids(&list(ArtifactFilter::default(), by("tokens")))[0], "one");
    // The session matches, and its run is listed.
    let condition = Condition::Attribute { name: "adapter_id".to_owned(), value: "inside".to_owned() };
    let rows =
        list(ArtifactFilter { conditions: vec![condition], ..ArtifactFilter::default() }, by("errors"));
    assert_eq!(ids(&rows), ["one"]);
    let matching: Vec<bool> = rows[0].members.iter().map(|member| member.matches).collect();
    assert_eq!(matching, [false, false, false, true]);
    let traces = ArtifactFilter { kinds: vec!["trace".to_owned()], ..ArtifactFilter::default() };
    assert_eq!(ids(&list(traces, FindOrder::LastSeen)), ["three", "one"]);
    let unknown = ListRequest { order: by("nothing"), ..ListRequest::default() };
    assert_eq!(vault.run(&unknown).unwrap_err().kind(), runvault::storage::ErrorKind::Invalid);
    let text = ListRequest { order: by("model_id"), ..ListRequest::default() };
    assert!(vault.run(&text).unwrap_err().to_string().contains("has no order"));
}

#[test]
fn pages_are_the_whole_list_in_every_order() {
    let sandbox = three_runs();
    for number in 0..6 {
        let id = format!("more-{number}");
        sandbox
            .add([sandbox
                .write("r.rpk", run(&id, &format!("2026-10-0{}T00:00:00Z", 1 + number / 2), number % 3))]);
        sandbox.add([sandbox.write("t.ndjson", traces::steps(&id, 1 + number).concat())]);
    }
    let vault = open(&sandbox);
    let attribute = |name: &str| FindOrder::Attribute { name: name.to_owned() };
    let orders = [
        FindOrder::LastSeen,
        FindOrder::FirstSeen,
        FindOrder::Created,
        FindOrder::Core,
        FindOrder::Kind,
        attribute("errors"),
        attribute("steps"),
        attribute("tokens"),
    ];
    for order in orders {
        for flat in [false, true] {
            let request = ListRequest { order: order.clone(), flat, ..ListRequest::default() };
            let whole = vault.run(&request).unwrap().rows;
            assert_eq!(whole.len(), if flat { 19 } else { 10 }, "{order:?}");
            for limit in [1, 3, 4] {
                let mut found = Vec::new();
                let mut after = None;
                loop {
                    let page = ListRequest { limit: Some(limit), after, ..request.clone() };
                    // As a page of a server would be requested.
                    let page: ListRequest =
                        serde_json::from_value(serde_json::to_value(&page).unwrap()).unwrap();
                    let answer = vault.run(&page).unwrap();
                    assert!(answer.next.is_none() || answer.rows.len() as u64 == limit, "{order:?}");
                    found.extend(answer.rows);
                    after = answer.next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(found, whole, "{order:?}, {limit} at a time, flat: {flat}");
            }
        }
    }
}

#[test]
fn a_long_list_has_every_row_once_in_the_same_order() {
    const MANY: usize = 2_100;
    let sandbox = Sandbox::recording_source_paths();
    for number in 0..MANY {
        sandbox.write(&format!("in/{number}.txt"), number.to_string());
    }
    let directory = sandbox.path("in");
    sandbox.run(["add", "--kind", "attachment", directory.to_str().unwrap()]).expect(0);
    let hashes = |arguments: &[&str]| -> Vec<String> {
        // Not the files of whoever runs the tests.
        let mut command = sandbox.command();
        command.env("HOME", &directory).args(arguments);
        let rows = Ran::from(command.output().unwrap()).expect(0).json();
        rows.iter().map(|row| row["core_hash"].as_str().unwrap().to_owned()).collect()
    };
    let found = hashes(&["find", "--json"]);
    assert_eq!(found.len(), MANY);
    assert_eq!(hashes(&["list", "--json"]), found);
    assert_eq!(hashes(&["list", "--json", "--limit", "1500"]), found[..1500]);
    let shown = sandbox.run(["list"]).expect(0).stdout;
    let begins = |(line, hash): (&str, &String)| line.starts_with(&hash["sha256:".len()..][..12]);
    assert!(shown.lines().count() == MANY && shown.lines().zip(&found).all(begins), "{shown}");
    let shown = sandbox.run(["list", "--limit", "1500"]).expect(0);
    assert_eq!(shown.stdout.lines().count(), 1500);
    assert_eq!(shown.stderr.trim_end(), "1500 rows; --limit shows more");
    // The files of half of them are no longer there.
    for number in (0..MANY).step_by(2) {
        std::fs::remove_file(sandbox.path(&format!("in/{number}.txt"))).unwrap();
    }
    let gone = hashes(&["list", "--gone", "--json"]);
    assert_eq!(gone.len(), MANY / 2);
    assert_eq!(hashes(&["list", "--gone", "--json", "--limit", "700"]), gone[..700]);
}

#[test]
fn a_shared_id_does_not_join_recordings() {
    let sandbox = three_runs();
    // A second recording of the first run: whose the trace is, is unknown.
    sandbox.add([sandbox.write("again.rpk", run("one", "2026-11-02T00:00:00Z", 1))]);
    let rows = open(&sandbox).run(&by_arrival()).unwrap().rows;
    let of_one: Vec<Vec<&str>> =
        rows.iter().filter(|row| row.run_id.as_deref() == Some("one")).map(kinds).collect();
    assert_eq!(of_one, [vec!["rpk"], vec!["trace"], vec!["pack", "model_io"], vec!["rpk"]]);
    // A session in two packs is of neither.
    let inside = std::fs::read_to_string(sandbox.path("pack-one/model_io.json")).unwrap();
    add_pack(&sandbox, "other", &inside);
    let rows = open(&sandbox).run(&by_arrival()).unwrap().rows;
    assert!(rows.iter().any(|row| kinds(row) == ["model_io"] && row.tokens == Some(11)));
    assert!(rows.iter().any(|row| kinds(row) == ["pack"] && row.run_id.as_deref() == Some("other")));
}

#[test]
fn shorter_versions_of_a_trace_are_in_its_row() {
    let sandbox = Sandbox::new();
    let lines = traces::steps("grown", 4);
    for length in 2..=5 {
        sandbox.add([sandbox.write("t.ndjson", lines[..length].concat())]);
    }
    sandbox.add([sandbox.write("run.rpk", run("grown", "2026-11-01T00:00:00Z", 0))]);
    let rows = open(&sandbox).run(&by_arrival()).unwrap().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(kinds(&rows[0]), ["rpk", "trace", "trace", "trace", "trace"]);
    let longest = traces::core(lines.last().unwrap());
    assert_eq!(rows[0].members[1].artifact.core_hash.to_string(), longest);
}

#[test]
fn the_command_lists_what_the_operation_answers() {
    let sandbox = three_runs();
    sandbox.run(["tag", "set", "latest", "last"]).expect(0);
    let rows = sandbox.run(["list", "--json", "--sort", "seen"]).expect(0).json();
    let answer = open(&sandbox).run(&by_arrival()).unwrap();
    // The command requests the attributes of its default columns.
    let answer: Vec<Value> = answer.rows.iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    let without = |rows: &[Value]| -> Vec<Value> {
        let mut rows = rows.to_vec();
        for row in &mut rows {
            row.as_object_mut().unwrap().remove("attributes");
        }
        rows
    };
    assert_eq!(without(&rows), without(&answer));
    let told =
        sandbox.run(["ls", "--columns", "kind,created,run_id,steps,tokens,errors,agent,tags"]).expect(0);
    let lines: Vec<String> =
        told.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines[..2],
        [
            "trace 2026-11-18 09:00:00 UTC three 2 0",
            "run pack, export pack, trace, session 2026-11-18 09:00:00 UTC one 3 11 0 clerk"
        ]
    );
    assert!(lines.iter().any(|line| line.ends_with("@last")), "{lines:?}");
    assert_eq!(told.stderr, "4 rows\n");
    let limited = sandbox.run(["list", "--limit", "2"]).expect(0);
    assert_eq!(
        (limited.stdout.lines().count(), limited.stderr.as_str()),
        (2, "2 rows; --limit shows more\n")
    );
    let failed = sandbox.run(["list", "--has-error", "--columns", "run_id,size,duration"]).expect(0).stdout;
    assert!(failed.starts_with("two "), "{failed}");
    sandbox.run(["list", "packs", "--host", "nowhere"]).expect(1);
}

#[test]
fn the_examples_are_three_rows() {
    let sandbox = Sandbox::new();
    sandbox.add([repository("examples")]);
    let rows = open(&sandbox).run(&by_arrival()).unwrap().rows;
    let triage = rows.iter().find(|row| row.run_id.as_deref() == Some("run-triage-4711")).unwrap();
    assert!(kinds(triage).starts_with(&["rpk", "pack"]), "{:?}", kinds(triage));
    assert_eq!(kinds(triage).last(), Some(&"model_io"));
}
