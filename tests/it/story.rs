//! The shipped examples: one run with its sessions, traces and contract, whatever arrives first.

use crate::sandbox::{Sandbox, repository};

const FILES: [&str; 4] = ["contract.yaml", "run.rpk", "session.json", "trace.ndjson"];

/// Every order of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![vec![]];
    }
    let shorter = orders(count - 1);
    let with = |order: &Vec<usize>, at: usize| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| with(order, at))).collect()
}

#[test]
fn links_do_not_depend_on_the_order_of_arrival() {
    let mut answers = Vec::new();
    for order in orders(FILES.len()) {
        let sandbox = Sandbox::new();
        let mut cores: Vec<(usize, String)> = Vec::new();
        for number in order {
            let file = repository("examples").join(FILES[number]);
            cores.push((number, sandbox.add([file]).remove(0)));
        }
        cores.sort();
        let links = cores.iter().map(|(_, core)| sandbox.run(["links", core]).expect(0).stdout);
        answers.push(links.collect::<String>());
    }
    assert_eq!(answers.len(), 24);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    insta::assert_snapshot!("links", answers[0]);
}

#[test]
fn dangling_links_resolve_when_their_target_arrives() {
    let sandbox = Sandbox::new();
    let run = sandbox.add([repository("examples/run.rpk")]).remove(0);
    insta::assert_snapshot!("links_dangling", sandbox.run(["links", &run]).expect(0).stdout);
    let dangling = |sandbox: &Sandbox| {
        let links = sandbox.run(["links", "--json", &run]).expect(0).json();
        links.iter().filter(|link| link["dangling"] == true).count()
    };
    assert_eq!(dangling(&sandbox), 2);
    sandbox.add([repository("examples/contract.yaml"), repository("examples/session.json")]);
    assert_eq!(dangling(&sandbox), 0);
}

#[test]
fn two_histories_of_one_run_are_a_fork() {
    let sandbox = Sandbox::new();
    let text = std::fs::read_to_string(repository("examples/trace.ndjson")).unwrap();
    let original = sandbox.add([repository("examples/trace.ndjson")]).remove(0);
    // The last record is rewritten, with a hash that is right again.
    let (history, last) = text.trim_end().rsplit_once('\n').unwrap();
    let mut record: serde_json::Value = serde_json::from_str(last).unwrap();
    record["result"]["step"] = "Close".into();
    record.as_object_mut().unwrap().remove("record_hash");
    let hash = runvault::digest::Digest::of(record.to_string().as_bytes()).hex();
    record["record_hash"] = hash.into();
    let rewritten =
        sandbox.add([sandbox.write("rewritten.ndjson", format!("{history}\n{record}\n"))]).remove(0);
    for (one, other) in [(&original, &rewritten), (&rewritten, &original)] {
        let links = sandbox.run(["links", "--json", one]).expect(0).json();
        let fork = links.iter().find(|link| link["relation"] == "forks").unwrap();
        assert_eq!(
            (&fork["core_hash"], &fork["because"]),
            (&other.as_str().into(), &"same header, different record 3".into())
        );
    }
}
